//! Sets the checksum offload of a NIC and reads its counters, by the ioctls of ethtool.

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};
use rustix::net::{AddressFamily, SocketType, socket};

/// Request number `SIOCETHTOOL`, which does not follow the encoding of newer ioctls.
const SIOCETHTOOL: Opcode = 0x8946;
/// Command `ETHTOOL_STXCSUM`: sets whether the NIC computes checksums of sent packets.
const SET_TRANSMIT_CHECKSUMS: u64 = 0x17;
/// Command `ETHTOOL_GSTRINGS`: returns the names of the counters.
const GET_NAMES: u64 = 0x1b;
/// Command `ETHTOOL_GSTATS`: returns the values of the counters.
const GET_COUNTERS: u64 = 0x1d;
/// Command `ETHTOOL_GSSET_INFO`: returns the number of counters.
const GET_SET_SIZES: u64 = 0x37;
/// Set number `ETH_SS_STATS`: the counters of the driver.
const COUNTERS: u64 = 1;
/// Length of a name (`ETH_GSTRING_LEN`), in words of eight bytes.
const NAME_WORDS: usize = 4;
/// Maximum number of counters that are read.
const MAX_COUNTERS: usize = 8_192;

/// `struct ifreq` with the fields that are used here, padded to its size of 40 bytes.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    data: *mut u64,
    unused: [u8; 16],
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

/// A counter of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DriverCounter {
    pub(crate) name: String,
    pub(crate) value: u64,
}

/// Sets whether the NIC computes the transport checksums of packets that are sent on an interface.
/// `name` is the name of the interface, up to 15 bytes, padded with zeros.
pub(crate) fn set_transmit_checksums(name: [u8; 16], by_nic: bool) -> Result<(), Errno> {
    // The fields of `struct ethtool_value`: command, data.
    perform(name, &mut [words(SET_TRANSMIT_CHECKSUMS, by_nic.into())])
}

/// Returns the counters of an interface's driver, with the driver's names for them.
pub(crate) fn driver_counters(name: [u8; 16]) -> Result<Vec<DriverCounter>, Errno> {
    // The fields of `struct ethtool_sset_info`: command, reserved, mask, sizes.
    let mut sizes = [words(GET_SET_SIZES, 0), 1 << COUNTERS, 0];
    perform(name, &mut sizes)?;
    let count = low(sizes[2]);
    if count == 0 || count > MAX_COUNTERS {
        return Ok(Vec::new());
    }
    // Each of the two commands below writes an entry for every counter that the driver then has. If
    // queues have been added since `count` was read, these are more than `count`. So the buffers
    // have room for twice `count` and 1,024 more.
    let room = 2 * count + 1_024;
    // The fields of `struct ethtool_gstrings`: command, set, length, and names from byte 12 on.
    let mut names = vec![0; 2 + NAME_WORDS * room];
    names[0] = words(GET_NAMES, COUNTERS);
    names[1] = count as u64;
    perform(name, &mut names)?;
    // The fields of `struct ethtool_stats`: command, number, values.
    let mut values = vec![0; 1 + room];
    values[0] = words(GET_COUNTERS, count as u64);
    perform(name, &mut values)?;
    let names: Vec<u8> = names.iter().flat_map(|word| word.to_ne_bytes()).skip(12).collect();
    let named = names.chunks_exact(8 * NAME_WORDS).zip(&values[1..]).take(count);
    Ok(named.map(|(name, &value)| DriverCounter { name: text(name), value }).collect())
}

/// Executes a command of ethtool. `argument` begins with the number of the command.
fn perform(name: [u8; 16], argument: &mut [u64]) -> Result<(), Errno> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut request = InterfaceRequest { name, data: argument.as_mut_ptr(), unused: [0; 16] };
    // SAFETY: the number is that of SIOCETHTOOL, whose argument has the layout of `struct ifreq`.
    let call = unsafe { Updater::<SIOCETHTOOL, InterfaceRequest>::new(&mut request) };
    // SAFETY: the kernel accesses the request and the argument, which has room for the answers of
    // its command, and both outlive the call.
    unsafe { ioctl(any, call) }
}

/// Combines two 32-bit numbers to a word of 64 bits, in which `first` precedes `second` in memory.
const fn words(first: u64, second: u64) -> u64 {
    if cfg!(target_endian = "little") { first | second << 32 } else { first << 32 | second }
}

/// Returns the 32-bit number that comes first in memory.
fn low(word: u64) -> usize {
    let first = if cfg!(target_endian = "little") { word & 0xffff_ffff } else { word >> 32 };
    usize::try_from(first).unwrap_or(usize::MAX)
}

/// Returns the text of a name that a zero byte ends.
fn text(name: &[u8]) -> String {
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_have_the_layout_of_the_kernel() {
        let bytes = words(0x37, 1).to_ne_bytes();
        assert_eq!(bytes[..4], 0x37_u32.to_ne_bytes());
        assert_eq!(bytes[4..], 1_u32.to_ne_bytes());
        assert_eq!(low(words(7, 9)), 7);
        assert_eq!(text(b"rx_ring_full\0\0junk"), "rx_ring_full");
    }
}

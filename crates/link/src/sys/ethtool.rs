//! The offloads of a NIC, set by the ioctls of ethtool.

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};
use rustix::net::{AddressFamily, SocketType, socket};

/// `SIOCETHTOOL`, a number that does not follow the encoding of newer ioctls.
const SIOCETHTOOL: Opcode = 0x8946;
/// `ETHTOOL_STXCSUM`.
const SET_TRANSMIT_CHECKSUMS: u32 = 0x17;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// The used part of `struct ifreq`, in its full size of 40 bytes.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    value: *mut Value,
    unused: [u8; 16],
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

/// Sets whether the NIC of an interface computes the transport checksums of sent packets. `name`
/// has up to 15 bytes, padded with zeros.
pub(crate) fn set_transmit_checksums(name: [u8; 16], by_nic: bool) -> Result<(), Errno> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut value = Value { command: SET_TRANSMIT_CHECKSUMS, data: by_nic.into() };
    let mut request = InterfaceRequest { name, value: &raw mut value, unused: [0; 16] };
    // SAFETY: the number is that of SIOCETHTOOL, whose argument has the layout of `struct ifreq`.
    let call = unsafe { Updater::<SIOCETHTOOL, InterfaceRequest>::new(&mut request) };
    // SAFETY: the kernel accesses the request and the eight bytes that it points to, and both
    // outlive the call.
    unsafe { ioctl(any, call) }
}

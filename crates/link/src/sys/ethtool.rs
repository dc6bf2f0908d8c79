//! What a card does for the kernel, asked for by the calls of ethtool.

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};
use rustix::net::{AddressFamily, SocketType, socket};

/// `SIOCETHTOOL`, a number older than the rule that would make it.
const SIOCETHTOOL: Opcode = 0x8946;
/// `ETHTOOL_STXCSUM`.
const SET_TRANSMIT_CHECKSUMS: u32 = 0x17;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// The part of `struct ifreq` that is used here, in its full size of 40 bytes.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    value: *mut Value,
    unused: [u8; 16],
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

/// Says whether the kernel leaves transport checksums to the card of the interface called `name` (up to 15 bytes,
/// then zeros).
pub(crate) fn set_transmit_checksums(name: [u8; 16], by_card: bool) -> Result<(), Errno> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut value = Value { command: SET_TRANSMIT_CHECKSUMS, data: by_card.into() };
    let mut request = InterfaceRequest { name, value: &raw mut value, unused: [0; 16] };
    // SAFETY: the number is that of SIOCETHTOOL, for which the value has the layout of `struct ifreq`.
    let call = unsafe { Updater::<SIOCETHTOOL, InterfaceRequest>::new(&mut request) };
    // SAFETY: the kernel reads and writes the request and the eight bytes that it points to, both of which outlive
    // the call.
    unsafe { ioctl(any, call) }
}

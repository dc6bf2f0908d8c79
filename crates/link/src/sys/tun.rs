//! Attaching an opened `/dev/net/tun` to an interface.

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use std::os::fd::BorrowedFd;

/// `TUNSETIFF`. Its number was made with the size of an `int`; what it takes is a `struct ifreq`.
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);
/// `IFF_TUN`: frames begin with the IP header.
pub(crate) const TUN: u16 = 1;
/// `IFF_TAP`: frames begin with an Ethernet header.
pub(crate) const TAP: u16 = 2;
/// `IFF_NO_PI`: four bytes of packet information in front of each frame are not wanted.
pub(crate) const NO_PACKET_INFORMATION: u16 = 0x1000;

/// The part of `struct ifreq` that is used here, in its full size of 40 bytes.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    unused: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

/// Attaches `device` to the interface called `name` (up to 15 bytes, then zeros; all zeros or with `%d`
/// in it: the kernel chooses a number), which is made if there is none. Returns its name.
pub(crate) fn attach(device: BorrowedFd<'_>, name: [u8; 16], flags: u16) -> Result<[u8; 16], Errno> {
    let mut request = InterfaceRequest { name, flags, unused: [0; 22] };
    // SAFETY: the number is that of TUNSETIFF, for which the value has the layout of `struct ifreq`.
    let call = unsafe { Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request) };
    // SAFETY: the kernel reads and writes the 40 bytes of the request and nothing else; another device
    // that takes this number for something else is not opened by this crate.
    unsafe { ioctl(device, call) }?;
    Ok(request.name)
}

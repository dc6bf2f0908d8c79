//! Attaching an opened `/dev/net/tun` to an interface, and what its frames are to be like.

use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};
use std::os::fd::BorrowedFd;

/// `TUNSETIFF`. Its number was made with the size of an `int`; what it takes is a `struct ifreq`.
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);
/// `TUNSETOFFLOAD`, whose value is the argument itself.
const TUNSETOFFLOAD: Opcode = opcode::write::<u32>(b'T', 208);
/// `TUNSETVNETHDRSZ`.
const TUNSETVNETHDRSZ: Opcode = opcode::write::<i32>(b'T', 216);

/// `IFF_TUN`: frames begin with the IP header.
pub(crate) const TUN: u16 = 1;
/// `IFF_TAP`: frames begin with an Ethernet header.
pub(crate) const TAP: u16 = 2;
/// `IFF_NO_PI`: four bytes of packet information in front of each frame are not wanted.
pub(crate) const NO_PACKET_INFORMATION: u16 = 0x1000;
/// `IFF_VNET_HDR`: each frame has a virtio-net header in front.
pub(crate) const VIRTIO_HEADER: u16 = 0x4000;

/// `IFF_MULTI_QUEUE`: each attachment is a further queue of the interface.
pub(crate) const MULTI_QUEUE: u16 = 0x0100;

/// `TUN_F_CSUM`: we take frames whose transport checksum was not completed.
const ANY_CHECKSUM: usize = 1;
/// `TUN_F_TSO4`: we take super-frames of TCP over IPv4.
const SUPER_FRAMES: usize = 2;

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
pub(crate) fn attach(
    device: BorrowedFd<'_>,
    name: [u8; 16],
    flags: u16,
) -> Result<[u8; 16], Errno> {
    let mut request = InterfaceRequest { name, flags, unused: [0; 22] };
    // SAFETY: the number is that of TUNSETIFF, for which the value has the layout of `struct ifreq`.
    let call = unsafe { Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request) };
    // SAFETY: the kernel reads and writes the 40 bytes of the request and nothing else; another device
    // that takes this number for something else is not opened by this crate.
    unsafe { ioctl(device, call) }?;
    Ok(request.name)
}

/// Says that the frames of `device` have a virtio-net header of `length` bytes.
pub(crate) fn set_header_length(device: BorrowedFd<'_>, length: usize) -> Result<(), Errno> {
    let length = i32::try_from(length).map_err(|_| Errno::INVAL)?;
    // SAFETY: the number is that of TUNSETVNETHDRSZ, which reads an `int`.
    let call = unsafe { Setter::<TUNSETVNETHDRSZ, i32>::new(length) };
    // SAFETY: the kernel reads that number and nothing else.
    unsafe { ioctl(device, call) }
}

/// Says whether we take what the kernel would leave to a network card. An interface that stays remembers what
/// those before us have said.
pub(crate) fn set_offloads(device: BorrowedFd<'_>, wanted: bool) -> Result<(), Errno> {
    let offloads = if wanted { ANY_CHECKSUM | SUPER_FRAMES } else { 0 };
    // SAFETY: the number is that of TUNSETOFFLOAD, whose argument is a number and no pointer.
    let call = unsafe { IntegerSetter::<TUNSETOFFLOAD>::new_usize(offloads) };
    // SAFETY: the kernel touches no memory of ours.
    unsafe { ioctl(device, call) }
}

//! The ioctls of `/dev/net/tun`: attach it to a TAP or TUN interface, and set the format of its
//! frames.

use rustix::fs::{FileType, fstat, major, minor};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};
use std::os::fd::BorrowedFd;

/// The path of the device.
pub(crate) const DEVICE: &str = "/dev/net/tun";
/// Major and minor device number of `/dev/net/tun` (`MISC_MAJOR`, `TUN_MINOR`).
const NUMBER: (u32, u32) = (10, 200);
/// The maximum number of queues of an interface (`MAX_TAP_QUEUES` of the kernel).
pub(crate) const MOST_QUEUES: usize = 256;

/// Request number `TUNSETIFF`. It encodes the size of an `int`, but the argument is a `struct
/// ifreq`.
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);
/// Request number `TUNSETOFFLOAD`. Its argument is a number, not a pointer.
const TUNSETOFFLOAD: Opcode = opcode::write::<u32>(b'T', 208);
/// Request number `TUNSETVNETHDRSZ`: sets the length of the virtio-net header.
const TUNSETVNETHDRSZ: Opcode = opcode::write::<i32>(b'T', 216);

/// Flag `IFF_TUN`: frames begin with the IP header.
pub(crate) const TUN: u16 = 1;
/// Flag `IFF_TAP`: frames begin with an Ethernet header.
pub(crate) const TAP: u16 = 2;
/// Flag `IFF_NO_PI`: no packet information in front of each frame.
pub(crate) const NO_PACKET_INFORMATION: u16 = 0x1000;
/// Flag `IFF_VNET_HDR`: a virtio-net header in front of each frame.
pub(crate) const VIRTIO_HEADER: u16 = 0x4000;

/// Flag `IFF_MULTI_QUEUE`: each attached descriptor is one more queue of the interface.
pub(crate) const MULTI_QUEUE: u16 = 0x0100;

/// Offload flag `TUN_F_CSUM`: this program accepts frames with partial checksums.
const CHECKSUMS: usize = 1;
/// Offload flag `TUN_F_TSO4`: this program accepts GSO frames of TCP over IPv4.
const TCP4_SEGMENTATION: usize = 2;
/// Offload flag `TUN_F_TSO6`: this program accepts GSO frames of TCP over IPv6.
const TCP6_SEGMENTATION: usize = 4;

/// Request number `TUNGETIFF`. It encodes the size of an `unsigned int`, but the argument is a
/// `struct ifreq`.
const TUNGETIFF: Opcode = opcode::read::<u32>(b'T', 210);

/// `struct ifreq` with the fields that are used here, padded to its size of 40 bytes.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    unused: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

/// Attaches `device` to the interface `name`, which is created if it does not exist. `name` has up
/// to 15 bytes, padded with zeros. In it, the kernel replaces `%d` by a free number. For an empty
/// name, the kernel chooses one. Returns the name that the interface has.
pub(crate) fn attach(
    device: BorrowedFd<'_>,
    name: [u8; 16],
    flags: u16,
) -> Result<[u8; 16], Errno> {
    let mut request = InterfaceRequest { name, flags, unused: [0; 22] };
    // SAFETY: the number is that of TUNSETIFF, whose argument has the layout of `struct ifreq`.
    let call = unsafe { Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request) };
    // SAFETY: the kernel accesses the 40 bytes of the request and nothing else. This crate opens no
    // other device, which could interpret the number otherwise.
    unsafe { ioctl(device, call) }?;
    Ok(request.name)
}

/// Returns the name and the flags of the interface to which `device` is attached. Fails with
/// `EINVAL` for a descriptor of another device, and with `EBADFD` for a device that is not
/// attached.
pub(crate) fn attached(device: BorrowedFd<'_>) -> Result<([u8; 16], u16), Errno> {
    let status = fstat(device)?;
    let is_character = FileType::from_raw_mode(status.st_mode) == FileType::CharacterDevice;
    if !is_character || (major(status.st_rdev), minor(status.st_rdev)) != NUMBER {
        return Err(Errno::INVAL);
    }
    let mut request = InterfaceRequest { name: [0; 16], flags: 0, unused: [0; 22] };
    // SAFETY: the number is that of TUNGETIFF, whose argument has the layout of `struct ifreq`.
    let call = unsafe { Updater::<TUNGETIFF, InterfaceRequest>::new(&mut request) };
    // SAFETY: the kernel accesses the 40 bytes of the request and nothing else. The device number
    // has been checked to be that of `/dev/net/tun`.
    unsafe { ioctl(device, call) }?;
    Ok((request.name, request.flags))
}

/// Sets the length of the virtio-net header in front of each frame.
pub(crate) fn set_header_length(device: BorrowedFd<'_>, length: usize) -> Result<(), Errno> {
    let length = i32::try_from(length).map_err(|_| Errno::INVAL)?;
    // SAFETY: the number is that of TUNSETVNETHDRSZ, whose argument is an `int`.
    let call = unsafe { Setter::<TUNSETVNETHDRSZ, i32>::new(length) };
    // SAFETY: the kernel reads the `int` and nothing else.
    unsafe { ioctl(device, call) }
}

/// Sets whether the kernel may pass frames with partial checksums and GSO frames to this program.
/// Must be called even if it may not, because a persistent interface keeps the setting of the
/// previous program.
pub(crate) fn set_offloads(device: BorrowedFd<'_>, wanted: bool) -> Result<(), Errno> {
    let offloads = if wanted { CHECKSUMS | TCP4_SEGMENTATION | TCP6_SEGMENTATION } else { 0 };
    // SAFETY: the number is that of TUNSETOFFLOAD, whose argument is a number and not a pointer.
    let call = unsafe { IntegerSetter::<TUNSETOFFLOAD>::new_usize(offloads) };
    // SAFETY: the kernel accesses no memory of this process.
    unsafe { ioctl(device, call) }
}

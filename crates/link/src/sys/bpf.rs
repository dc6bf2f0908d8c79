//! The system call `bpf(2)`, for three purposes: to load an XDP program, to fill the map from
//! receive queues to sockets that the program uses, and to attach the program to an interface.

use std::ffi::{c_long, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

// Commands of bpf(2).
const MAP_CREATE: c_long = 0;
const MAP_UPDATE: c_long = 2;
const PROGRAM_LOAD: c_long = 5;
const LINK_CREATE: c_long = 28;
/// Map type `BPF_MAP_TYPE_XSKMAP`: from receive queues to AF_XDP sockets.
const SOCKET_MAP: u32 = 17;
/// Program type `BPF_PROG_TYPE_XDP`.
const XDP_PROGRAM: u32 = 6;
/// Attach type `BPF_XDP` of XDP programs.
const ATTACH_XDP: u32 = 37;
/// Attach flag `XDP_FLAGS_SKB_MODE`: generic XDP, which runs after the driver.
const GENERIC_MODE: u32 = 2;
/// Licence of the program. The kernel permits some BPF helpers only to GPL programs.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";

/// Creates a map that has room for one socket for each of the receive queues 0 to `queues` − 1.
pub(crate) fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::default();
    for (at, value) in [(0, SOCKET_MAP), (4, 4), (8, 4), (12, queues)] {
        attributes.number(at, value);
    }
    // SAFETY: the attributes contain no pointers, and the command returns a new descriptor.
    unsafe { call_for_descriptor(MAP_CREATE, &attributes) }
}

/// Stores `socket` in the map as the socket that gets the frames of receive queue `queue`.
pub(crate) fn set_socket(
    map: BorrowedFd<'_>,
    queue: u32,
    socket: BorrowedFd<'_>,
) -> io::Result<()> {
    let (key, value) = (queue.to_ne_bytes(), socket.as_raw_fd().to_ne_bytes());
    let mut attributes = Attributes::default();
    attributes.number(0, map.as_raw_fd().cast_unsigned());
    attributes.pointer(8, key.as_ptr().cast());
    attributes.pointer(16, value.as_ptr().cast());
    // SAFETY: both pointers are to four bytes that outlive the call, and the kernel reads them.
    unsafe { call(MAP_UPDATE, &attributes) }.map(drop)
}

/// Loads a program of eight-byte instructions, which the kernel verifies.
pub(crate) fn load(program: &[u64]) -> io::Result<OwnedFd> {
    let count = u32::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut attributes = Attributes::default();
    attributes.number(0, XDP_PROGRAM);
    attributes.number(4, count);
    attributes.pointer(8, program.as_ptr().cast());
    attributes.pointer(16, LICENCE.as_ptr().cast());
    attributes.number(68, ATTACH_XDP);
    // SAFETY: the pointers are to `count` instructions and to a zero-terminated text. Both outlive
    // the call, and the kernel copies them. The command returns a new descriptor.
    unsafe { call_for_descriptor(PROGRAM_LOAD, &attributes) }
}

/// Attaches `program` to the interface with this index, until the returned descriptor is closed.
/// With `in_driver`, the program runs in the driver, provided that the driver supports XDP.
/// Otherwise it runs at the start of the kernel's network stack (generic XDP).
pub(crate) fn attach(
    program: BorrowedFd<'_>,
    interface: u32,
    in_driver: bool,
) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::default();
    let place = if in_driver { 0 } else { GENERIC_MODE };
    let program = program.as_raw_fd().cast_unsigned();
    for (at, value) in [(0, program), (4, interface), (8, ATTACH_XDP), (12, place)] {
        attributes.number(at, value);
    }
    // SAFETY: the attributes contain no pointers, and the command returns a new descriptor.
    unsafe { call_for_descriptor(LINK_CREATE, &attributes) }
}

/// The fields of `union bpf_attr` that are used here. The kernel treats all fields behind them as
/// zero, which selects the behaviour of older kernels.
#[repr(C, align(8))]
#[derive(Default)]
struct Attributes([u64; 9]);

impl Attributes {
    fn number(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_ne_bytes());
    }

    fn pointer(&mut self, at: usize, to: *const c_void) {
        self.put(at, &(to.expose_provenance() as u64).to_ne_bytes());
    }

    /// Stores a field at offset `at`. The offset must be a multiple of the field's length, so that
    /// the field lies within one word.
    fn put(&mut self, at: usize, bytes: &[u8]) {
        let mut word = self.0[at / 8].to_ne_bytes();
        word[at % 8..at % 8 + bytes.len()].copy_from_slice(bytes);
        self.0[at / 8] = u64::from_ne_bytes(word);
    }
}

/// Executes a command of bpf(2) that returns a new descriptor.
///
/// # Safety
/// As for [`call`], and the command must return a new descriptor.
unsafe fn call_for_descriptor(command: c_long, attributes: &Attributes) -> io::Result<OwnedFd> {
    // SAFETY: the caller guarantees that the pointers in the attributes are valid.
    let descriptor = unsafe { call(command, attributes) }?;
    // SAFETY: the descriptor is new and owned by nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Executes a command of bpf(2).
///
/// # Safety
/// Pointers in the attributes must be valid for the command until it has returned.
unsafe fn call(command: c_long, attributes: &Attributes) -> io::Result<i32> {
    // SAFETY: the kernel reads the attributes in their full size; the caller guarantees that the
    // pointers in them are valid.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<Attributes>())
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        i32::try_from(result).map_err(io::Error::other)
    }
}

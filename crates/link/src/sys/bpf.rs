//! Programs for the kernel's packet processor: loading one, the map through which it finds sockets, and putting
//! it in front of an interface.

use std::ffi::{c_long, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

// Commands of bpf(2).
const MAP_CREATE: c_long = 0;
const MAP_UPDATE: c_long = 2;
const PROGRAM_LOAD: c_long = 5;
const LINK_CREATE: c_long = 28;
/// `BPF_MAP_TYPE_XSKMAP`.
const SOCKETS_BY_QUEUE: u32 = 17;
/// `BPF_PROG_TYPE_XDP`.
const FOR_ARRIVING_FRAMES: u32 = 6;
/// `BPF_XDP`, where such a program is attached.
const AT_INTERFACE: u32 = 37;
/// `XDP_FLAGS_SKB_MODE`, in the flags of attaching.
const BEHIND_DRIVER: u32 = 2;
/// What helpers for everybody ask for.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";

/// A map from receive queues below `queues` to sockets.
pub(crate) fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::default();
    for (at, value) in [(0, SOCKETS_BY_QUEUE), (4, 4), (8, 4), (12, queues)] {
        attributes.number(at, value);
    }
    // SAFETY: the attributes hold no pointers; the command makes something.
    unsafe { make(MAP_CREATE, &attributes) }
}

/// Leads what arrives on `queue` to `socket`.
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
    // SAFETY: both pointers are to four bytes that live until the call has returned; the kernel reads them.
    unsafe { call(MAP_UPDATE, &attributes) }.map(drop)
}

/// Has the kernel check and take `program`, instructions of eight bytes.
pub(crate) fn load(program: &[u64]) -> io::Result<OwnedFd> {
    let count = u32::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut attributes = Attributes::default();
    attributes.number(0, FOR_ARRIVING_FRAMES);
    attributes.number(4, count);
    attributes.pointer(8, program.as_ptr().cast());
    attributes.pointer(16, LICENCE.as_ptr().cast());
    attributes.number(68, AT_INTERFACE);
    // SAFETY: the pointers are to `count` instructions and to a text that ends with a zero; both outlive the call,
    // and the kernel copies them. The command makes something.
    unsafe { make(PROGRAM_LOAD, &attributes) }
}

/// Puts `program` in front of the interface with this index, for as long as the answer lives: into its driver, if that
/// can have one and `in_driver` is wanted, and else where the kernel's own network begins.
pub(crate) fn attach(
    program: BorrowedFd<'_>,
    interface: u32,
    in_driver: bool,
) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::default();
    let place = if in_driver { 0 } else { BEHIND_DRIVER };
    let program = program.as_raw_fd().cast_unsigned();
    for (at, value) in [(0, program), (4, interface), (8, AT_INTERFACE), (12, place)] {
        attributes.number(at, value);
    }
    // SAFETY: the attributes hold no pointers; the command makes something.
    unsafe { make(LINK_CREATE, &attributes) }
}

/// `union bpf_attr`, as far as it is used here: zeros mean what older kernels did.
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

    /// `at` is a multiple of the length, so that no field crosses from one word into the next.
    fn put(&mut self, at: usize, bytes: &[u8]) {
        let mut word = self.0[at / 8].to_ne_bytes();
        word[at % 8..at % 8 + bytes.len()].copy_from_slice(bytes);
        self.0[at / 8] = u64::from_ne_bytes(word);
    }
}

/// What the command makes.
///
/// # Safety
/// As for [`call`]; and the command must be one that answers with a new descriptor.
unsafe fn make(command: c_long, attributes: &Attributes) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let descriptor = unsafe { call(command, attributes) }?;
    // SAFETY: it is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// # Safety
/// What the attributes point to must be what the command takes, and live until it has returned.
unsafe fn call(command: c_long, attributes: &Attributes) -> io::Result<i32> {
    // SAFETY: the kernel reads the attributes in their whole size; the rest is the caller's promise.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<Attributes>())
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        i32::try_from(result).map_err(io::Error::other)
    }
}

//! The system calls that configure an AF_XDP socket.

use super::ring::Places;
use super::shape::Shape;
use crate::sys::mapping::Mapping;
use crate::sys::socket_option;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Address family `AF_XDP`.
const FAMILY: u16 = 44;
const KIND: i32 = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
/// Flags of binding: `XDP_COPY`, `XDP_ZEROCOPY` and `XDP_USE_NEED_WAKEUP`.
const COPY: u16 = 2;
const ZERO_COPY: u16 = 4;
const USE_NEED_WAKEUP: u16 = 8;
/// The time between two attempts to bind to a queue that is in use, and the number of attempts.
/// Together, they take half a second.
const RELEASE_STEP: Duration = Duration::from_millis(5);
const RELEASE_STEPS: u32 = 100;

/// Creates an AF_XDP socket.
pub(super) fn socket() -> io::Result<OwnedFd> {
    // SAFETY: all arguments are numbers.
    let socket = unsafe { libc::socket(i32::from(FAMILY), KIND, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned by nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Registers the memory of all frames. The fields of `struct xdp_umem_reg` are address, length,
/// frame size, headroom, flags, metadata length.
pub(super) fn register(socket: &OwnedFd, memory: &Mapping, shape: Shape) -> io::Result<()> {
    let mut request = [0; 32];
    request[..8].copy_from_slice(&(memory.start.expose_provenance() as u64).to_ne_bytes());
    request[8..16].copy_from_slice(&(memory.length as u64).to_ne_bytes());
    request[16..20].copy_from_slice(&shape.frame_size.to_ne_bytes());
    // From here on, the kernel may write to the memory. The mapping lives as long as the socket.
    // The kernel accesses only the frames that the rings assign to it.
    socket_option::set(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &request)
}

pub(super) fn prefer_busy_poll(socket: &OwnedFd, microseconds: i32) -> io::Result<()> {
    for (name, value) in [
        (libc::SO_PREFER_BUSY_POLL, 1),
        (libc::SO_BUSY_POLL, microseconds),
        (libc::SO_BUSY_POLL_BUDGET, 64),
    ] {
        socket_option::set_integer(socket, libc::SOL_SOCKET, name, value)?;
    }
    Ok(())
}

/// Binds the socket to a queue. If the queue is in use, this is tried several times: the kernel
/// releases the queue of a closed socket some time later, without notification.
pub(super) fn bind(
    socket: &OwnedFd,
    interface: u32,
    queue: u32,
    zero_copy: bool,
) -> io::Result<()> {
    let flags = USE_NEED_WAKEUP | if zero_copy { ZERO_COPY } else { COPY };
    for _ in 0..RELEASE_STEPS {
        match try_to_bind(socket, interface, queue, flags) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(RELEASE_STEP);
            }
            outcome => return outcome,
        }
    }
    try_to_bind(socket, interface, queue, flags)
}

fn try_to_bind(socket: &OwnedFd, interface: u32, queue: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: FAMILY,
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let length = libc::socklen_t::try_from(size_of_val(&address)).unwrap_or(0);
    // SAFETY: the kernel reads `length` bytes, which are the whole address, and keeps no pointer.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the offsets of the parts of the receive, transmit, fill and completion rings.
pub(super) fn offsets(socket: &OwnedFd) -> io::Result<[Places; 4]> {
    let mut bytes = [0; 128];
    if socket_option::get(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut bytes)? < bytes.len()
    {
        // Before Linux 5.4, the answer is shorter, because rings have no flags. Such kernels are
        // not supported: without flags, a ring cannot request a system call.
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let (words, _) = bytes.as_chunks();
    let mut places = [[0; 4]; 4];
    for (place, word) in places.as_flattened_mut().iter_mut().zip(words) {
        // An offset that exceeds `usize` is replaced by one outside of any mapping, which
        // `Ring::over` refuses.
        *place = usize::try_from(u64::from_ne_bytes(*word)).unwrap_or(usize::MAX);
    }
    Ok(places)
}

//! Socket options and ioctls of the kernel that no safe library offers.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Reads socket option `name` of protocol level `level` into `value`. Returns the number of bytes
/// that the kernel wrote.
pub(crate) fn get(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: `value` is writable for `length` bytes. It outlives the call, and so does the
    // borrowed descriptor.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast::<c_void>(),
            &raw mut length,
        )
    };
    outcome(result)?;
    Ok(usize::try_from(length).unwrap_or(0).min(value.len()))
}

/// Reads a socket option that is an integer.
pub(crate) fn get_integer(socket: impl AsFd, level: c_int, name: c_int) -> io::Result<c_int> {
    let mut value = [0; size_of::<c_int>()];
    get(socket, level, name, &mut value)?;
    Ok(c_int::from_ne_bytes(value))
}

/// Sets a socket option that is an integer.
pub(crate) fn set_integer(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: c_int,
) -> io::Result<()> {
    set(socket, level, name, &value.to_ne_bytes())
}

/// Sets socket option `name` of protocol level `level` to the bytes `value`.
pub(crate) fn set(socket: impl AsFd, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: `value` is readable for `length` bytes, and the descriptor is borrowed for the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            value.as_ptr().cast::<c_void>(),
            length,
        )
    };
    outcome(result)
}

/// A queue of a kernel TCP socket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    /// Bytes that were received and have not been read (`SIOCINQ`).
    Unread,
    /// Bytes that were written and have not been sent (`SIOCOUTQNSD`).
    Unsent,
    /// Bytes that were written and have not been acknowledged (`SIOCOUTQ`).
    Unacknowledged,
}

/// Request number `SIOCOUTQNSD` of <linux/sockios.h>.
const SIOCOUTQNSD: libc::Ioctl = 0x894b;

/// Returns the number of bytes in the queue.
pub(crate) fn queued_bytes(socket: impl AsFd, queue: Queue) -> io::Result<u64> {
    let request = match queue {
        Queue::Unread => libc::FIONREAD,
        Queue::Unsent => SIOCOUTQNSD,
        Queue::Unacknowledged => libc::TIOCOUTQ,
    };
    let mut value: c_int = 0;
    // SAFETY: each of these requests writes one `int` through the pointer, for any descriptor.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), request, &raw mut value) };
    outcome(result)?;
    Ok(u64::try_from(value).unwrap_or(0))
}

fn outcome(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

//! The system calls of a packet socket: its address, its filter, and batches of frames.

use super::socket_option;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// The maximum number of frames that one system call sends or receives.
pub(crate) const BATCH: usize = 32;

/// Address family `AF_PACKET`.
const FAMILY: u16 = 17;
/// Protocol number `ETH_P_ALL` in network byte order.
const EVERY_PROTOCOL: u16 = 3_u16.to_be();

/// An instruction of a classic BPF filter: code, jump if true, jump if false, operand.
pub(crate) type Instruction = (u16, u8, u8, u32);

/// Binds a packet socket to the interface with this index. From then on, the socket receives the
/// frames of this interface.
pub(crate) fn bind(socket: impl AsFd, interface: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: FAMILY,
        sll_protocol: EVERY_PROTOCOL,
        sll_ifindex: interface.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = libc::socklen_t::try_from(size_of_val(&address)).unwrap_or(0);
    // SAFETY: the kernel reads `length` bytes, which are the whole address, and keeps no pointer.
    let result =
        unsafe { libc::bind(socket.as_fd().as_raw_fd(), (&raw const address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Attaches a filter to a socket. The kernel then drops the received frames for which `program`
/// returns zero.
pub(crate) fn attach_filter(socket: impl AsFd, program: &[Instruction]) -> io::Result<()> {
    let mut code: Vec<_> =
        program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let length = u16::try_from(code.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: code.as_mut_ptr() };
    let size = libc::socklen_t::try_from(size_of_val(&program)).unwrap_or(0);
    // SAFETY: the option is a `sock_fprog` with the pointer and the length of `code`, which
    // outlives the call. The kernel copies it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes the interface accept frames to `mac` in addition to its own MAC address.
pub(crate) fn add_unicast_address(
    socket: impl AsFd,
    interface: u32,
    mac: [u8; 6],
) -> io::Result<()> {
    // The fields of `struct packet_mreq`: index, PACKET_MR_UNICAST, address length, address.
    let mut request = [0; 16];
    request[..4].copy_from_slice(&interface.to_ne_bytes());
    request[4..6].copy_from_slice(&3_u16.to_ne_bytes());
    request[6..8].copy_from_slice(&6_u16.to_ne_bytes());
    request[8..14].copy_from_slice(&mac);
    socket_option::set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Receives at most [`BATCH`] frames without waiting, each into one of `buffers` from byte `start`
/// on. Returns the number of frames, and stores their lengths in `lengths`.
pub(crate) fn receive<'a>(
    socket: impl AsFd,
    buffers: impl ExactSizeIterator<Item = &'a mut [u8]>,
    start: usize,
    lengths: &mut [usize; BATCH],
) -> Result<usize, Errno> {
    let mut pieces = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
    let count = u32::try_from(buffers.len().min(BATCH)).unwrap_or(0);
    for (piece, buffer) in pieces.iter_mut().zip(buffers) {
        let room = buffer.get_mut(start..).unwrap_or_default();
        *piece = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    }
    let mut messages = pieces.each_mut().map(message);
    // SAFETY: each of the first `count` messages has one part: the bytes of a buffer from `start`
    // on, and the buffer is borrowed for the call. The kernel writes there and to the messages, and
    // keeps no pointer.
    let result = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            messages.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT,
            ptr::null_mut(),
        )
    };
    let received = outcome(result)?;
    for (length, message) in lengths.iter_mut().zip(&messages).take(received) {
        *length = message.msg_len as usize;
    }
    Ok(received)
}

/// Sends a batch of at most [`BATCH`] frames without waiting. Returns the number of sent frames.
pub(crate) fn send<'a>(
    socket: impl AsFd,
    frames: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Result<usize, Errno> {
    let count = u32::try_from(frames.len().min(BATCH)).unwrap_or(0);
    let mut pieces = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
    for (piece, frame) in pieces.iter_mut().zip(frames) {
        *piece = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
    }
    let mut messages = pieces.each_mut().map(message);
    // SAFETY: each of the first `count` messages has one part, a frame that outlives the call. The
    // kernel reads it, and keeps no pointer.
    let result = unsafe {
        libc::sendmmsg(socket.as_fd().as_raw_fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT)
    };
    outcome(result)
}

/// Returns a message header whose data is a single buffer, without an address and control data.
fn message(piece: &mut libc::iovec) -> libc::mmsghdr {
    libc::mmsghdr {
        msg_hdr: libc::msghdr {
            msg_name: ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: piece,
            msg_iovlen: 1,
            msg_control: ptr::null_mut(),
            msg_controllen: 0,
            msg_flags: 0,
        },
        msg_len: 0,
    }
}

fn outcome(result: i32) -> Result<usize, Errno> {
    usize::try_from(result)
        .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

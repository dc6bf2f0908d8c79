//! Options of kernel sockets, set and queried by their numbers, and the number of bytes in a
//! socket's queues.

use crate::sys::socket_option::{self, Queue, queued_bytes};
use std::ffi::c_int;
use std::io;
use std::os::fd::AsFd;

/// Sets socket option `name` of protocol level `level` to the bytes `value`.
///
/// # Errors
/// The error of the kernel.
pub fn set_option(socket: impl AsFd, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    socket_option::set(socket, level, name, value)
}

/// Returns the value of socket option `name` of protocol level `level`, at most `room` bytes.
///
/// # Errors
/// The error of the kernel.
pub fn get_option(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    room: usize,
) -> io::Result<Vec<u8>> {
    let mut value = vec![0; room];
    let length = socket_option::get(socket, level, name, &mut value)?;
    value.truncate(length);
    Ok(value)
}

/// Returns the number of received bytes that have not been read (`SIOCINQ`).
///
/// # Errors
/// The error of the kernel if the socket has no such queue.
pub fn unread_bytes(socket: impl AsFd) -> io::Result<u64> {
    queued_bytes(socket, Queue::Unread)
}

/// Returns the number of written bytes that have not been sent (`SIOCOUTQNSD`).
///
/// # Errors
/// The error of the kernel if the socket has no such queue.
pub fn unsent_bytes(socket: impl AsFd) -> io::Result<u64> {
    queued_bytes(socket, Queue::Unsent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn an_option_has_the_value_that_was_set() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_NODELAY);
        set_option(&listener, level, name, &1_i32.to_ne_bytes()).unwrap();
        assert_eq!(get_option(&listener, level, name, 4).unwrap(), 1_i32.to_ne_bytes());
        assert_eq!(
            get_option(&listener, level, name, 16).unwrap().len(),
            4,
            "no more than there is"
        );
        assert!(set_option(&listener, level, 9_999, &[0; 4]).is_err());
    }

    #[test]
    fn unread_bytes_are_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        near.write_all(&[7; 100]).unwrap();
        far.peek(&mut [0; 1]).unwrap();
        assert_eq!((unread_bytes(&far).unwrap(), unsent_bytes(&near).unwrap()), (100, 0));
    }
}

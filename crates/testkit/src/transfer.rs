//! Bulk transfer from an application on one host to an application on the other host.

use crate::{Pair, Side, pattern};
use linerate_stack::{ConnectOptions, Error, ListenHandle, ListenOptions, TcpHandle};
use linerate_units::Duration;
use std::net::SocketAddrV4;

/// A transfer in one direction of a connection, with its two applications. The sending application
/// writes the test pattern and closes its direction. The receiving application reads the data and
/// compares them with the pattern.
#[derive(Clone, Debug)]
pub struct Transfer {
    from: (Side, TcpHandle),
    to: (Side, TcpHandle),
    total: usize,
    written: usize,
    read: usize,
    ended: bool,
}

impl Transfer {
    /// Creates a transfer of `total` bytes.
    #[must_use]
    pub const fn new(from: (Side, TcpHandle), to: (Side, TcpHandle), total: usize) -> Self {
        Self { from, to, total, written: 0, read: 0, ended: false }
    }

    /// Returns the number of bytes that the receiving application has read.
    #[must_use]
    pub const fn read(&self) -> usize {
        self.read
    }

    /// Returns the handle of the connection at the host `side`.
    #[must_use]
    pub fn end(&self, side: Side) -> TcpHandle {
        if self.from.0 == side { self.from.1 } else { self.to.1 }
    }

    /// Lets the sending application write and the receiving application read as much as possible
    /// now. Returns whether all bytes and the end of the stream have arrived.
    ///
    /// # Panics
    /// If a byte is wrong, or the connection has failed.
    pub fn advance(&mut self, pair: &mut Pair) -> bool {
        self.write(pair);
        self.take(pair);
        self.ended && self.read == self.total
    }

    fn write(&mut self, pair: &mut Pair) {
        let (now, (side, handle)) = (pair.now, self.from);
        while self.written < self.total {
            let room = pair.stack(side).tcp(handle).map_or(0, |end| end.writable_bytes());
            let end = self.total.min(self.written + room.min(65_536));
            let chunk: Vec<_> = (self.written..end).map(pattern).collect();
            match pair.stack(side).tcp_write(now, handle, &chunk) {
                Ok(0) => break,
                Ok(count) => self.written += count,
                Err(error) => panic!("after {} bytes: {error}", self.written),
            }
            if self.written == self.total {
                let closed = pair.stack(side).tcp_shutdown_write(now, handle);
                assert_eq!(closed, Ok(()), "the connection is there");
            }
        }
    }

    fn take(&mut self, pair: &mut Pair) {
        let (now, (side, handle)) = (pair.now, self.to);
        let mut into = [0; 8_192];
        while !self.ended {
            match pair.stack(side).tcp_read(now, handle, &mut into) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    let expected = (self.read..self.read + count).map(pattern);
                    assert!(
                        into[..count].iter().copied().eq(expected),
                        "wrong bytes after {}",
                        self.read
                    );
                    self.read += count;
                }
                Err(Error::WouldBlock) => break,
                Err(error) => panic!("after {} bytes: {error}", self.read),
            }
        }
    }
}

/// Listens at port 9 of the right host.
///
/// # Panics
/// If the port is in use.
pub fn listen(pair: &mut Pair) -> ListenHandle {
    let address = SocketAddrV4::new(Side::Right.address(), 9);
    let Ok(listener) = pair.stack(Side::Right).tcp_listen(address, &ListenOptions::default())
    else {
        panic!("port 9 is taken")
    };
    listener
}

/// Opens a connection from the left host to the listener on the right host. Returns the handles of
/// the connection at the left and at the right host.
///
/// # Panics
/// If that takes more than ten minutes of virtual time.
pub fn established(pair: &mut Pair, listener: ListenHandle) -> (TcpHandle, TcpHandle) {
    let (now, address) = (pair.now, SocketAddrV4::new(Side::Right.address(), 9));
    let Ok(left) = pair.stack(Side::Left).tcp_connect(now, address, &ConnectOptions::default())
    else {
        panic!("the connection was refused")
    };
    let mut right = None;
    pair.run_until(Duration::from_secs(600), |pair| {
        right = right.or_else(|| pair.stack(Side::Right).tcp_accept(listener));
        right.is_some()
    });
    let Some((right, _)) = right else { panic!("no connection was accepted: {pair:?}") };
    (left, right)
}

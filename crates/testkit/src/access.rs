//! The ways in which an application can write to and read from a connection: by copying, in place,
//! or with shared memory. An application can use a different way in every call.

use bytes::Bytes;
use linerate_stack::{Error as StackError, Stack, TcpHandle};
use linerate_tcp::{Connection, Error};
use linerate_units::Instant;

/// A way to access the buffers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Copies from and into the application's memory.
    Copied,
    /// Writes into the connection's send buffer and reads from its receive buffer without a copy in
    /// the application's memory.
    InPlace,
    /// Passes reference-counted memory to the connection and receives such memory from it.
    Shared,
}

impl Access {
    /// Chooses the way of access for a call that begins at this stream position. The choice varies
    /// with the position, so the calls on a long stream use all ways.
    #[must_use]
    pub fn at(position: usize) -> Self {
        match crate::pattern(position ^ 0x5555) % 3 {
            0 => Self::Copied,
            1 => Self::InPlace,
            _ => Self::Shared,
        }
    }

    /// Writes `data` to a connection. Returns the number of bytes that the connection has taken.
    ///
    /// # Errors
    /// Those of the connection's method.
    pub fn write(self, end: &mut Connection, now: Instant, data: &[u8]) -> Result<usize, Error> {
        match self {
            Self::Copied => end.write(now, data),
            Self::InPlace => end.write_with(now, data.len(), |room| fill(room, data)),
            Self::Shared => share(data, |shared| end.write_shared(now, shared)),
        }
    }

    /// Reads from a connection into `into`. Returns the number of bytes that were read.
    ///
    /// # Errors
    /// Those of the connection's method.
    pub fn read(self, end: &mut Connection, now: Instant, into: &mut [u8]) -> Result<usize, Error> {
        match self {
            Self::Copied => end.read(now, into),
            Self::InPlace => end.read_with(now, |bytes| take(bytes, into)),
            Self::Shared => end.read_shared(now, into.len()).map(|bytes| take(&bytes, into)),
        }
    }

    /// Writes `data` to a socket of a host. Returns the number of bytes that the host has taken.
    ///
    /// # Errors
    /// Those of the host's method.
    pub fn write_socket(
        self,
        stack: &mut Stack,
        now: Instant,
        socket: TcpHandle,
        data: &[u8],
    ) -> Result<usize, StackError> {
        match self {
            Self::Copied => stack.tcp_write(now, socket, data),
            Self::InPlace => stack.tcp_write_with(now, socket, data.len(), |room| fill(room, data)),
            Self::Shared => share(data, |shared| stack.tcp_write_shared(now, socket, shared)),
        }
    }

    /// Reads from a socket of a host into `into`. Returns the number of bytes that were read.
    ///
    /// # Errors
    /// Those of the host's method.
    pub fn read_socket(
        self,
        stack: &mut Stack,
        now: Instant,
        socket: TcpHandle,
        into: &mut [u8],
    ) -> Result<usize, StackError> {
        match self {
            Self::Copied => stack.tcp_read(now, socket, into),
            Self::InPlace => stack.tcp_read_with(now, socket, |bytes| take(bytes, into)),
            Self::Shared => {
                stack.tcp_read_shared(now, socket, into.len()).map(|bytes| take(&bytes, into))
            }
        }
    }
}

/// Fills `room` with the first bytes of `data`. `room` is a part of the connection's send buffer,
/// and must not be longer than `data`. Returns the number of bytes copied.
fn fill(room: &mut [u8], data: &[u8]) -> usize {
    assert!(room.len() <= data.len(), "more room than was asked for");
    room.copy_from_slice(&data[..room.len()]);
    room.len()
}

/// Copies `data` into shared memory and passes it to `write`, which removes the bytes that the
/// connection accepts. Checks that `write` has removed as many bytes as it reports, and returns
/// this number.
fn share<E>(data: &[u8], write: impl FnOnce(&mut Bytes) -> Result<usize, E>) -> Result<usize, E> {
    let mut shared = Bytes::copy_from_slice(data);
    let count = write(&mut shared)?;
    assert_eq!(shared, data[count..], "what was taken is gone, and the rest is not");
    Ok(count)
}

/// Copies bytes from the start of `bytes`, which are received data, to `into`, as many as fit.
/// Returns the number of bytes copied.
fn take(bytes: &[u8], into: &mut [u8]) -> usize {
    let count = bytes.len().min(into.len());
    into[..count].copy_from_slice(&bytes[..count]);
    count
}

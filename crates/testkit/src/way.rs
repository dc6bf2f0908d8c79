//! The ways in which an application can write and read: all of them are one stream.

use bytes::Bytes;
use linerate_stack::{Error as StackError, Stack, TcpHandle};
use linerate_tcp::{Connection, Error};
use linerate_units::Instant;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Into memory of its own, and out of it.
    Copied,
    /// In the buffers that it is lent.
    InPlace,
    /// In memory that it shares with the connection.
    Shared,
}

impl Way {
    /// The way of a call that begins at this position of the stream: now one, now the other.
    #[must_use]
    pub fn at(position: usize) -> Self {
        match crate::pattern(position ^ 0x5555) % 3 {
            0 => Self::Copied,
            1 => Self::InPlace,
            _ => Self::Shared,
        }
    }

    /// Writes `data` to a connection; how many of them.
    ///
    /// # Errors
    /// The connection's.
    pub fn write(self, end: &mut Connection, now: Instant, data: &[u8]) -> Result<usize, Error> {
        match self {
            Self::Copied => end.write(now, data),
            Self::InPlace => end.write_with(now, data.len(), |room| fill(room, data)),
            Self::Shared => share(data, |shared| end.write_shared(now, shared)),
        }
    }

    /// Reads from a connection; how many bytes.
    ///
    /// # Errors
    /// The connection's.
    pub fn read(self, end: &mut Connection, now: Instant, into: &mut [u8]) -> Result<usize, Error> {
        match self {
            Self::Copied => end.read(now, into),
            Self::InPlace => end.read_with(now, |bytes| take(bytes, into)),
            Self::Shared => end.read_shared(now, into.len()).map(|bytes| take(&bytes, into)),
        }
    }

    /// Writes `data` to a socket of a host; how many of them.
    ///
    /// # Errors
    /// The host's.
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

    /// Reads from a socket of a host; how many bytes.
    ///
    /// # Errors
    /// The host's.
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

/// Fills the room that was lent, which the data may be too many for but never too few.
fn fill(room: &mut [u8], data: &[u8]) -> usize {
    assert!(room.len() <= data.len(), "more room than was asked for");
    room.copy_from_slice(&data[..room.len()]);
    room.len()
}

/// Has `write` take a part off the front of memory that is shared.
fn share<E>(data: &[u8], write: impl FnOnce(&mut Bytes) -> Result<usize, E>) -> Result<usize, E> {
    let mut shared = Bytes::copy_from_slice(data);
    let count = write(&mut shared)?;
    assert_eq!(shared, data[count..], "what was taken is gone, and the rest is not");
    Ok(count)
}

/// Takes what is there, as far as there is a place for it.
fn take(bytes: &[u8], into: &mut [u8]) -> usize {
    let count = bytes.len().min(into.len());
    into[..count].copy_from_slice(&bytes[..count]);
    count
}

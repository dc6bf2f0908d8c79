//! Reading and writing a connection. One call copies up to 256 KiB while it holds the lock.

use super::TcpStream;
use crate::timeouts::Direction;
use bytes::Bytes;
use linerate_stack::Error as HostError;
use linerate_tcp::Connection;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};

/// Maximum number of bytes that one call copies while it holds the lock.
const LARGEST_COPY: usize = 256 << 10;

impl TcpStream {
    /// Copies data like a read, but leaves it in the receive buffer.
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout; the error that ended the connection;
    /// `NetworkDown` when the network has stopped.
    pub fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let length = into.len().min(LARGEST_COPY);
        let into = &mut into[..length];
        Ok(self
            .socket
            .block(Direction::Read, |state, _| state.stack.tcp_peek(self.socket.handle, into))?)
    }

    /// Writes a prefix of `data` without copying it, and removes it from `data`. Returns the length
    /// of the prefix. The connection keeps a reference to the bytes until the peer has acknowledged
    /// them. Data shorter than 4 KiB is copied.
    ///
    /// ```no_run
    /// use bytes::{Buf, Bytes};
    /// # fn send(stream: &linerate_sockets::TcpStream, page: &Bytes) -> std::io::Result<()> {
    /// let mut rest = page.clone();
    /// while rest.has_remaining() {
    ///     stream.write_shared(&mut rest)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout; the error that ended the connection;
    /// `NetworkDown` when the network has stopped.
    pub fn write_shared(&self, data: &mut Bytes) -> io::Result<usize> {
        let handle = self.socket.handle;
        let is_nothing = data.is_empty();
        Ok(self.socket.block(Direction::Write, |state, now| {
            match state.stack.tcp_write_shared(now, handle, data)? {
                0 if !is_nothing => Err(HostError::WouldBlock),
                count => Ok(count),
            }
        })?)
    }

    /// Reads up to `most` bytes; an empty result means the end of the stream, or that `most` is
    /// zero.
    ///
    /// On links that pass their receive buffers to the host, such as TAP with offloads, the data is
    /// not copied. The result then keeps a buffer of up to twice its size alive.
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout; the error that ended the connection;
    /// `NetworkDown` when the network has stopped.
    pub fn read_shared(&self, most: usize) -> io::Result<Bytes> {
        let (handle, most) = (self.socket.handle, most.min(LARGEST_COPY));
        Ok(self
            .socket
            .block(Direction::Read, |state, now| state.stack.tcp_read_shared(now, handle, most))?)
    }

    /// Reads into the buffers in their order, as far as there is data.
    fn receive(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Ok(0);
        }
        let handle = self.socket.handle;
        Ok(self.socket.block(Direction::Read, |state, now| {
            let mut read = 0;
            for buffer in buffers.iter_mut().filter(|buffer| !buffer.is_empty()) {
                let wanted = buffer.len().min(LARGEST_COPY - read);
                match state.stack.tcp_read(now, handle, &mut buffer[..wanted]) {
                    Ok(count) => read += count,
                    Err(_) if read > 0 => break,
                    Err(error) => return Err(error),
                }
                if read == LARGEST_COPY {
                    break;
                }
            }
            Ok(read)
        })?)
    }

    /// Writes `data` like [`Write::write`], and announces that more follows (`MSG_MORE`). A partial
    /// segment is held back until a write without this flag, until an acknowledgement of new data,
    /// or until nothing has been in flight for one retransmission timeout (RTO).
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout; the error that ended the connection;
    /// `NetworkDown` when the network has stopped.
    pub fn write_more(&self, data: &[u8]) -> io::Result<usize> {
        self.send(&[IoSlice::new(data)], Some(Connection::expect_more))
    }

    /// Writes `data` like [`Write::write`], and ends a record if all of it was written (`MSG_EOR`):
    /// no segment contains data from both sides of the boundary.
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout; the error that ended the connection;
    /// `NetworkDown` when the network has stopped.
    pub fn write_record(&self, data: &[u8]) -> io::Result<usize> {
        self.send(&[IoSlice::new(data)], Some(Connection::end_record))
    }

    /// Writes the pieces in their order, as far as there is room. Calls `mark` if all of them were
    /// written.
    fn send(&self, pieces: &[IoSlice<'_>], mark: Option<fn(&mut Connection)>) -> io::Result<usize> {
        let handle = self.socket.handle;
        let wanted: usize = pieces.iter().map(|piece| piece.len()).sum();
        let is_nothing = wanted == 0;
        Ok(self.socket.block(Direction::Write, |state, now| {
            let mut written = 0;
            // An empty write is attempted too: it fails if the connection has ended.
            for piece in pieces.iter().filter(|piece| is_nothing || !piece.is_empty()) {
                let piece = &piece[..piece.len().min(LARGEST_COPY - written)];
                let count = state.stack.tcp_write(now, handle, piece)?;
                written += count;
                if count < piece.len() || written == LARGEST_COPY {
                    break;
                }
            }
            if let Some(mark) = mark.filter(|_| written == wanted) {
                state.stack.tcp_configure(now, handle, mark)?;
            }
            if written > 0 || is_nothing { Ok(written) } else { Err(HostError::WouldBlock) }
        })?)
    }
}

impl Read for &TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.receive(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.receive(buffers)
    }
}

impl Write for &TcpStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.send(&[IoSlice::new(data)], None)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(pieces, None)
    }

    /// Does nothing: the host sends the data in its send buffer by itself.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self).read(into)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(buffers)
    }
}

impl Write for TcpStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self).write(data)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

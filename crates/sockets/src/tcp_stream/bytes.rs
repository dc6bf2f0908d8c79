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
    /// Copies received data to `into` like [`Read::read`], but leaves it in the receive buffer, so
    /// that the next read returns it again.
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

    /// Writes as many bytes of `data` as the send buffer has room for, without copying them.
    /// Removes the written bytes from `data`, and returns their number. The connection keeps a
    /// reference to the bytes until the peer has acknowledged them. The data is copied nevertheless
    /// if less than 4 KiB can be written, or if other connections wait for memory.
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
    /// not copied. The result then refers to a receive buffer of up to twice the length of the
    /// result. This memory is freed only when the result is dropped.
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

    /// Fills the buffers one after the other with received data, until there is no more data or 256
    /// KiB have been read. Waits if there is no data at all.
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

    /// Writes `data` like [`Write::write`], and announces that the application will write more
    /// (`MSG_MORE`). A partial segment at the end is therefore not sent yet. It is sent after a
    /// write without this announcement, or after an acknowledgement of new data. It is also sent if
    /// nothing has been in flight for one retransmission timeout (RTO).
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout; the error that ended the connection;
    /// `NetworkDown` when the network has stopped.
    pub fn write_more(&self, data: &[u8]) -> io::Result<usize> {
        self.send(&[IoSlice::new(data)], Some(Connection::expect_more))
    }

    /// Writes `data` like [`Write::write`], and marks its end as the end of a record (`MSG_EOR`):
    /// no segment contains data from both sides of a mark. If only a part of `data` was written,
    /// there is no mark.
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout; the error that ended the connection;
    /// `NetworkDown` when the network has stopped.
    pub fn write_record(&self, data: &[u8]) -> io::Result<usize> {
        self.send(&[IoSlice::new(data)], Some(Connection::end_record))
    }

    /// Writes the pieces one after the other, as far as the send buffer has room, at most 256 KiB.
    /// If all pieces were written completely, also applies `mark` to the connection. Waits if there
    /// is no room at all.
    fn send(&self, pieces: &[IoSlice<'_>], mark: Option<fn(&mut Connection)>) -> io::Result<usize> {
        let handle = self.socket.handle;
        let wanted: usize = pieces.iter().map(|piece| piece.len()).sum();
        let is_nothing = wanted == 0;
        Ok(self.socket.block(Direction::Write, |state, now| {
            let mut written = 0;
            // Empty pieces are skipped. But if all pieces are empty, they are passed to the host,
            // which returns an error if the connection has ended.
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

    /// Does nothing: the host sends written data without a flush.
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

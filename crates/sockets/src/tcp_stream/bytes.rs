//! Bytes into a connection and out of it, one lock for as much of them as there is room for.

use super::TcpStream;
use crate::patience::Side;
use bytes::Bytes;
use linerate_stack::Error as HostError;
use linerate_tcp::Connection;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};

/// Bytes that one call copies at most while it has the host to itself.
const LARGEST_COPY: usize = 256 << 10;

impl TcpStream {
    /// Copies what there is to read without taking it; otherwise as a read.
    ///
    /// # Errors
    /// As for reading.
    pub fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let length = into.len().min(LARGEST_COPY);
        let into = &mut into[..length];
        Ok(self
            .socket
            .block(Side::Read, |state, _| state.stack.tcp_peek(self.socket.handle, into))?)
    }

    /// Writes as much of `data` as there is room for without copying it, and takes that off its front; how much.
    /// The memory of `data` is kept until the peer has acknowledged them; pieces of less than 4 KiB are copied.
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
    /// As for writing.
    pub fn write_shared(&self, data: &mut Bytes) -> io::Result<usize> {
        let handle = self.socket.handle;
        let is_nothing = data.is_empty();
        Ok(self.socket.block(Side::Write, |state, now| {
            match state.stack.tcp_write_shared(now, handle, data)? {
                0 if !is_nothing => Err(HostError::WouldBlock),
                count => Ok(count),
            }
        })?)
    }

    /// Reads up to `most` bytes; none only at the end, or if none are wanted. Over a link that lets go of its
    /// memory, as TAP with offloads does, they are not copied: they are a part of that memory, up to twice as
    /// large, which is kept for as long as they are.
    ///
    /// # Errors
    /// As for reading.
    pub fn read_shared(&self, most: usize) -> io::Result<Bytes> {
        let (handle, most) = (self.socket.handle, most.min(LARGEST_COPY));
        Ok(self
            .socket
            .block(Side::Read, |state, now| state.stack.tcp_read_shared(now, handle, most))?)
    }

    /// Reads into the buffers in their order, as far as there is something.
    fn receive(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Ok(0);
        }
        let handle = self.socket.handle;
        Ok(self.socket.block(Side::Read, |state, now| {
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

    /// Writes `data` as [`Write::write`] does, and says that more follows (`MSG_MORE`): a segment that is not full
    /// waits for it, until a write does not say so, the peer acknowledges something, or nothing has been in
    /// flight for a retransmission timeout.
    ///
    /// # Errors
    /// As for writing.
    pub fn write_more(&self, data: &[u8]) -> io::Result<usize> {
        self.send(&[IoSlice::new(data)], Some(Connection::expect_more))
    }

    /// Writes `data` as [`Write::write`] does, and ends a record if all of it was written (`MSG_EOR`): no segment
    /// has data from both sides of the boundary.
    ///
    /// # Errors
    /// As for writing.
    pub fn write_record(&self, data: &[u8]) -> io::Result<usize> {
        self.send(&[IoSlice::new(data)], Some(Connection::end_record))
    }

    /// Writes the pieces in their order, as far as there is room, and marks the end of what was written if it
    /// was all of them.
    fn send(&self, pieces: &[IoSlice<'_>], mark: Option<fn(&mut Connection)>) -> io::Result<usize> {
        let handle = self.socket.handle;
        let wanted: usize = pieces.iter().map(|piece| piece.len()).sum();
        let is_nothing = wanted == 0;
        Ok(self.socket.block(Side::Write, |state, now| {
            let mut written = 0;
            // Nothing at all is written, too: the connection may have ended, which has to be said.
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

    /// Nothing is held back here; what waits in the host's buffer is on its way.
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

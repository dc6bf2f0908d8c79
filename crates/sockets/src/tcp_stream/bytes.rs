//! Bytes into a connection and out of it, one lock for as much of them as there is room for.

use super::TcpStream;
use crate::patience::Side;
use bytes::Bytes;
use linerate_stack::Error as HostError;
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

    /// Writes the pieces in their order, as far as there is room.
    fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let handle = self.socket.handle;
        let is_nothing = pieces.iter().all(|piece| piece.is_empty());
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
        self.send(&[IoSlice::new(data)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(pieces)
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

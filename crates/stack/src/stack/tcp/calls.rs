//! Methods of the application on TCP connections: read, write, shut down and close.

use crate::error::Error;
use crate::handle::TcpHandle;
use crate::sockets::{Socket, Sockets};
use crate::stack::Stack;
use crate::tcp::buffer_pool::BufferPool;
use crate::tcp::dispatch::{Dispatched, step_effects};
use crate::tcp::{TcpSocket, TcpView};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use linerate_tcp::Connection;
use linerate_units::Instant;

/// # Application calls: TCP
impl Stack {
    /// Adds `data` to the send buffer, as far as it fits, and returns the number of bytes added. If
    /// `data` is not empty, `Ok(0)` means that the buffer is full or that memory is short;
    /// [`linerate_tcp::Event::Writable`] follows.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed, or the reason why the connection accepts no more
    /// data.
    pub fn tcp_write(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        data: &[u8],
    ) -> Result<usize, Error> {
        let is_refused = |taken| taken == 0 && !data.is_empty();
        self.write_by(now, handle, is_refused, move |connection| connection.write(now, data))
    }

    /// Adds `data` to the send buffer like [`Stack::tcp_write`], and marks its last byte as urgent
    /// (RFC 9293 §3.8.5). RFC 6093 advises new applications against urgent data.
    ///
    /// # Errors
    /// The errors of [`Stack::tcp_write`].
    pub fn tcp_write_urgent(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        data: &[u8],
    ) -> Result<usize, Error> {
        let is_refused = |taken| taken == 0 && !data.is_empty();
        self.write_by(now, handle, is_refused, |connection| connection.write_urgent(now, data))
    }

    /// Calls `write`, which adds data to the send buffer by any method, and returns the number of
    /// bytes added. `is_refused` takes this number, and returns whether the application must wait
    /// until it can write more.
    pub(super) fn write_by(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        is_refused: impl FnOnce(usize) -> bool,
        write: impl FnOnce(&mut Connection) -> Result<usize, linerate_tcp::Error>,
    ) -> Result<usize, Error> {
        self.advance_clock(now);
        let taken = self.with_buffers(
            |sockets| sockets.tcp_mut(handle),
            |pool, socket| {
                pool.give_to_send(socket);
                write(&mut socket.connection)
            },
        )?;
        if is_refused(taken) {
            self.wait_to_write(handle)?;
        }
        Ok(taken)
    }

    /// Handles a write for which there was no room. If the send buffer contains no unacknowledged
    /// data, the connection lacks memory, so it joins the queue of connections that wait for
    /// memory. Otherwise the next acknowledgement makes room.
    #[cold]
    fn wait_to_write(&mut self, handle: TcpHandle) -> Result<(), Error> {
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        if socket.connection.unacknowledged_bytes() == 0 {
            self.wait_for_memory(index);
        }
        Ok(())
    }

    /// Reads received data into `into`, and returns the number of bytes read. If `into` is not
    /// empty, `Ok(0)` means the end of the stream.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if there is no data yet; [`Error::Closed`] if the handle is closed; or
    /// the reason why the connection ended.
    #[inline]
    pub fn tcp_read(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        into: &mut [u8],
    ) -> Result<usize, Error> {
        self.read_by(now, handle, !into.is_empty(), move |connection| connection.read(now, into))
    }

    /// Calls `read`, which reads received data by any method, and returns its result. `wants_some`
    /// says whether the application requests at least one byte.
    #[inline]
    pub(super) fn read_by<R>(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        wants_some: bool,
        read: impl FnOnce(&mut Connection) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        self.advance_clock(now);
        let Some(socket) = self.sockets.full_tcp(handle) else {
            return self.read_compact(handle, read);
        };
        if socket.connection.has_nothing_to_read() && wants_some {
            // Nothing was read, so no dispatch is needed. This fast path is common, because an
            // application that reads until `WouldBlock` gets this error once per batch of data.
            return Err(Error::WouldBlock);
        }
        self.read_full(handle.index(), read)
    }

    /// Converts a compact connection to its full form, and reads from it. Returns an error if
    /// `handle` is closed.
    #[cold]
    fn read_compact<R>(
        &mut self,
        handle: TcpHandle,
        read: impl FnOnce(&mut Connection) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        let (index, _) = self.sockets.tcp_mut(handle)?;
        self.read_full(index, read)
    }

    /// Reads from the connection at `index`, which must belong to an application and must not be
    /// compact.
    #[inline(never)]
    fn read_full<R>(
        &mut self,
        index: u32,
        read: impl FnOnce(&mut Connection) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        self.with_buffers(
            |sockets| Ok((index, sockets.full_at(index).ok_or(Error::Closed)?)),
            |pool, socket| {
                let result = read(&mut socket.connection);
                pool.reclaim_after_read(socket);
                result
            },
        )
    }

    /// Finds a connection by `find`, performs `step` on it, which is a read or write, and
    /// dispatches the effects of this step.
    #[inline(always)]
    fn with_buffers<R>(
        &mut self,
        find: impl FnOnce(&mut Sockets) -> Result<(u32, &mut TcpSocket), Error>,
        step: impl FnOnce(&mut BufferPool, &mut TcpSocket) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        let (index, socket) = find(&mut self.sockets)?;
        self.memory.supply(socket);
        let result = step(&mut self.buffer_pool, socket);
        if step_effects!(self).dispatch_read_or_write(index, socket) == Dispatched::Partly {
            self.dispatch_slowly(index);
        }
        Ok(result?)
    }

    /// Copies received data into `into` like [`Stack::tcp_read`], but leaves the data in the
    /// receive buffer.
    ///
    /// # Errors
    /// The errors of [`Stack::tcp_read`].
    pub fn tcp_peek(&self, handle: TcpHandle, into: &mut [u8]) -> Result<usize, Error> {
        Ok(self.sockets.tcp(handle)?.connection.peek(into)?)
    }

    /// Closes the sending direction: a FIN follows the written data. The application can still
    /// read.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_shutdown_write(&mut self, now: Instant, handle: TcpHandle) -> Result<(), Error> {
        self.with_connection(now, handle, |connection| connection.shutdown_write(now))?;
        self.memory.stop_waiting(handle.index());
        Ok(())
    }

    /// Closes the receiving direction. Data that arrives from now on is dropped.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_shutdown_read(&mut self, now: Instant, handle: TcpHandle) -> Result<(), Error> {
        self.with_connection(now, handle, |connection| connection.shutdown_read(now))
    }

    /// Closes the connection and its handle. The connection becomes an orphan, which sends the
    /// remaining written data until the linger time ends. If the host already has the maximum
    /// number of orphans ([`Stack::orphans`]), it resets the connection instead.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle was already closed.
    pub fn tcp_close(&mut self, now: Instant, handle: TcpHandle) -> Result<(), Error> {
        self.advance_clock(now);
        let has_room = self.orphans < self.limits.orphans;
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        if !has_room && socket.connection.state() != linerate_tcp::State::TimeWait {
            self.counted.tcp_extra.orphans_reset += 1;
            socket.connection.abort(now);
        }
        socket.connection.close(now);
        self.release(index);
        Ok(())
    }

    /// Aborts the connection, which sends a reset to the peer, and closes its handle.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle was already closed.
    pub fn tcp_abort(&mut self, now: Instant, handle: TcpHandle) -> Result<(), Error> {
        self.advance_clock(now);
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        socket.connection.abort(now);
        socket.connection.close(now);
        self.release(index);
        Ok(())
    }

    /// Resets all orphans ([`Stack::orphans`]). An application calls this method before its host
    /// leaves the network, so that the peers do not wait for data that will never arrive.
    pub fn tcp_abort_orphans(&mut self, now: Instant) {
        self.advance_clock(now);
        let is_orphan = |socket: &Socket| socket.as_tcp().is_some_and(|socket| socket.is_orphan());
        let orphans =
            self.sockets.iter().filter(|(_, socket)| is_orphan(socket)).map(|(index, _)| index);
        for index in orphans.collect::<Vec<_>>() {
            if let Some(socket) = self.sockets.tcp_at(index) {
                socket.connection.abort(now);
            }
            self.dispatch_step(index);
        }
    }

    /// Returns the connection, to inspect its state. A compact connection is returned as a copy in
    /// its full form. Returns `None` if the handle is closed.
    #[must_use]
    pub fn tcp(&self, handle: TcpHandle) -> Option<Cow<'_, Connection>> {
        Some(match self.sockets.tcp(handle).ok()? {
            TcpView::Full(socket) => Cow::Borrowed(&socket.connection),
            TcpView::Unpacked(socket) => Cow::Owned(socket.connection),
        })
    }

    /// Performs `step` on a connection, dispatches the effects of this step, and returns the result
    /// of `step`.
    #[inline]
    pub(super) fn with_connection<R>(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        step: impl FnOnce(&mut Connection) -> R,
    ) -> Result<R, Error> {
        self.advance_clock(now);
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        self.memory.supply(socket);
        let result = step(&mut socket.connection);
        if step_effects!(self).dispatch(index, socket) == Dispatched::Partly {
            self.dispatch_slowly(index);
        }
        Ok(result)
    }
}

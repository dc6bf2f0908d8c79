//! The calls of applications on TCP connections.

use crate::demux::Flow;
use crate::error::Error;
use crate::handle::TcpHandle;
use crate::ip::interface::Audience;
use crate::sockets::{Socket, Sockets};
use crate::stack::Stack;
use crate::tcp::connect_options::ConnectOptions;
use crate::tcp::dispatch::{Dispatched, step_effects};
use crate::tcp::warm_memory::WarmMemory;
use crate::tcp::{Owner, TcpSocket, TcpView};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::num::NonZeroU8;
use linerate_tcp::{Connection, Open};
use linerate_units::Instant;
use linerate_wire::TypeOfService;

impl Stack {
    /// Opens a connection. [`linerate_tcp::Event::Connected`] or [`linerate_tcp::Event::Closed`]
    /// reports the result of the handshake.
    ///
    /// # Errors
    /// The reason why the destination is invalid or without a route, no port is available, or the
    /// limit of sockets is reached.
    pub fn tcp_connect(
        &mut self,
        now: Instant,
        remote: SocketAddrV4,
        options: &ConnectOptions,
    ) -> Result<TcpHandle, Error> {
        self.advance_clock(now);
        let audience = self.interface.audience(*remote.ip());
        let is_unspecified = remote.port() == 0 || remote.ip().is_unspecified();
        if audience == Audience::Broadcast || is_unspecified || remote.ip().is_multicast() {
            return Err(Error::InvalidDestination(remote));
        }
        let path = self.path_to(now, *remote.ip())?;
        self.sockets.has_room()?;
        let wanted = options.local.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        let address = if wanted.ip().is_unspecified() { path.source } else { *wanted.ip() };
        if address != path.source {
            self.interface.check_source(address, *remote.ip())?;
        }
        // Connections of the host with itself stay in this shard, independent of the steering of
        // the link.
        let is_local = audience == Audience::Us;
        let local =
            self.choose_tcp_port(SocketAddrV4::new(address, wanted.port()), remote, is_local)?;
        let rules = self.tcp_configs.choose(options.config.as_ref());
        let offer = if options.fast_open { self.offer_fast_open(now, local, remote) } else { None };
        let handle =
            self.insert_tcp(Owner::Application, (local, remote), &path, rules, Open::Active, None);
        if let Some(offer) = offer
            && let Some(socket) = self.sockets.tcp_at(handle.index())
        {
            socket.connection.try_fast_open(offer);
        }
        self.counted.tcp.active_opens += 1;
        self.schedule_opened(handle.index());
        Ok(handle)
    }

    /// Returns the requested port, unless a connection to `remote` uses it, or else a free one.
    fn choose_tcp_port(
        &mut self,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        is_local: bool,
    ) -> Result<SocketAddrV4, Error> {
        let at = |port| SocketAddrV4::new(*local.ip(), port);
        let (flows, listeners) = (&mut self.flows, &self.listeners);
        let owner = |port| self.steering.of_connection(at(port), remote);
        let is_others = |port| !is_local && owner(port) != self.shard.number;
        // A connection with itself would be a simultaneous open, which no application wants.
        let mut is_connected =
            |port| at(port) == remote || !flows.is_free(Flow::new(at(port), remote));
        if local.port() != 0 {
            return match () {
                () if is_others(local.port()) => {
                    Err(Error::OtherShard { local, shard: owner(local.port()) })
                }
                () if is_connected(local.port()) => Err(Error::AddressInUse(local)),
                () => Ok(local),
            };
        }
        let anywhere = |port| SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
        let has_listener = |port| {
            [at(port), anywhere(port)]
                .iter()
                .any(|&local| listeners.get(Flow::bound(local)).is_some())
        };
        let is_taken = |port| is_others(port) || is_connected(port) || has_listener(port);
        let port = self.tcp_ports.choose(*local.ip(), remote, is_taken);
        port.map(at).ok_or(Error::PortsExhausted(remote))
    }

    /// Adds `data` to the send buffer, and returns the number of bytes that fit. `Ok(0)` for data
    /// that is not empty means that the buffer is full; [`linerate_tcp::Event::Writable`] follows.
    ///
    /// # Errors
    /// [`Error::Closed`], or the reason why the connection takes no more data.
    pub fn tcp_write(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        data: &[u8],
    ) -> Result<usize, Error> {
        let is_refused = |taken| taken == 0 && !data.is_empty();
        self.write_by(now, handle, is_refused, move |connection| connection.write(now, data))
    }

    /// Sends data whose last byte is urgent, which RFC 6093 advises against. Otherwise like
    /// [`Stack::tcp_write`].
    ///
    /// # Errors
    /// Like [`Stack::tcp_write`].
    pub fn tcp_write_urgent(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        data: &[u8],
    ) -> Result<usize, Error> {
        let is_refused = |taken| taken == 0 && !data.is_empty();
        self.write_by(now, handle, is_refused, |connection| connection.write_urgent(now, data))
    }

    /// Performs a write of any kind. `is_refused` tells from the written count whether there was no
    /// room.
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
            |warm, socket| {
                warm.lend_to_send(socket);
                write(&mut socket.connection)
            },
        )?;
        if is_refused(taken) {
            self.wait_to_write(handle)?;
        }
        Ok(taken)
    }

    /// Handles a refused write. With an empty send buffer, the connection lacks memory and waits
    /// for it. Otherwise the next acknowledgement makes room.
    #[cold]
    fn wait_to_write(&mut self, handle: TcpHandle) -> Result<(), Error> {
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        if socket.connection.unacknowledged_bytes() == 0 {
            self.wait_for_memory(index);
        }
        Ok(())
    }

    /// Reads received data; `Ok(0)` for a buffer that is not empty is the end of the stream.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if there is no data yet; [`Error::Closed`]; or the reason why the
    /// connection ended.
    #[inline]
    pub fn tcp_read(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        into: &mut [u8],
    ) -> Result<usize, Error> {
        self.read_by(now, handle, !into.is_empty(), move |connection| connection.read(now, into))
    }

    /// Performs a read of any kind. `wants_some` tells whether the application requests any bytes.
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
            // A fast path without dispatch: an application that reads until `WouldBlock` fails once
            // per batch of data.
            return Err(Error::WouldBlock);
        }
        self.read_full(handle.index(), read)
    }

    /// Reads from a compact connection, if it exists. Reading unpacks it.
    #[cold]
    fn read_compact<R>(
        &mut self,
        handle: TcpHandle,
        read: impl FnOnce(&mut Connection) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        let (index, _) = self.sockets.tcp_mut(handle)?;
        self.read_full(index, read)
    }

    /// Reads from the connection at this index, which is not compact and belongs to the
    /// application.
    #[inline(never)]
    fn read_full<R>(
        &mut self,
        index: u32,
        read: impl FnOnce(&mut Connection) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        self.with_buffers(
            |sockets| Ok((index, sockets.full_at(index).ok_or(Error::Closed)?)),
            |warm, socket| {
                let result = read(&mut socket.connection);
                warm.take_back_read(socket);
                result
            },
        )
    }

    /// Performs a read or write, and dispatches the step.
    #[inline(always)]
    fn with_buffers<R>(
        &mut self,
        find: impl FnOnce(&mut Sockets) -> Result<(u32, &mut TcpSocket), Error>,
        step: impl FnOnce(&mut WarmMemory, &mut TcpSocket) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        let (index, socket) = find(&mut self.sockets)?;
        self.memory.supply(socket);
        let result = step(&mut self.warm_memory, socket);
        if step_effects!(self).dispatch_read_or_write(index, socket) == Dispatched::Partly {
            self.dispatch_slowly(index);
        }
        Ok(result?)
    }

    /// Copies received data without removing it. Otherwise like [`Stack::tcp_read`].
    ///
    /// # Errors
    /// Like [`Stack::tcp_read`].
    pub fn tcp_peek(&self, handle: TcpHandle, into: &mut [u8]) -> Result<usize, Error> {
        Ok(self.sockets.tcp(handle)?.connection.peek(into)?)
    }

    /// Closes the sending direction. Reading remains possible.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_shutdown_write(&mut self, now: Instant, handle: TcpHandle) -> Result<(), Error> {
        self.with_connection(now, handle, |connection| connection.shutdown_write(now))?;
        self.memory.stop_waiting(handle.index());
        Ok(())
    }

    /// Closes the receiving direction. Data that arrives is dropped.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_shutdown_read(&mut self, now: Instant, handle: TcpHandle) -> Result<(), Error> {
        self.with_connection(now, handle, |connection| connection.shutdown_read(now))
    }

    /// Closes the connection and its handle. Written data is still sent, within the linger time.
    /// Beyond the limit of orphans, the connection is reset instead.
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

    /// Resets the connection and closes its handle.
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

    /// Resets all orphans. A host that leaves the network calls this, so that its peers do not wait
    /// for the rest.
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

    /// Returns the connection for reading. A compact one is unpacked into a copy. Returns `None` if
    /// the handle is closed.
    #[must_use]
    pub fn tcp(&self, handle: TcpHandle) -> Option<Cow<'_, Connection>> {
        Some(match self.sockets.tcp(handle).ok()? {
            TcpView::Full(socket) => Cow::Borrowed(&socket.connection),
            TcpView::Unpacked(socket) => Cow::Owned(socket.connection),
        })
    }

    /// Calls a function that changes options of the connection, and dispatches the change.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_configure<R>(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        change: impl FnOnce(&mut Connection) -> R,
    ) -> Result<R, Error> {
        self.with_connection(now, handle, change)
    }

    /// Sets the type of service of segments from now on (RFC 9293 §3.9.1.9). It should be set
    /// before the connection sends, because packets of different classes can overtake each other.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_set_type_of_service(
        &mut self,
        handle: TcpHandle,
        type_of_service: TypeOfService,
    ) -> Result<(), Error> {
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        socket.headers.set_type_of_service(type_of_service);
        self.dispatch_step(index);
        self.burst.forget();
        Ok(())
    }

    /// Sets the time to live of segments from now on (RFC 9293 §3.9.2). The default is 64.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_set_ttl(&mut self, handle: TcpHandle, ttl: NonZeroU8) -> Result<(), Error> {
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        socket.headers.set_ttl(ttl);
        self.dispatch_step(index);
        self.burst.forget();
        Ok(())
    }

    /// Returns the local address and port.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_local_addr(&self, handle: TcpHandle) -> Result<SocketAddrV4, Error> {
        Ok(self.sockets.tcp(handle)?.local)
    }

    /// Returns the address and port of the peer.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_peer_addr(&self, handle: TcpHandle) -> Result<SocketAddrV4, Error> {
        Ok(self.sockets.tcp(handle)?.peer)
    }

    /// Performs a step of a connection, and dispatches it.
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

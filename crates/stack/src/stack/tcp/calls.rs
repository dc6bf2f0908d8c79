//! What an application can do with TCP connections.

use crate::demux::Flow;
use crate::error::Error;
use crate::handle::TcpHandle;
use crate::ip::interface::Audience;
use crate::sockets::{Socket, Sockets};
use crate::stack::Stack;
use crate::tcp::connect_options::ConnectOptions;
use crate::tcp::settle::{Settled, concerned};
use crate::tcp::warm_memory::WarmMemory;
use crate::tcp::{Owner, Seen, TcpSocket};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::num::NonZeroU8;
use linerate_tcp::{Connection, Open};
use linerate_units::Instant;
use linerate_wire::TypeOfService;

impl Stack {
    /// Opens a connection. [`linerate_tcp::Event::Connected`] tells when the peer has answered, and
    /// [`linerate_tcp::Event::Closed`] if it has not.
    ///
    /// # Errors
    /// Why there is no way to `remote`, no port to speak from, or no room for one socket more.
    pub fn tcp_connect(
        &mut self,
        now: Instant,
        remote: SocketAddrV4,
        options: &ConnectOptions,
    ) -> Result<TcpHandle, Error> {
        self.pass_time(now);
        let audience = self.interface.audience(*remote.ip());
        let is_nobody = remote.port() == 0 || remote.ip().is_unspecified();
        if audience == Audience::Broadcast || is_nobody || remote.ip().is_multicast() {
            return Err(Error::InvalidDestination(remote));
        }
        let path = self.path_to(now, *remote.ip())?;
        self.sockets.has_room()?;
        let wanted = options.local.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        let address = if wanted.ip().is_unspecified() { path.source } else { *wanted.ip() };
        if address != path.source {
            self.interface.check_source(address, *remote.ip())?;
        }
        // What this host sends to itself stays in the shard, whoever's flow it would be on the link.
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
        self.call_newcomer(handle.index());
        Ok(handle)
    }

    /// The port that was asked for, if no conversation with `remote` has it; else one that nobody has.
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
        // A connection with itself would be a simultaneous open that nobody asked for.
        let mut talks = |port| at(port) == remote || !flows.is_free(Flow::new(at(port), remote));
        if local.port() != 0 {
            return match () {
                () if is_others(local.port()) => {
                    Err(Error::OtherShard { local, shard: owner(local.port()) })
                }
                () if talks(local.port()) => Err(Error::AddressInUse(local)),
                () => Ok(local),
            };
        }
        let anywhere = |port| SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
        let listens = |port| {
            [at(port), anywhere(port)]
                .iter()
                .any(|&local| listeners.get(Flow::bound(local)).is_some())
        };
        let is_taken = |port| is_others(port) || talks(port) || listens(port);
        let port = self.tcp_ports.choose(*local.ip(), remote, is_taken);
        port.map(at).ok_or(Error::PortsExhausted(remote))
    }

    /// Adds `data` to what the connection sends, and returns how much of it there was room for.
    /// `Ok(0)` for data that is not empty means: come back after [`linerate_tcp::Event::Writable`].
    ///
    /// # Errors
    /// [`Error::Closed`], or why the connection takes no more data.
    pub fn tcp_write(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        data: &[u8],
    ) -> Result<usize, Error> {
        let is_refused = |taken| taken == 0 && !data.is_empty();
        self.write_by(now, handle, is_refused, move |connection| connection.write(now, data))
    }

    /// Sends data whose last byte is urgent, which RFC 6093 advises against; otherwise as
    /// [`Stack::tcp_write`].
    ///
    /// # Errors
    /// As [`Stack::tcp_write`].
    pub fn tcp_write_urgent(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        data: &[u8],
    ) -> Result<usize, Error> {
        let is_refused = |taken| taken == 0 && !data.is_empty();
        self.write_by(now, handle, is_refused, |connection| connection.write_urgent(now, data))
    }

    /// Writes in some way to a connection; `is_refused` says of how much that was whether there was no room.
    pub(super) fn write_by(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        is_refused: impl FnOnce(usize) -> bool,
        write: impl FnOnce(&mut Connection) -> Result<usize, linerate_tcp::Error>,
    ) -> Result<usize, Error> {
        self.pass_time(now);
        let taken = self.use_connection(
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

    /// An application could write nothing. If its buffer is empty all the same it waits for the memory of
    /// others; while there is anything in it, the acknowledgement of that tells that there is room.
    #[cold]
    fn wait_to_write(&mut self, handle: TcpHandle) -> Result<(), Error> {
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        if socket.connection.unacknowledged_bytes() == 0 {
            self.wait_for_memory(index);
        }
        Ok(())
    }

    /// Takes received bytes; `Ok(0)` for a buffer that is not empty is the end of the stream.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if nothing is there yet; [`Error::Closed`]; or why the connection ended.
    #[inline]
    pub fn tcp_read(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        into: &mut [u8],
    ) -> Result<usize, Error> {
        self.read_by(now, handle, !into.is_empty(), move |connection| connection.read(now, into))
    }

    /// Reads in some way from a connection, of which its application wants some bytes or none.
    #[inline]
    pub(super) fn read_by<R>(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        wants_some: bool,
        read: impl FnOnce(&mut Connection) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        self.pass_time(now);
        let Some(socket) = self.sockets.awake_of(handle) else {
            return self.read_at_rest(handle, read);
        };
        if socket.connection.has_nothing_to_read() && wants_some {
            // Nothing follows from that: who reads all that there is asks once more than there is something.
            return Err(Error::WouldBlock);
        }
        self.read_what_is_there(handle.index(), read)
    }

    /// Reads from a connection that is woken for it, if it may be read from.
    #[cold]
    fn read_at_rest<R>(
        &mut self,
        handle: TcpHandle,
        read: impl FnOnce(&mut Connection) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        let (index, _) = self.sockets.tcp_mut(handle)?;
        self.read_what_is_there(index, read)
    }

    /// Reads from the connection with this number, which is awake and which the application holds.
    #[inline(never)]
    fn read_what_is_there<R>(
        &mut self,
        index: u32,
        read: impl FnOnce(&mut Connection) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        self.use_connection(
            |sockets| Ok((index, sockets.awake_at(index).ok_or(Error::Closed)?)),
            |warm, socket| {
                let result = read(&mut socket.connection);
                warm.take_back_read(socket);
                result
            },
        )
    }

    /// Reads from a connection or writes to it, and does what follows from that.
    #[inline(always)]
    fn use_connection<R>(
        &mut self,
        find: impl FnOnce(&mut Sockets) -> Result<(u32, &mut TcpSocket), Error>,
        step: impl FnOnce(&mut WarmMemory, &mut TcpSocket) -> Result<R, linerate_tcp::Error>,
    ) -> Result<R, Error> {
        let (index, socket) = find(&mut self.sockets)?;
        self.memory.supply(socket);
        let result = step(&mut self.warm_memory, socket);
        if concerned!(self).settle_use(index, socket) == Settled::Not {
            self.follow(index);
        }
        Ok(result?)
    }

    /// Copies received bytes without taking them; otherwise as [`Stack::tcp_read`].
    ///
    /// # Errors
    /// As [`Stack::tcp_read`].
    pub fn tcp_peek(&self, handle: TcpHandle, into: &mut [u8]) -> Result<usize, Error> {
        Ok(self.sockets.tcp(handle)?.connection.peek(into)?)
    }

    /// Closes the sending direction; reading goes on.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_shutdown_write(&mut self, now: Instant, handle: TcpHandle) -> Result<(), Error> {
        self.with_connection(now, handle, |connection| connection.shutdown_write(now))?;
        self.memory.stop_waiting(handle.index());
        Ok(())
    }

    /// Closes the receiving direction: what arrives is thrown away.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_shutdown_read(&mut self, now: Instant, handle: TcpHandle) -> Result<(), Error> {
        self.with_connection(now, handle, |connection| connection.shutdown_read(now))
    }

    /// Lets go of the connection. What was written is still sent, as its linger time allows; there
    /// can be so many such connections, beyond which they are reset at once.
    ///
    /// # Errors
    /// [`Error::Closed`] if the application has let go before.
    pub fn tcp_close(&mut self, now: Instant, handle: TcpHandle) -> Result<(), Error> {
        self.pass_time(now);
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

    /// Resets the connection and lets go of it.
    ///
    /// # Errors
    /// [`Error::Closed`] if the application has let go before.
    pub fn tcp_abort(&mut self, now: Instant, handle: TcpHandle) -> Result<(), Error> {
        self.pass_time(now);
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        socket.connection.abort(now);
        socket.connection.close(now);
        self.release(index);
        Ok(())
    }

    /// Resets the connections that no application holds any more: the host leaves the network, and their peers would
    /// wait for the rest in vain.
    pub fn tcp_abort_orphans(&mut self, now: Instant) {
        self.pass_time(now);
        let is_orphan = |socket: &Socket| socket.as_tcp().is_some_and(|socket| socket.is_orphan());
        let orphans =
            self.sockets.iter().filter(|(_, socket)| is_orphan(socket)).map(|(index, _)| index);
        for index in orphans.collect::<Vec<_>>() {
            if let Some(socket) = self.sockets.tcp_at(index) {
                socket.connection.abort(now);
            }
            self.settle(index);
        }
    }

    /// The connection, to be asked how it is; one at rest is unpacked for that. `None` if the application has
    /// let go of it.
    #[must_use]
    pub fn tcp(&self, handle: TcpHandle) -> Option<Cow<'_, Connection>> {
        Some(match self.sockets.tcp(handle).ok()? {
            Seen::Awake(socket) => Cow::Borrowed(&socket.connection),
            Seen::Resting(socket) => Cow::Owned(socket.connection),
        })
    }

    /// Changes options of the connection.
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

    /// Says how routers are to treat what the connection sends from now on (RFC 9293 §3.9.1.9). A
    /// program does best to say it once, before the connection has sent anything: packets of
    /// different kinds overtake each other.
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
        self.settle(index);
        self.burst.forget();
        Ok(())
    }

    /// Says how many routers what the connection sends from now on may pass (RFC 9293 §3.9.2); 64
    /// unless this was called.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_set_ttl(&mut self, handle: TcpHandle, ttl: NonZeroU8) -> Result<(), Error> {
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        socket.headers.set_ttl(ttl);
        self.settle(index);
        self.burst.forget();
        Ok(())
    }

    /// The address and port that the connection speaks from.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_local_addr(&self, handle: TcpHandle) -> Result<SocketAddrV4, Error> {
        Ok(self.sockets.tcp(handle)?.local)
    }

    /// The address and port of the peer.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_peer_addr(&self, handle: TcpHandle) -> Result<SocketAddrV4, Error> {
        Ok(self.sockets.tcp(handle)?.peer)
    }

    /// Does something with a connection, and what follows from it.
    #[inline]
    pub(super) fn with_connection<R>(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        step: impl FnOnce(&mut Connection) -> R,
    ) -> Result<R, Error> {
        self.pass_time(now);
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        self.memory.supply(socket);
        let result = step(&mut socket.connection);
        if concerned!(self).settle(index, socket) == Settled::Not {
            self.follow(index);
        }
        Ok(result)
    }
}

//! Listeners: handshakes that go on, connections that wait to be accepted, and the limits on both.
//!
//! A SYN makes a half-open connection, which stands in the listener's SYN queue. When that is full,
//! a new SYN is answered by a cookie and not kept (`cookies`), so that a flood of any rate shuts nobody
//! out. Without cookies it takes the place of the oldest half-open connection (RFC 4987 §3.4): an honest
//! peer needs its place for one round trip only, and gets it even in a flood, as long as the flood needs
//! longer than that to fill the queue; to drop the new SYN instead would shut it out for
//! as long as the flood lasts. When the accept queue is full, new SYNs are dropped, and so is the
//! acknowledgement that would complete a handshake, as Linux does: the peers try again.

mod cookies;
mod defer;
mod fast_open;

use crate::collections::list::List;
use crate::demux::Flow;
use crate::error::Error;
use crate::event::INCOMING;
use crate::handle::{ListenHandle, TcpHandle};
use crate::ip::Arrived;
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::tcp::listen::ListenOptions;
use crate::tcp::listen::ListenStatistics;
use crate::tcp::listen::Listener;
use crate::tcp::listen::fast_open::{Admission, Pending};
use crate::tcp::{ConfigChoice, Owner};
use alloc::boxed::Box;
use core::net::{Ipv4Addr, SocketAddrV4};
use linerate_tcp::{Config, Events, Open};
use linerate_units::Instant;
use linerate_wire::Segment;

impl Stack {
    /// Listens at an address of this host, or at 0.0.0.0 for all of them. [`crate::Event::Incoming`]
    /// tells when there is something to accept.
    ///
    /// # Errors
    /// [`Error::AddressNotOurs`], [`Error::AddressInUse`], [`Error::PortsExhausted`] or
    /// [`Error::TooManySockets`].
    pub fn tcp_listen(
        &mut self,
        local: SocketAddrV4,
        options: &ListenOptions,
    ) -> Result<ListenHandle, Error> {
        if !local.ip().is_unspecified() && !self.interface.is_ours(*local.ip()) {
            return Err(Error::AddressNotOurs(*local.ip()));
        }
        self.sockets.has_room()?;
        let local = self.choose_listen_port(local)?;
        let options = ListenOptions {
            backlog: options.backlog.max(1),
            syn_backlog: options.syn_backlog.max(1),
            ..*options
        };
        let listener = Listener {
            local,
            options,
            half_open: List::EMPTY,
            acceptable: List::EMPTY,
            cookie_sent: None,
            pending: Pending::default(),
            counted: ListenStatistics::default(),
        };
        let index = self.sockets.insert(Socket::Listen(Box::new(listener))).index();
        self.listeners.insert(Flow::bound(local), index);
        self.sockets.listen_handle(index).ok_or(Error::Closed)
    }

    fn choose_listen_port(&mut self, local: SocketAddrV4) -> Result<SocketAddrV4, Error> {
        let at = |port| SocketAddrV4::new(*local.ip(), port);
        let listeners = &self.listeners;
        let is_taken = |port| listeners.get(Flow::bound(at(port))).is_some();
        if local.port() != 0 {
            return if is_taken(local.port()) {
                Err(Error::AddressInUse(local))
            } else {
                Ok(local)
            };
        }
        let anyone = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let port = self.tcp_ports.choose(*local.ip(), anyone, is_taken);
        port.map(at).ok_or(Error::PortsExhausted(anyone))
    }

    /// Takes the oldest connection that waits to be accepted, with its peer. `None` if there is none,
    /// or the listener was closed.
    pub fn tcp_accept(&mut self, handle: ListenHandle) -> Option<(TcpHandle, SocketAddrV4)> {
        let (_, listener) = self.sockets.listener_mut(handle).ok()?;
        let index = self.queues.pop_front(&mut listener.acceptable)?;
        self.wake(index);
        self.handle_newcomer(index);
        let (handle, socket) = self.sockets.full_entry(index)?;
        socket.owner = Owner::Application;
        let (connection, peer) = (&socket.connection, socket.peer);
        // Nobody was told of what happened before there was anybody to tell.
        let mut events = Events::empty();
        events.set(Events::READABLE, connection.readable_bytes() > 0);
        events.set(Events::END_OF_STREAM, connection.is_at_end_of_stream());
        if !events.is_empty() {
            self.events.note(index, events.bits());
        }
        Some((handle, peer))
    }

    /// Has connections whose SYN arrives from now on keep to `config`, or to the host's rules.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_listen_configure(
        &mut self,
        handle: ListenHandle,
        config: Option<Config>,
    ) -> Result<(), Error> {
        let (_, listener) = self.sockets.listener_mut(handle)?;
        listener.options.config = config;
        Ok(())
    }

    /// Where the listener listens.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_listen_addr(&self, handle: ListenHandle) -> Result<SocketAddrV4, Error> {
        Ok(self.sockets.listener(handle)?.local)
    }

    /// What the listener has counted, and how it stands.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_listen_statistics(&self, handle: ListenHandle) -> Result<ListenStatistics, Error> {
        let listener = self.sockets.listener(handle)?;
        let (half_open, acceptable) = (listener.half_open.len(), listener.acceptable.len());
        let pending_fast = listener.pending.len();
        Ok(ListenStatistics { half_open, acceptable, pending_fast, ..listener.counted })
    }

    /// Ends a listener. Connections that nobody has accepted are reset.
    ///
    /// # Errors
    /// [`Error::Closed`] if it was ended before.
    pub fn tcp_listen_close(&mut self, now: Instant, handle: ListenHandle) -> Result<(), Error> {
        self.advance_clock(now);
        let (index, listener) = self.sockets.listener_mut(handle)?;
        let local = listener.local;
        while let Some(connection) = self.next_of(index) {
            if let Some(socket) = self.sockets.tcp_at(connection) {
                socket.connection.abort(now);
            }
            self.release(connection);
        }
        self.listeners.remove(Flow::bound(local), index);
        self.events.forget(index);
        self.sockets.remove(index);
        Ok(())
    }

    /// Takes any connection of a listener out of its queue.
    fn next_of(&mut self, index: u32) -> Option<u32> {
        let listener = self.sockets.listener_at(index)?;
        let half_open = self.queues.pop_front(&mut listener.half_open);
        half_open.or_else(|| self.queues.pop_front(&mut listener.acceptable))
    }

    /// The listener for connections to `local`: one at that address, else one at all addresses.
    pub(crate) fn listener_at(&mut self, local: SocketAddrV4) -> Option<u32> {
        let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, local.port());
        let exact = self.listeners.lookup(Flow::bound(local));
        exact.or_else(|| self.listeners.lookup(Flow::bound(anywhere)))
    }

    /// A SYN asks a listener for a connection.
    pub(crate) fn open_half(&mut self, arrived: &Arrived<'_>, index: u32, syn: &Segment<'_>) {
        if !self.has_accept_room(index) {
            self.count_overflow(index);
            self.drop_syn(index);
            return;
        }
        let Some(listener) = self.sockets.listener_at(index) else { return };
        let is_full = listener.is_full();
        if listener.gives_cookies() {
            self.answer_with_cookie(arrived, index, syn);
            return;
        }
        let admission = match listener.options.fast_open {
            Some(limit) => self.judge_fast_open(arrived, (index, limit), syn),
            None => Admission::Ordinary(None),
        };
        if is_full && matches!(admission, Admission::Ordinary(_)) {
            self.recycle_half_open(index);
        }
        self.keep_syn(arrived, index, syn, admission);
    }

    fn keep_syn(
        &mut self,
        arrived: &Arrived<'_>,
        index: u32,
        syn: &Segment<'_>,
        admission: Admission,
    ) {
        let (local, peer) = arrived.ends(syn);
        let path_info = self.path_to(arrived.arrival.at, *peer.ip());
        let (Ok(path_info), Ok(())) = (path_info, self.sockets.has_room()) else {
            self.drop_syn(index);
            return;
        };
        let rules = self.rules_of(index);
        let (Admission::Ordinary(cookie) | Admission::Fast(cookie)) = admission;
        let is_fast = matches!(admission, Admission::Fast(_));
        let now = arrived.arrival.at;
        let owner = Owner::HalfOpen(index);
        let connection =
            self.insert_tcp(owner, (local, peer), &path_info, rules, Open::Passive, None).index();
        if let Some(socket) = self.sockets.tcp_at(connection) {
            let opening = &mut socket.connection;
            opening.learn_from_syn(syn, now);
            opening.note_codepoint_of_syn(arrived.header.type_of_service.ecn());
            if let Some(cookie) = cookie {
                opening.give_cookie(cookie);
            }
            if is_fast {
                opening.open_fast(syn);
            }
        }
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.counted.syns_kept += 1;
            if !is_fast {
                self.queues.push_back(&mut listener.half_open, connection);
            }
        }
        self.counted.tcp.passive_opens += 1;
        if is_fast {
            self.enter_pending(index, connection);
            self.dispatch_step(connection);
        } else {
            self.schedule_opened(connection);
        }
    }

    /// The rules of a listener's connections.
    fn rules_of(&mut self, index: u32) -> ConfigChoice {
        let own =
            self.sockets.listener_at(index).and_then(|listener| listener.options.config.as_ref());
        self.tcp_configs.choose(own)
    }

    /// Counts a SYN that comes to nothing.
    #[cold]
    fn drop_syn(&mut self, index: u32) {
        self.counted.tcp_extra.listen_drops += 1;
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.counted.dropped += 1;
        }
    }

    /// Counts that an accept queue is full.
    #[cold]
    pub(crate) fn count_overflow(&mut self, index: u32) {
        self.counted.tcp_extra.listen_overflows += 1;
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.counted.overflows += 1;
        }
    }

    /// Makes room in a full SYN queue.
    #[cold]
    fn recycle_half_open(&mut self, index: u32) {
        let Some(listener) = self.sockets.listener_at(index) else { return };
        if let Some(oldest) = listener.half_open.first() {
            listener.counted.recycled += 1;
            self.counted.tcp_extra.half_open_recycled += 1;
            self.counted.tcp_extra.listen_drops += 1;
            self.counted.tcp.attempt_failures += 1;
            self.retire(oldest);
        }
    }

    /// May a listener have one connection more to accept?
    pub(crate) fn has_accept_room(&mut self, index: u32) -> bool {
        let listener = self.sockets.listener_at(index);
        listener.is_some_and(|listener| listener.acceptable.len() < listener.options.backlog)
    }

    /// The handshake of a half-open connection is complete: it can be accepted.
    pub(crate) fn complete_handshake(&mut self, index: u32, connection: u32) {
        self.leave_listener(Owner::HalfOpen(index), connection);
        self.make_acceptable(index, connection);
    }

    /// A connection that is in no queue waits to be accepted from now on.
    fn make_acceptable(&mut self, index: u32, connection: u32) {
        if let Some(socket) = self.sockets.tcp_at(connection) {
            socket.owner = Owner::Acceptable(index);
        }
        if let Some(listener) = self.sockets.listener_at(index) {
            self.queues.push_back(&mut listener.acceptable, connection);
            self.events.note(index, INCOMING);
        }
    }

    /// Takes a connection out of the queue in which its owner has it, if it is in one.
    pub(crate) fn leave_listener(&mut self, owner: Owner, connection: u32) {
        let (Owner::HalfOpen(index) | Owner::Acceptable(index)) = owner else { return };
        let Some(listener) = self.sockets.listener_at(index) else { return };
        let queue = match owner {
            Owner::HalfOpen(_) => &mut listener.half_open,
            _ => &mut listener.acceptable,
        };
        if self.queues.contains(connection) {
            self.queues.remove(queue, connection);
        }
    }

    /// Judges the invariants of a listener.
    pub(crate) fn check_listener(&self, index: u32, listener: &Listener) {
        let found = self.listeners.get(Flow::bound(listener.local));
        assert_eq!(found, Some(index), "each listener is found by its address");
        assert!(listener.half_open.len() <= listener.options.syn_backlog, "SYN queues are limited");
        if let Some(handle) = self.sockets.listen_handle(index) {
            let limit = listener.options.fast_open.unwrap_or(0);
            listener.pending.check(self.count_pending(handle), limit);
        }
        assert!(listener.acceptable.len() <= listener.options.backlog, "accept queues are limited");
        for (queue, owner) in [
            (&listener.half_open, Owner::HalfOpen(index)),
            (&listener.acceptable, Owner::Acceptable(index)),
        ] {
            for connection in self.queues.iter(queue) {
                let socket = self.sockets.get(connection).and_then(Socket::as_tcp);
                assert_eq!(socket.map(|socket| socket.owner), Some(owner), "queues hold their own");
            }
        }
    }
}

//! TCP listeners: their queue of half-open connections (the SYN queue), their queue of connections
//! to accept, and the limits of both queues.
//!
//! A SYN creates a half-open connection in the SYN queue. When the SYN queue is full, the listener
//! answers a new SYN with a SYN cookie, and does not store the SYN (`cookies`). A flood of SYNs
//! thus does not exclude honest peers. With cookies disabled, a new SYN replaces the oldest
//! half-open connection (RFC 4987 §3.4). An honest peer needs its place in the queue for only one
//! round trip, whereas dropping new SYNs would exclude it for the whole flood. When the accept
//! queue is full, the listener drops new SYNs and acknowledgements that would complete a handshake,
//! as in Linux. The peer retransmits a dropped SYN, and repeats a dropped acknowledgement in its
//! data segments.

mod cookies;
mod defer;
mod fast_open;

use crate::collections::list::List;
use crate::demux::{Binding, Flow};
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
use core::net::SocketAddr;
use linerate_tcp::{Config, Events, Open};
use linerate_units::Instant;
use linerate_wire::Segment;

/// # Application calls: listeners
impl Stack {
    /// Creates a listener at an address of this host, at `0.0.0.0` for all IPv4 addresses, or at
    /// `::` for all addresses of both IP versions. A listener at `::` shows IPv4 addresses as
    /// IPv4-mapped IPv6 addresses (`::ffff:192.0.2.1`); [`ListenOptions::only_v6`] excludes IPv4.
    /// [`crate::Event::Incoming`] reports that a connection can be accepted.
    ///
    /// ```
    /// use linerate_stack::{Error, ListenOptions, Stack, StackConfig};
    /// # use core::net::SocketAddr;
    /// # use linerate_wire::MacAddress;
    ///
    /// # let mut config = StackConfig::new(MacAddress::ZERO, "192.0.2.1/24".parse()?);
    /// # config.addresses.push("2001:db8::1/64".parse()?);
    /// # let mut stack = Stack::new(config, [7; 32]);
    /// let all: SocketAddr = "[::]:80".parse()?;
    /// let all_ipv4: SocketAddr = "0.0.0.0:80".parse()?;
    /// let both = stack.tcp_listen(all, &ListenOptions::default())?;
    /// let taken = stack.tcp_listen(all_ipv4, &ListenOptions::default());
    /// assert_eq!(taken, Err(Error::AddressInUse(all_ipv4)));
    ///
    /// stack.tcp_listen_close(linerate_units::Instant::ZERO, both)?;
    /// stack.tcp_listen(all, &ListenOptions { only_v6: true, ..ListenOptions::default() })?;
    /// stack.tcp_listen(all_ipv4, &ListenOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AddressNotOurs`], [`Error::AddressInUse`], [`Error::PortsExhausted`],
    /// [`Error::TooManySockets`], [`Error::MappedBind`] or [`Error::UnknownZone`].
    pub fn tcp_listen(
        &mut self,
        local: impl Into<SocketAddr>,
        options: &ListenOptions,
    ) -> Result<ListenHandle, Error> {
        let local = local.into();
        let interface = self.interface_for(&local)?;
        self.serving(interface, |stack| stack.listen(local, options))
    }

    fn listen(
        &mut self,
        local: SocketAddr,
        options: &ListenOptions,
    ) -> Result<ListenHandle, Error> {
        let binding = Binding::new(local, options.only_v6, self.interface.number)?;
        let local = binding.local().ip();
        if !local.is_unspecified() && !self.is_ours(local) {
            return Err(Error::AddressNotOurs(local));
        }
        self.sockets.has_room()?;
        let binding = self.choose_listen_port(binding)?;
        let index = self.insert_listener(binding, options);
        for flow in binding.flows() {
            self.listeners.insert(&flow, index);
        }
        self.sockets.listen_handle(index).ok_or(Error::Closed)
    }

    /// Creates a listener without adding it to the lookup table, so it receives no segments yet.
    pub(crate) fn insert_listener(&mut self, binding: Binding, options: &ListenOptions) -> u32 {
        let options = ListenOptions {
            backlog: options.backlog.max(1),
            syn_backlog: options.syn_backlog.max(1),
            ..*options
        };
        let listener = Listener {
            binding,
            options,
            half_open: List::EMPTY,
            acceptable: List::EMPTY,
            cookie_sent: None,
            pending: Pending::default(),
            counted: ListenStatistics::default(),
        };
        self.sockets.insert(Socket::Listen(Box::new(listener))).index()
    }

    fn choose_listen_port(&mut self, binding: Binding) -> Result<Binding, Error> {
        binding.with_free_port(&mut self.tcp_ports, |flow| self.listeners.get(flow).is_some())
    }

    /// Removes and returns the oldest connection in the accept queue, with the address of its peer.
    /// Returns `None` if the queue is empty or the listener was closed.
    pub fn tcp_accept(&mut self, handle: ListenHandle) -> Option<(TcpHandle, SocketAddr)> {
        let (_, listener) = self.sockets.listener_mut(handle).ok()?;
        let index = self.queues.pop_front(&mut listener.acceptable)?;
        let is_mapped = listener.binding.is_mapped();
        self.unpack(index);
        self.handle_newcomer(index);
        let (handle, socket) = self.sockets.full_entry(index)?;
        (socket.owner, socket.is_mapped) = (Owner::Application, is_mapped);
        let (connection, peer) = (&socket.connection, socket.shown_remote());
        // Events of the connection before this call were not reported, because no application owned
        // the connection. They are noted now, if their condition is still true.
        let mut events = Events::empty();
        events.set(Events::READABLE, connection.readable_bytes() > 0);
        events.set(Events::END_OF_STREAM, connection.is_at_end_of_stream());
        if !events.is_empty() {
            self.events.note(index, events.bits());
        }
        Some((handle, peer))
    }

    /// Sets the TCP configuration of connections whose SYN arrives from now on. `None` selects the
    /// default configuration of the host.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_listen_configure(
        &mut self,
        handle: ListenHandle,
        config: Option<Config>,
    ) -> Result<(), Error> {
        let (_, listener) = self.sockets.listener_mut(handle)?;
        listener.options.config = config;
        Ok(())
    }

    /// Returns the address and port to which the listener is bound.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_listen_addr(&self, handle: ListenHandle) -> Result<SocketAddr, Error> {
        Ok(self.sockets.listener(handle)?.binding.shown_local())
    }

    /// Returns whether a listener at an IPv6 address excludes IPv4 ([`ListenOptions::only_v6`]).
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::NotIpv6`] for a listener at an IPv4 address.
    pub fn tcp_listen_only_v6(&self, handle: ListenHandle) -> Result<bool, Error> {
        let binding = &self.sockets.listener(handle)?.binding;
        binding.only_v6().ok_or_else(|| Error::NotIpv6(binding.shown_local()))
    }

    /// Returns the counters and the queue lengths of the listener.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_listen_statistics(&self, handle: ListenHandle) -> Result<ListenStatistics, Error> {
        let listener = self.sockets.listener(handle)?;
        let (half_open, acceptable) = (listener.half_open.len(), listener.acceptable.len());
        let pending_fast = listener.pending.len();
        Ok(ListenStatistics { half_open, acceptable, pending_fast, ..listener.counted })
    }

    /// Closes a listener, and resets its connections that the application has not accepted.
    ///
    /// # Errors
    /// [`Error::Closed`] if the listener was already closed.
    pub fn tcp_listen_close(&mut self, now: Instant, handle: ListenHandle) -> Result<(), Error> {
        self.advance_clock(now);
        let (index, listener) = self.sockets.listener_mut(handle)?;
        let binding = listener.binding;
        while let Some(connection) = self.pop_connection(index) {
            if let Some(socket) = self.sockets.tcp_at(connection) {
                socket.connection.abort(now);
            }
            self.release(connection);
        }
        for flow in binding.flows() {
            self.listeners.remove(&flow, index);
        }
        self.close_forwarder(index);
        self.events.forget(index);
        self.remove_socket(index);
        Ok(())
    }

    /// Removes and returns a connection of a listener: first from the SYN queue, then from the
    /// accept queue. Returns `None` if both queues are empty.
    fn pop_connection(&mut self, index: u32) -> Option<u32> {
        let listener = self.sockets.listener_at(index)?;
        let half_open = self.queues.pop_front(&mut listener.half_open);
        half_open.or_else(|| self.queues.pop_front(&mut listener.acceptable))
    }

    /// Returns the listener for a flow: the listener at the local address of the flow, or else the
    /// listener at all addresses of its IP version.
    pub(crate) fn listener_at(&mut self, flow: &Flow) -> Option<u32> {
        let exact = self.listeners.lookup(&flow.bound_to_local());
        exact.or_else(|| self.listeners.lookup(&flow.bound_to_all()))
    }

    /// Handles a SYN for a listener. Drops the SYN if the accept queue is full. Otherwise answers
    /// it with a SYN cookie if the listener currently sends cookies, or else creates a connection:
    /// a half-open one, or one that Fast Open opens at once.
    pub(crate) fn handle_syn(&mut self, arrived: &Arrived<'_>, index: u32, syn: &Segment<'_>) {
        if !self.has_accept_room(index) {
            self.count_overflow(index);
            self.drop_syn(index);
            return;
        }
        let Some(listener) = self.sockets.listener_at(index) else { return };
        let is_full = listener.is_full();
        if listener.sends_cookies() {
            self.answer_with_cookie(arrived, index, syn);
            return;
        }
        let admission = match listener.options.fast_open {
            Some(limit) => self.check_fast_open(arrived, (index, limit), syn),
            None => Admission::Ordinary(None),
        };
        if is_full && matches!(admission, Admission::Ordinary(_)) {
            self.recycle_half_open(index);
        }
        self.store_syn(arrived, index, syn, admission);
    }

    fn store_syn(
        &mut self,
        arrived: &Arrived<'_>,
        index: u32,
        syn: &Segment<'_>,
        admission: Admission,
    ) {
        let owner = Owner::HalfOpen(index);
        let Ok(connection) = self.insert_from_syn(owner, arrived, index, syn) else {
            self.drop_syn(index);
            return;
        };
        let (Admission::Ordinary(cookie) | Admission::Fast(cookie)) = admission;
        let is_fast = matches!(admission, Admission::Fast(_));
        if let Some(socket) = self.sockets.tcp_at(connection) {
            let connection = &mut socket.connection;
            if let Some(cookie) = cookie {
                connection.driver().give_cookie(cookie);
            }
            if is_fast {
                connection.driver().open_fast(syn);
            }
        }
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.counted.syns_kept += 1;
            if !is_fast {
                self.queues.push_back(&mut listener.half_open, connection);
            }
        }
        if is_fast {
            self.enter_pending(index, connection);
            self.dispatch_step(connection);
        } else {
            self.schedule_opened(connection);
        }
    }

    /// Creates a connection from a SYN, with the configuration of a listener. The caller must
    /// schedule the SYN-ACK.
    pub(crate) fn insert_from_syn(
        &mut self,
        owner: Owner,
        arrived: &Arrived<'_>,
        listener: u32,
        syn: &Segment<'_>,
    ) -> Result<u32, Error> {
        let flow = arrived.flow(syn);
        let now = arrived.arrival.at;
        let path_info = self.path_to(now, arrived.source())?;
        self.sockets.has_room()?;
        let config = self.config_of(listener);
        let index = self.insert_tcp(owner, flow, &path_info, config, Open::Passive, None).index();
        if let Some(socket) = self.sockets.tcp_at(index) {
            socket.connection.driver().learn_from_syn(syn, now);
            let ecn = arrived.type_of_service.ecn();
            socket.connection.driver().note_codepoint_of_syn(ecn);
        }
        self.counted.tcp.passive_opens += 1;
        Ok(index)
    }

    /// Returns the TCP configuration of the connections of a listener.
    fn config_of(&mut self, index: u32) -> ConfigChoice {
        let own =
            self.sockets.listener_at(index).and_then(|listener| listener.options.config.as_ref());
        self.tcp_configs.choose(own)
    }

    /// Counts a SYN that the listener has dropped.
    #[cold]
    fn drop_syn(&mut self, index: u32) {
        self.counted.tcp_extra.listen_drops += 1;
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.counted.dropped += 1;
        }
    }

    /// Counts a segment that was dropped because the accept queue was full.
    #[cold]
    pub(crate) fn count_overflow(&mut self, index: u32) {
        self.counted.tcp_extra.listen_overflows += 1;
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.counted.overflows += 1;
        }
    }

    /// Removes the oldest half-open connection of a listener, to make room for a new SYN.
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

    /// Has the accept queue of a listener room for at least one more connection?
    pub(crate) fn has_accept_room(&mut self, index: u32) -> bool {
        let listener = self.sockets.listener_at(index);
        listener.is_some_and(|listener| listener.acceptable.len() < listener.options.backlog)
    }

    /// Moves a connection whose handshake is complete from the SYN queue to the accept queue.
    pub(crate) fn complete_handshake(&mut self, index: u32, connection: u32) {
        self.leave_listener(Owner::HalfOpen(index), connection);
        self.make_acceptable(index, connection);
    }

    /// Adds a connection that is in no queue to the accept queue, and notifies the application.
    fn make_acceptable(&mut self, index: u32, connection: u32) {
        if let Some(socket) = self.sockets.tcp_at(connection) {
            socket.owner = Owner::Acceptable(index);
        }
        if let Some(listener) = self.sockets.listener_at(index) {
            self.queues.push_back(&mut listener.acceptable, connection);
            self.events.note(index, INCOMING);
        }
    }

    /// Removes a connection from the queue of its listener.
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

    /// Checks the invariants of a listener. Panics if one is broken.
    pub(crate) fn check_listener(&self, index: u32, listener: &Listener) {
        let is_found = |flow| self.listeners.get(&flow) == Some(index);
        assert!(
            listener.binding.flows().all(is_found) || self.forwarding.of_listener(index).is_some(),
            "each listener is found by its address, or is of a forwarder"
        );
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
                assert_eq!(
                    socket.map(|socket| socket.owner),
                    Some(owner),
                    "queues contain their own connections"
                );
            }
        }
    }
}

//! The creation of TCP connections, and the choice of their local address and port.

use crate::demux::Flow;
use crate::demux::flow::{Hosts, canonical};
use crate::error::Error;
use crate::handle::TcpHandle;
use crate::ip::PathInfo;
use crate::ip::interface::Audience;
use crate::stack::Stack;
use crate::tcp::Owner;
use crate::tcp::TcpSocket;
use crate::tcp::configs::ConfigChoice;
use crate::tcp::connect_options::ConnectOptions;
use crate::tcp::grant::PooledBuffers;
use crate::tcp::headers::HostHeaders;
use alloc::boxed::Box;
use core::net::SocketAddr;
use linerate_tcp::{Connection, Open, Seeds};
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// # Application calls: opening connections
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
        remote: impl Into<SocketAddr>,
        options: &ConnectOptions,
    ) -> Result<TcpHandle, Error> {
        self.connect(now, canonical(remote.into()), options)
    }

    fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        options: &ConnectOptions,
    ) -> Result<TcpHandle, Error> {
        self.advance_clock(now);
        let audience = self.interface.audience(remote.ip());
        let is_unspecified = remote.port() == 0 || remote.ip().is_unspecified();
        if audience == Audience::Broadcast || is_unspecified || remote.ip().is_multicast() {
            return Err(Error::InvalidDestination(remote));
        }
        let path = self.path_to(now, remote.ip())?;
        self.sockets.has_room()?;
        let (mut address, mut port) = (path.source, 0);
        if let Some(wanted) = options.local.map(canonical) {
            port = wanted.port();
            if !wanted.ip().is_unspecified() && wanted.ip() != address {
                address = wanted.ip();
                self.interface.check_source(address, remote.ip())?;
            }
        }
        // Connections of the host with itself stay in this shard, independent of the steering of
        // the link.
        let is_local = audience == Audience::Us;
        let flow = self.choose_tcp_port(SocketAddr::new(address, port), remote, is_local)?;
        let rules = self.tcp_configs.choose(options.config.as_ref());
        let offer = if options.fast_open { self.offer_fast_open(now, flow) } else { None };
        let handle = self.insert_tcp(Owner::Application, flow, &path, rules, Open::Active, None);
        if let Some(offer) = offer
            && let Some(socket) = self.sockets.tcp_at(handle.index())
        {
            socket.connection.driver().try_fast_open(offer);
        }
        self.counted.tcp.active_opens += 1;
        self.schedule_opened(handle.index());
        Ok(handle)
    }

    /// Returns the flow with the requested local port, unless a connection to `remote` uses it, or
    /// with a free port if none was requested.
    fn choose_tcp_port(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        is_local: bool,
    ) -> Result<Flow, Error> {
        let at = |port| SocketAddr::new(local.ip(), port);
        let (flows, listeners) = (&mut self.flows, &self.listeners);
        let owner = |port| self.steering.of_connection(at(port), remote);
        let is_others = |port| !is_local && owner(port) != self.shard.number;
        // A connection with itself would be a simultaneous open, which no application wants.
        let hosts = Hosts::new(local.ip(), remote.ip());
        let flow = |port| Flow::between(hosts, port, remote.port());
        let is_same_host = local.ip() == remote.ip();
        let mut is_connected =
            |port| (is_same_host && port == remote.port()) || !flows.is_free(flow(port));
        if local.port() != 0 {
            return match () {
                () if is_others(local.port()) => {
                    Err(Error::OtherShard { local, shard: owner(local.port()) })
                }
                () if is_connected(local.port()) => Err(Error::AddressInUse(local)),
                () => Ok(flow(local.port())),
            };
        }
        let has_listener = |port| {
            let flow = flow(port);
            listeners.get(flow.bound_to_local()).is_some()
                || listeners.get(flow.bound_to_all()).is_some()
        };
        let is_taken = |port| is_others(port) || is_connected(port) || has_listener(port);
        let port = self.tcp_ports.choose(local.ip(), remote, is_taken);
        port.map(flow).ok_or(Error::PortsExhausted(remote))
    }

    /// Opens a connection, in an allocation of the free list if there is one: a connection is
    /// larger than 1 KiB, and moving it costs as much as two hashes. The caller schedules its SYN,
    /// or passes it the received one, and dispatches that step. `iss` overrides the generated
    /// initial sequence number. No connection may have the flow.
    pub(crate) fn insert_tcp(
        &mut self,
        owner: Owner,
        flow: Flow,
        path_info: &PathInfo,
        rules: ConfigChoice,
        open: Open,
        iss: Option<SeqNum>,
    ) -> TcpHandle {
        let path = path_info.tcp_path();
        let now = self.now;
        let seeds = Seeds {
            initial_sequence: iss.unwrap_or_else(|| self.isn.sequence(now, flow)),
            timestamp_offset: self.isn.timestamp_offset(flow.hosts),
        };
        let is_local = self.interface.is_ours(flow.hosts.remote());
        let recent = &mut self.recent_headers;
        if !recent.are_between(&flow.hosts) {
            *recent = HostHeaders::new(flow.hosts);
        }
        let flow_hash = self.flows.hash(flow);
        let (granted, grant) = self.memory.first_grant();
        let config = self.tcp_configs.shared(rules);
        let mut socket = match self.sockets.take_spare() {
            Some(mut spare) => {
                spare.connection.reopen(config, path, seeds, open, now);
                spare
            }
            None => Box::new(TcpSocket::with_empty_state(Connection::open(
                config.clone(),
                path,
                seeds,
                open,
                now,
            ))),
        };
        // All fields are listed, so that the compiler reports one that was added. A forgotten field
        // would keep the value of the previous connection.
        let TcpSocket {
            headers,
            next_hop_generation,
            granted: granted_field,
            held,
            armed,
            owner: owner_field,
            room,
            is_local: is_local_field,
            state,
            is_retired,
            pooled,
            connection,
            flow_hash: flow_hash_field,
        } = &mut *socket;
        connection.driver().grant_memory(grant);
        (*headers, *next_hop_generation) = recent.with_ports(flow.local_port(), flow.remote_port());
        (*granted_field, *held, *pooled) = (granted, 0, PooledBuffers::default());
        *flow_hash_field = flow_hash;
        (*owner_field, *state, *is_retired) = (owner, connection.state(), false);
        *room = u32::try_from(path.link_payload).unwrap_or(u32::MAX);
        *is_local_field = is_local;
        *armed = Instant::NEVER;
        let handle = self.sockets.insert_tcp(socket);
        self.flows.insert_hashed(flow_hash, flow, handle.index());
        handle
    }
}

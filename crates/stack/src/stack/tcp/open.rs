//! Creation of TCP connections, and selection of their local address and port.

use crate::demux::Flow;
use crate::demux::binding::end_of_packets;
use crate::demux::flow::Hosts;
use crate::error::Error;
use crate::handle::TcpHandle;
use crate::ip::PathInfo;
use crate::ip::egress::Egress;
use crate::ip::interface::Audience;
use crate::stack::Stack;
use crate::steering::Shard;
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
    /// Opens a connection to `remote`. [`linerate_tcp::Event::Connected`] or
    /// [`linerate_tcp::Event::Closed`] reports the result of the handshake. If `remote` is an
    /// IPv4-mapped IPv6 address (`::ffff:192.0.2.1`), the connection uses IPv4, and the application
    /// sees its addresses as IPv4-mapped IPv6 addresses.
    ///
    /// # Errors
    /// An error if the destination is invalid or has no route, if no local port is available, or if
    /// the limit of sockets is reached.
    pub fn tcp_connect(
        &mut self,
        now: Instant,
        remote: impl Into<SocketAddr>,
        options: &ConnectOptions,
    ) -> Result<TcpHandle, Error> {
        let remote = remote.into();
        let interface = self.interface_for(&remote)?;
        self.serving(interface, |stack| stack.connect(now, remote, options))
    }

    fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        options: &ConnectOptions,
    ) -> Result<TcpHandle, Error> {
        self.advance_clock(now);
        let is_mapped = remote.is_ipv6();
        let remote = end_of_packets(remote);
        let is_mapped = is_mapped && remote.is_ipv4();
        let is_unspecified = remote.port() == 0 || remote.ip().is_unspecified();
        if is_unspecified || remote.ip().is_multicast() {
            return Err(Error::InvalidDestination(remote));
        }
        let path = self.path_to(now, remote.ip())?;
        if path.audience == Audience::Broadcast {
            return Err(Error::InvalidDestination(remote));
        }
        self.sockets.has_room()?;
        let mut flow = Flow::between(Hosts::new(path.source, remote.ip()), 0, remote.port());
        if let Some(local) = options.local {
            self.check_zone(&local)?;
            self.bind_flow(&mut flow, end_of_packets(local))?;
        }
        // A connection of the host with itself may have any port, because it stays in this shard:
        // its segments do not pass the steering of a link.
        let is_local = path.audience == Audience::Us;
        let flow = self.choose_tcp_port(flow, is_local)?;
        let rules = self.tcp_configs.choose(options.config.as_ref());
        let offer = if options.fast_open { self.offer_fast_open(now, flow) } else { None };
        let handle = self.insert_tcp(Owner::Application, flow, &path, rules, Open::Active, None);
        if let Some(offer) = offer
            && let Some(socket) = self.sockets.tcp_at(handle.index())
        {
            socket.connection.driver().try_fast_open(offer);
        }
        if is_mapped && let Some(socket) = self.sockets.tcp_at(handle.index()) {
            socket.is_mapped = true;
        }
        self.counted.tcp.active_opens += 1;
        self.schedule_opened(handle.index());
        Ok(handle)
    }

    /// Copies the local port from `local` to `flow`. Also copies the local address, unless the
    /// address in `local` is unspecified; `flow` then keeps its local address.
    #[cold]
    fn bind_flow(&self, flow: &mut Flow, local: SocketAddr) -> Result<(), Error> {
        flow.set_local_port(local.port());
        if !local.ip().is_unspecified() && local.ip() != flow.hosts.local() {
            let remote = flow.hosts.remote();
            self.check_source(local.ip(), remote)?;
            flow.hosts = Hosts::new(local.ip(), remote);
        }
        Ok(())
    }

    /// Returns `flow` with a local port that no other connection with the same peer uses. If the
    /// port of `flow` is zero, selects an ephemeral port; otherwise only checks the port.
    /// `is_local` marks a connection of the host with itself.
    fn choose_tcp_port(&mut self, flow: Flow, is_local: bool) -> Result<Flow, Error> {
        let (flows, listeners) = (&mut self.flows, &self.listeners);
        let owner = |flow: &Flow| self.steering.of_connection(flow.local(), flow.remote());
        let is_sharded = !is_local && self.shard != Shard::ONLY;
        let is_others = |flow: &Flow| is_sharded && owner(flow) != self.shard.number;
        // A connection whose local and remote addresses and ports are equal would perform a
        // simultaneous open with itself. This is hardly ever intended, so the port counts as taken.
        let is_with_itself = |flow: &Flow| is_local && flow.local() == flow.remote();
        let mut is_connected = |flow: &Flow| is_with_itself(flow) || !flows.is_free(flow);
        if flow.local_port() != 0 {
            return match () {
                () if is_others(&flow) => {
                    Err(Error::OtherShard { local: flow.local(), shard: owner(&flow) })
                }
                () if is_connected(&flow) => Err(Error::AddressInUse(flow.local())),
                () => Ok(flow),
            };
        }
        let is_taken =
            |flow: &Flow| is_others(flow) || is_connected(flow) || listeners.has_bound(flow);
        self.tcp_ports.choose(flow, is_taken).ok_or_else(|| Error::PortsExhausted(flow.remote()))
    }

    /// Creates a connection for `flow`, which no other connection may use, and adds it to the
    /// tables. If possible, writes the connection directly into memory from the free list. A
    /// connection is larger than 1 KiB, and moving it would cost as much as two computations of a
    /// flow hash. The caller must then either schedule the SYN, or pass the received SYN to the
    /// connection and dispatch this step. `iss`, if given, replaces the generated initial sequence
    /// number.
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
        let recent = &mut self.recent_headers;
        if !recent.are_between(&flow.hosts) {
            *recent = HostHeaders::new(flow.hosts, self.isn.timestamp_offset(&flow.hosts));
        }
        let seeds = Seeds {
            initial_sequence: iss.unwrap_or_else(|| self.isn.sequence(now, &flow)),
            timestamp_offset: recent.timestamp_offset(),
        };
        let flow_hash = self.flows.hash(&flow);
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
        // The memory may be that of an earlier connection, so each field must be set. The pattern
        // lists all fields, so that the compiler reports a field that was added and is not set
        // here.
        let TcpSocket {
            headers,
            next_hop_generation,
            granted: granted_field,
            held,
            armed,
            owner: owner_field,
            room,
            egress,
            state,
            is_retired,
            is_mapped,
            pooled,
            connection,
            flow_hash: flow_hash_field,
        } = &mut *socket;
        connection.driver().grant_memory(grant);
        *next_hop_generation = recent.write_for(&flow, headers);
        (*granted_field, *held, *pooled) = (granted, 0, PooledBuffers::default());
        *flow_hash_field = flow_hash;
        (*owner_field, *state) = (owner, connection.state());
        (*is_retired, *is_mapped) = (false, false);
        *room = u32::try_from(path.link_payload).unwrap_or(u32::MAX);
        let interface = self.interface.number;
        let is_local = path_info.audience == Audience::Us;
        *egress = if is_local { Egress::local(interface) } else { Egress::over(interface) };
        *armed = Instant::NEVER;
        let handle = self.sockets.insert_tcp(socket);
        self.flows.insert_hashed(flow_hash, &flow, handle.index());
        handle
    }
}

//! The TCP state of a host: sockets, listeners, header templates, initial sequence numbers,
//! TIME-WAIT and Fast Open. The code that acts on this state is in `stack::tcp`.

pub(crate) mod batch;
pub(crate) mod buffer_pool;
pub(crate) mod challenge_limit;
pub(crate) mod compact;
pub(crate) mod configs;
pub(crate) mod connect_options;
pub(crate) mod dispatch;
pub(crate) mod fast_open;
pub(crate) mod grant;
pub(crate) mod headers;
pub(crate) mod isn;
pub(crate) mod listen;
pub(crate) mod memory;
pub(crate) mod time_wait;

pub(crate) use compact::{CompactSocket, TcpView};
pub(crate) use configs::{ConfigChoice, TcpConfigs};
pub(crate) use headers::HostHeaders;
pub(crate) use time_wait::{TcpTimer, TimeWait};

use crate::demux::binding::end_of_application;
use crate::demux::flow::Hosts;
use crate::demux::{Flow, FlowHash};
use crate::ip::egress::Egress;
use crate::ip::zone::with_zone;
use crate::tcp::grant::Granted;
use crate::tcp::grant::PooledBuffers;
use core::net::SocketAddr;
use headers::Headers;
use linerate_tcp::{Connection, State};
use linerate_units::Instant;
use linerate_wire::prefetch_through;

/// The owner of a connection: an application, a listener, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The application, which has opened or accepted the connection.
    Application,
    /// No owner: the application has closed the connection, which has not ended yet.
    Orphan,
    /// The listener at this index, in whose SYN queue the connection waits for the end of the
    /// handshake.
    HalfOpen(u32),
    /// The listener at this index, in whose accept queue the connection waits until an application
    /// accepts it.
    Acceptable(u32),
}

/// Value of `next_hop_generation` which means that the MAC address was never resolved.
pub(crate) const UNRESOLVED: u64 = u64::MAX;

/// A TCP connection, and the state that the host keeps for this connection. The fields that every
/// segment needs come first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TcpSocket {
    pub(crate) headers: Headers,
    /// Generation of routes and neighbours at which the MAC addresses in `headers` were resolved,
    /// or [`UNRESOLVED`].
    pub(crate) next_hop_generation: u64,
    /// The most recent grant of buffer memory to the connection.
    pub(crate) granted: Granted,
    /// Number of bytes of buffer memory that the connection holds according to the host's
    /// accounting.
    pub(crate) held: usize,
    /// An upper bound of the time for which the connection's timer is armed; [`Instant::NEVER`] if
    /// no bound is known. The timer expires at this time or before. So a new deadline at or after
    /// this time needs no change of the timer wheel.
    pub(crate) armed: Instant,
    pub(crate) owner: Owner,
    /// Maximum size in bytes of a segment, including its TCP header, that the MTU of the
    /// connection's link and route permits.
    pub(crate) room: u32,
    /// The egress of the connection's segments: an interface, or this host itself.
    pub(crate) egress: Egress,
    /// The TCP state of the connection at the most recent dispatch.
    pub(crate) state: State,
    /// Whether the connection was removed from the tables of the host, because it has ended. It
    /// stays only until the application has read its data and closed it.
    pub(crate) is_retired: bool,
    /// Whether the application sees the IPv4 addresses of the connection as IPv4-mapped IPv6
    /// addresses.
    pub(crate) is_mapped: bool,
    /// The buffers of the connection that use memory of the pool.
    pub(crate) pooled: PooledBuffers,
    pub(crate) connection: Connection,
    /// Hash of the connection's flow, computed when the flow was inserted into the flow table. It
    /// is stored because the removal of the flow needs it.
    pub(crate) flow_hash: FlowHash,
}

/// Returns whether the counter `CurrEstab` counts a connection in this state.
pub(crate) const fn is_open(state: State) -> bool {
    matches!(state, State::Established | State::CloseWait)
}

impl TcpSocket {
    /// Prefetches the memory that the receipt of a segment needs. Returns false if the peer is this
    /// host itself, so that segments of the connection do not come from a link; otherwise returns
    /// true.
    pub(crate) fn prefetch(&self) -> bool {
        prefetch_through(&self.headers, &self.pooled);
        self.connection.warm();
        !self.egress.is_local()
    }

    /// Prefetches the memory that sending a segment and receiving its acknowledgement need.
    #[inline]
    pub(crate) fn prefetch_for_transmit(&self) {
        prefetch_through(&self.headers, &self.pooled);
        self.connection.warm_to_send();
    }

    /// Returns the flow of the connection: its addresses and ports.
    pub(crate) fn flow(&self) -> Flow {
        self.headers.flow()
    }

    /// Returns the local address and port as the application sees them.
    pub(crate) fn shown_local(&self) -> SocketAddr {
        self.shown(self.flow().local())
    }

    /// Returns the address and port of the peer as the application sees them.
    pub(crate) fn shown_remote(&self) -> SocketAddr {
        self.shown(self.flow().remote())
    }

    fn shown(&self, end: SocketAddr) -> SocketAddr {
        end_of_application(with_zone(end, self.egress.interface()), self.is_mapped)
    }

    /// Creates a socket for a connection, with initial values in all other fields.
    #[cold]
    pub(crate) fn with_empty_state(connection: Connection) -> Self {
        let unspecified = Flow::between(Hosts::V4([0; 8]), 0, 0);
        Self {
            headers: Headers::new(&unspecified),
            next_hop_generation: UNRESOLVED,
            granted: Granted::NOTHING,
            held: 0,
            armed: Instant::NEVER,
            owner: Owner::Orphan,
            room: 0,
            egress: Egress::FIRST,
            state: connection.state(),
            is_retired: false,
            is_mapped: false,
            pooled: PooledBuffers::default(),
            connection,
            flow_hash: FlowHash::NONE,
        }
    }

    /// Returns whether the counter `CurrEstab` counts the connection.
    pub(crate) fn is_established(&self) -> bool {
        !self.is_retired && is_open(self.state)
    }

    /// Returns whether the connection is an orphan: the application has closed it, and it has not
    /// ended and is not in TIME-WAIT.
    pub(crate) fn is_orphan(&self) -> bool {
        !self.is_retired && self.owner == Owner::Orphan && self.state != State::TimeWait
    }
}

//! The TCP state of a host: sockets, listeners, header templates, initial sequence numbers,
//! TIME-WAIT and Fast Open. `stack::tcp` implements the protocol with it.

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

use crate::demux::flow::Hosts;
use crate::demux::{Flow, FlowHash};
use crate::tcp::grant::Granted;
use crate::tcp::grant::PooledBuffers;
use headers::Headers;
use linerate_tcp::{Connection, State};
use linerate_units::Instant;
use linerate_wire::prefetch_through;

/// The owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// An application.
    Application,
    /// The application has closed the connection, which has not ended yet.
    Orphan,
    /// The listener at this index, during the handshake.
    HalfOpen(u32),
    /// The listener at this index, until an application accepts the connection.
    Acceptable(u32),
}

/// The generation of a MAC address that was never resolved.
const UNRESOLVED: u64 = u64::MAX;

/// A connection and its state in the host. The fields that every segment needs come first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TcpSocket {
    pub(crate) headers: Headers,
    /// The generation of routes and neighbours at which `headers` got its MAC address, or
    /// [`UNRESOLVED`].
    pub(crate) next_hop_generation: u64,
    /// The state of the host's memory when it last granted memory to the connection.
    pub(crate) granted: Granted,
    /// Bytes of buffer memory that the host has accounted to the connection.
    pub(crate) held: usize,
    /// The timer expires at this time or earlier; [`Instant::NEVER`] if unknown. Avoids a lookup in
    /// the timer wheel unless the deadline is earlier.
    pub(crate) armed: Instant,
    pub(crate) owner: Owner,
    /// Bytes of the largest segment that the connection may write.
    pub(crate) room: u32,
    /// Is the peer this host itself?
    pub(crate) is_local: bool,
    /// The state of the connection that the host has last dispatched.
    pub(crate) state: State,
    /// Has the connection left the tables? It then stays only until the application has read its
    /// data.
    pub(crate) is_retired: bool,
    /// The buffers that use memory of the pool.
    pub(crate) pooled: PooledBuffers,
    pub(crate) connection: Connection,
    /// The hash of the connection in the flow table, which is needed again when it ends.
    pub(crate) flow_hash: FlowHash,
}

/// Does `CurrEstab` count a connection in this state?
pub(crate) const fn is_open(state: State) -> bool {
    matches!(state, State::Established | State::CloseWait)
}

impl TcpSocket {
    /// Prefetches the data that a received segment needs. Returns whether segments of the
    /// connection arrive from the link. Those of a connection of the host with itself do not.
    pub(crate) fn prefetch(&self) -> bool {
        prefetch_through(&self.headers, &self.pooled);
        self.connection.warm();
        !self.is_local
    }

    /// Prefetches the data that sending a segment and receiving its acknowledgement need.
    #[inline]
    pub(crate) fn prefetch_for_transmit(&self) {
        prefetch_through(&self.headers, &self.pooled);
        self.connection.warm_to_send();
    }

    /// Returns both ends.
    pub(crate) fn flow(&self) -> Flow {
        self.headers.flow()
    }

    /// Creates a socket for a connection, with all other fields empty.
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
            is_local: false,
            state: connection.state(),
            is_retired: false,
            pooled: PooledBuffers::default(),
            connection,
            flow_hash: FlowHash::NONE,
        }
    }

    /// Does `CurrEstab` count the connection?
    pub(crate) fn is_established(&self) -> bool {
        !self.is_retired && is_open(self.state)
    }

    /// Is the connection an orphan: closed by its application, and not in TIME-WAIT?
    pub(crate) fn is_orphan(&self) -> bool {
        !self.is_retired && self.owner == Owner::Orphan && self.state != State::TimeWait
    }
}

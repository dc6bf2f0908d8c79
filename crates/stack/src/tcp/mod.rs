//! The state of TCP in a host: sockets of connections and of listeners, the headers of their segments,
//! initial sequence numbers, TIME-WAIT records, and TCP Fast Open. `stack::tcp` acts on it.

pub(crate) mod burst;
pub(crate) mod challenge_limit;
pub(crate) mod configs;
pub(crate) mod connect_options;
pub(crate) mod fast_open;
pub(crate) mod grant;
pub(crate) mod headers;
pub(crate) mod isn;
pub(crate) mod listen;
pub(crate) mod memory;
pub(crate) mod resting;
pub(crate) mod settle;
pub(crate) mod time_wait;
pub(crate) mod warm_memory;

pub(crate) use configs::{Rules, TcpConfigs};
pub(crate) use headers::HostHeaders;
pub(crate) use resting::{RestingSocket, Seen};
pub(crate) use time_wait::{TcpTimer, TimeWait};

use crate::demux::FlowHash;
use crate::tcp::grant::Granted;
use crate::tcp::grant::Lent;
use core::net::{Ipv4Addr, SocketAddrV4};
use headers::Headers;
use linerate_tcp::{Connection, State};
use linerate_units::Instant;
use linerate_wire::prefetch_through;

/// Who holds a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// An application.
    Application,
    /// Nobody any more: it ends by itself.
    Nobody,
    /// The listener with this number, while the handshake goes on.
    HalfOpen(u32),
    /// The listener with this number, until an application accepts it.
    Acceptable(u32),
}

/// No generation of routes and neighbours.
const NOWHERE: u64 = u64::MAX;

/// A connection and what the host keeps beside it, of which what every segment needs comes first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TcpSocket {
    pub(crate) headers: Headers,
    /// The generation of routes and neighbours for which the station in `headers` is right, or [`NOWHERE`].
    pub(crate) hop: u64,
    /// What the connection was last told of memory holds for this.
    pub(crate) granted: Granted,
    /// Bytes of memory that the host knows its buffers to hold.
    pub(crate) held: usize,
    /// Its timer comes due by then, or nobody knows: [`Instant::NEVER`]. So the wheel is asked only for an earlier time.
    pub(crate) armed: Instant,
    pub(crate) owner: Owner,
    /// Bytes of the largest segment that the connection may want to write.
    pub(crate) room: u32,
    /// Is the peer this host itself?
    pub(crate) is_local: bool,
    /// The state in which the host has last seen the connection.
    pub(crate) state: State,
    /// Has it left the network, and stays only for what its application may still read?
    pub(crate) retired: bool,
    /// Which of its buffers were lent warm memory.
    pub(crate) lent: Lent,
    pub(crate) local: SocketAddrV4,
    pub(crate) connection: Connection,
    pub(crate) peer: SocketAddrV4,
    /// Under what the table of flows has it: when it ends, long after it was hashed.
    pub(crate) flow_hash: FlowHash,
}

/// Is a connection in this state open in the sense of `CurrEstab`?
pub(crate) const fn is_open(state: State) -> bool {
    matches!(state, State::Established | State::CloseWait)
}

impl TcpSocket {
    /// Fetches what a segment that arrives is going to need. May it come from a link? What a host sends to itself
    /// does not.
    pub(crate) fn warm(&self) -> bool {
        prefetch_through(&self.headers, &self.local);
        self.connection.warm();
        !self.is_local && !self.local.ip().is_loopback()
    }

    /// Fetches what a segment that leaves is going to need, and the acknowledgement of that.
    #[inline]
    pub(crate) fn warm_to_send(&self) {
        prefetch_through(&self.headers, &self.local);
        self.connection.warm_to_send();
    }

    /// A connection, beside which nothing is kept yet.
    #[cold]
    pub(crate) fn around(connection: Connection) -> Self {
        let nobody = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        Self {
            headers: Headers::new(nobody, nobody),
            hop: NOWHERE,
            granted: Granted::NOTHING,
            held: 0,
            armed: Instant::NEVER,
            owner: Owner::Nobody,
            room: 0,
            is_local: false,
            state: connection.state(),
            retired: false,
            lent: Lent::default(),
            local: nobody,
            connection,
            peer: nobody,
            flow_hash: FlowHash::NONE,
        }
    }

    /// Is the connection open in the sense of `CurrEstab`?
    pub(crate) fn is_established(&self) -> bool {
        !self.retired && is_open(self.state)
    }

    /// Is it a connection that nobody holds, and that still does more than wait for its end?
    pub(crate) fn is_orphan(&self) -> bool {
        !self.retired && self.owner == Owner::Nobody && self.state != State::TimeWait
    }
}

//! Compact forms of a TCP socket. In comparison with its full form, an idle connection takes a
//! fifth of the memory in compact form, and a tenth as a TIME-WAIT record. A compact socket is
//! unpacked before it changes. For reading, an unpacked copy is created.

use super::{Owner, TcpSocket, headers::Headers};
use crate::demux::flow::Hosts;
use crate::demux::{Flow, FlowHash};
use crate::ip::egress::Egress;
use crate::tcp::grant::Granted;
use alloc::boxed::Box;
use core::ops::Deref;
use linerate_tcp::{CompactConnection, Connection, MemoryGrant, State, TimeWaitRecord};
use linerate_units::Instant;

/// A compact form of a connection.
pub(crate) trait Compact {
    /// Returns an unpacked copy of the connection, for reading only.
    fn view(&self) -> Connection;
    /// Returns the unpacked connection, which replaces the compact form because the connection is
    /// about to change.
    fn unpack(&self, now: Instant) -> Connection;
}

impl Compact for CompactConnection {
    fn view(&self) -> Connection {
        self.look()
    }

    fn unpack(&self, now: Instant) -> Connection {
        self.wake(now)
    }
}

impl Compact for TimeWaitRecord {
    fn view(&self) -> Connection {
        self.look()
    }

    fn unpack(&self, now: Instant) -> Connection {
        self.wake(now)
    }
}

/// A [`TcpSocket`] in compact form. Its connection is in the compact form `C`.
#[derive(Debug)]
pub(crate) struct CompactSocket<C = CompactConnection> {
    connection: C,
    pub(crate) fields: SocketFields,
}

/// The fields that a compact socket stores in addition to its connection. They equal the fields of
/// the [`TcpSocket`] from which it was packed.
#[derive(Debug)]
pub(crate) struct SocketFields {
    owner: Owner,
    flow: KeptFlow,
    pub(crate) flow_hash: FlowHash,
    room: u32,
    /// Type of service and TTL of the connection's packets.
    service: [u8; 2],
    pub(crate) egress: Egress,
    is_mapped: bool,
    state: State,
}

/// A flow in a form that takes less memory if its addresses are IPv4 addresses.
#[derive(Debug)]
enum KeptFlow {
    V4 { hosts: [u8; 8], ports: [u8; 4] },
    V6(Box<Flow>),
}

impl KeptFlow {
    fn of(flow: Flow) -> Self {
        match flow.hosts {
            Hosts::V4(hosts) => Self::V4 { hosts, ports: flow.ports },
            Hosts::V6(_) => Self::V6(Box::new(flow)),
        }
    }

    fn get(&self) -> Flow {
        match self {
            Self::V4 { hosts, ports } => Flow { hosts: Hosts::V4(*hosts), ports: *ports },
            Self::V6(flow) => **flow,
        }
    }
}

impl CompactSocket {
    /// Packs `socket`. Returns `None` if its connection cannot be packed at present.
    pub(crate) fn of(socket: &mut TcpSocket) -> Option<Self> {
        // A limited memory grant would make the packed connection larger. The connection needs no
        // grant while it is packed, because the host makes a new grant before each step that may
        // allocate memory. So the grant is removed before packing.
        socket.connection.driver().grant_memory(MemoryGrant::UNLIMITED);
        socket.granted = Granted::NOTHING;
        Some(Self { connection: socket.connection.compact()?, fields: SocketFields::of(socket) })
    }
}

impl CompactSocket<TimeWaitRecord> {
    /// Creates a TIME-WAIT record of `socket`. Returns `None` unless the application has closed the
    /// connection, and the record can hold all of its state.
    #[cold]
    pub(crate) fn of(socket: &TcpSocket) -> Option<Box<Self>> {
        let connection =
            socket.connection.time_wait_record().filter(|_| socket.is_only_in_time_wait())?;
        Some(Box::new(Self { connection, fields: SocketFields::of(socket) }))
    }

    /// Overwrites this record, whose TIME-WAIT has ended, with the TIME-WAIT record of `socket`,
    /// and thus saves an allocation. Returns false if a record cannot hold the state of `socket`.
    #[inline(always)]
    pub(crate) fn overwrite(&mut self, socket: &TcpSocket) -> bool {
        let is_kept = socket.is_only_in_time_wait()
            && socket.connection.write_time_wait_record(&mut self.connection);
        if is_kept {
            self.fields = SocketFields::of(socket);
        }
        is_kept
    }

    /// Returns the time at which TIME-WAIT ends.
    pub(crate) const fn deadline(&self) -> Instant {
        self.connection.deadline()
    }

    pub(crate) fn flow(&self) -> Flow {
        self.fields.flow.get()
    }
}

impl TcpSocket {
    /// Returns whether the host's state of the socket fits into a TIME-WAIT record: the socket is
    /// an orphan, is still in the tables of the host, and holds no buffer memory. A second
    /// condition, that the connection has no segment left to send, is checked by the connection.
    fn is_only_in_time_wait(&self) -> bool {
        self.owner == Owner::Orphan && !self.is_retired && self.held == 0
    }
}

impl SocketFields {
    #[inline(always)]
    pub(crate) fn of(socket: &TcpSocket) -> Self {
        Self {
            owner: socket.owner,
            flow: KeptFlow::of(socket.flow()),
            flow_hash: socket.flow_hash,
            room: socket.room,
            service: socket.headers.service(),
            egress: socket.egress,
            is_mapped: socket.is_mapped,
            state: socket.state,
        }
    }
}

impl<C: Compact> CompactSocket<C> {
    /// Returns the owner of the connection.
    pub(crate) const fn owner(&self) -> Owner {
        self.fields.owner
    }

    /// Creates the unpacked socket. The compact form contains no MAC address, so the host looks up
    /// the MAC address for the next segment.
    fn unpack_with(&self, connection: Connection) -> TcpSocket {
        let kept = &self.fields;
        let mut headers = Headers::new(&kept.flow.get());
        headers.set_service(kept.service);
        TcpSocket {
            owner: kept.owner,
            flow_hash: kept.flow_hash,
            headers,
            room: kept.room,
            egress: kept.egress,
            is_mapped: kept.is_mapped,
            state: kept.state,
            ..TcpSocket::with_empty_state(connection)
        }
    }

    #[cold]
    pub(crate) fn unpack(&self, now: Instant) -> Box<TcpSocket> {
        Box::new(self.unpack_with(self.connection.unpack(now)))
    }

    /// Returns an unpacked copy of the socket, for reading.
    pub(crate) fn view(&self) -> Box<TcpSocket> {
        Box::new(self.unpack_with(self.connection.view()))
    }
}

/// A connection for reading: a reference, or an unpacked copy if it is compact.
#[derive(Debug)]
pub(crate) enum TcpView<'a> {
    Full(&'a TcpSocket),
    Unpacked(Box<TcpSocket>),
}

impl Deref for TcpView<'_> {
    type Target = TcpSocket;

    fn deref(&self) -> &TcpSocket {
        match self {
            Self::Full(socket) => socket,
            Self::Unpacked(socket) => socket,
        }
    }
}

//! A connection to which nothing has happened for a while, in a fifth of the memory; and what must be kept of one
//! in TIME-WAIT, in a tenth. Whoever wants to change anything about it wakes it, and whoever looks at it is shown
//! what it would be awake.

use super::{Owner, TcpSocket, headers::Headers};
use crate::demux::{Flow, FlowHash};
use crate::tcp::grant::Granted;
use alloc::boxed::Box;
use core::net::SocketAddrV4;
use core::ops::Deref;
use linerate_tcp::{Connection, MemoryGrant, Resting, State, Waiting};
use linerate_units::Instant;

/// What can be kept of a connection in its place.
pub(crate) trait Kept {
    /// The connection as it was, to be looked at.
    fn look(&self) -> Connection;
    /// The connection as it was: something happens to it.
    fn wake(&self, now: Instant) -> Connection;
}

impl Kept for Resting {
    fn look(&self) -> Connection {
        self.look()
    }

    fn wake(&self, now: Instant) -> Connection {
        self.wake(now)
    }
}

impl Kept for Waiting {
    fn look(&self) -> Connection {
        self.look()
    }

    fn wake(&self, now: Instant) -> Connection {
        self.wake(now)
    }
}

/// What is kept of a [`TcpSocket`].
#[derive(Debug)]
pub(crate) struct RestingSocket<C = Resting> {
    connection: C,
    pub(crate) beside: Beside,
}

/// What is kept beside its connection.
#[derive(Debug)]
pub(crate) struct Beside {
    owner: Owner,
    local: SocketAddrV4,
    peer: SocketAddrV4,
    pub(crate) flow_hash: FlowHash,
    room: u32,
    /// How routers are to treat its packets, and how many they may pass.
    service: [u8; 2],
    is_local: bool,
    state: State,
}

impl RestingSocket {
    /// What there is to keep of `socket`, if it can rest.
    pub(crate) fn of(socket: &mut TcpSocket) -> Option<Self> {
        // The host says what it grants before each step that may take memory.
        socket.connection.grant_memory(MemoryGrant::UNLIMITED);
        socket.granted = Granted::NOTHING;
        Some(Self { connection: socket.connection.rest()?, beside: Beside::of(socket) })
    }
}

impl RestingSocket<Waiting> {
    /// What there is to keep of `socket` in TIME-WAIT, if nobody holds it.
    #[cold]
    pub(crate) fn of(socket: &TcpSocket) -> Option<Box<Self>> {
        let connection = socket.connection.wait_out().filter(|_| socket.only_waits())?;
        Some(Box::new(Self { connection, beside: Beside::of(socket) }))
    }

    /// The same in the place of another record, which is over. False if there is more to keep; then nothing has changed.
    #[inline(always)]
    pub(crate) fn keep(&mut self, socket: &TcpSocket) -> bool {
        let keeps = socket.only_waits() && socket.connection.wait_out_in(&mut self.connection);
        if keeps {
            self.beside = Beside::of(socket);
        }
        keeps
    }

    /// When TIME-WAIT is over.
    pub(crate) const fn deadline(&self) -> Instant {
        self.connection.deadline()
    }

    pub(crate) fn flow(&self) -> Flow {
        Flow::new(self.beside.local, self.beside.peer)
    }
}

impl TcpSocket {
    /// Is it of nobody's concern but the network's? Whether TIME-WAIT is all that is left is the connection's to say.
    fn only_waits(&self) -> bool {
        self.owner == Owner::Nobody && !self.retired && self.held == 0
    }
}

impl Beside {
    #[inline(always)]
    pub(crate) fn of(socket: &TcpSocket) -> Self {
        Self {
            owner: socket.owner,
            local: socket.local,
            peer: socket.peer,
            flow_hash: socket.flow_hash,
            room: socket.room,
            service: socket.headers.service(),
            is_local: socket.is_local,
            state: socket.state,
        }
    }
}

impl<C: Kept> RestingSocket<C> {
    /// Who holds it.
    pub(crate) const fn owner(&self) -> Owner {
        self.beside.owner
    }

    /// The socket as it was. Its way to the peer is looked up anew.
    fn with(&self, connection: Connection) -> TcpSocket {
        let kept = &self.beside;
        let mut headers = Headers::new(kept.local, kept.peer);
        headers.set_service(kept.service);
        TcpSocket {
            owner: kept.owner,
            local: kept.local,
            peer: kept.peer,
            flow_hash: kept.flow_hash,
            headers,
            room: kept.room,
            is_local: kept.is_local,
            state: kept.state,
            ..TcpSocket::around(connection)
        }
    }

    #[cold]
    pub(crate) fn wake(&self, now: Instant) -> Box<TcpSocket> {
        Box::new(self.with(self.connection.wake(now)))
    }

    /// The socket as it would be awake.
    pub(crate) fn look(&self) -> Box<TcpSocket> {
        Box::new(self.with(self.connection.look()))
    }
}

/// A connection that is looked at, awake or not.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    Awake(&'a TcpSocket),
    Resting(Box<TcpSocket>),
}

impl Deref for Seen<'_> {
    type Target = TcpSocket;

    fn deref(&self) -> &TcpSocket {
        match self {
            Self::Awake(socket) => socket,
            Self::Resting(socket) => socket,
        }
    }
}

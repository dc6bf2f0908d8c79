//! A connection to which nothing has happened for a while, in a fifth of the memory. Whoever wants to change
//! anything about it wakes it, and whoever looks at it is shown what it would be awake.

use super::{Owner, TcpSocket, headers::Headers};
use crate::memory::Granted;
use crate::sockets::Socket;
use crate::stack::Stack;
use alloc::boxed::Box;
use core::net::SocketAddrV4;
use core::ops::Deref;
use linerate_tcp::{MemoryGrant, Resting, State};
use linerate_units::Instant;

/// What is kept of a [`TcpSocket`].
#[derive(Debug)]
pub(crate) struct RestingSocket {
    connection: Resting,
    pub(crate) owner: Owner,
    local: SocketAddrV4,
    peer: SocketAddrV4,
    room: u32,
    /// How routers are to treat its packets, and how many they may pass.
    service: [u8; 2],
    is_local: bool,
    state: State,
}

impl RestingSocket {
    /// What there is to keep of `socket`, if it can rest.
    fn of(socket: &mut TcpSocket) -> Option<Self> {
        // The host says what it grants before each step that may take memory.
        socket.connection.grant_memory(MemoryGrant::UNLIMITED);
        socket.granted = Granted::NOTHING;
        Some(Self {
            connection: socket.connection.rest()?,
            owner: socket.owner,
            local: socket.local,
            peer: socket.peer,
            room: u32::try_from(socket.room).ok()?,
            service: socket.headers.service(),
            is_local: socket.is_local,
            state: socket.state,
        })
    }

    /// The socket as it was. Its way to the peer is looked up anew.
    fn with(&self, connection: linerate_tcp::Connection) -> TcpSocket {
        let mut headers = Headers::new(self.local, self.peer);
        headers.set_service(self.service);
        TcpSocket {
            connection,
            owner: self.owner,
            local: self.local,
            peer: self.peer,
            held: 0,
            granted: Granted::NOTHING,
            headers,
            hop: None,
            room: self.room as usize,
            is_local: self.is_local,
            state: self.state,
            retired: false,
        }
    }

    #[cold]
    pub(crate) fn wake(&self, now: Instant) -> Box<TcpSocket> {
        Box::new(self.with(self.connection.wake(now)))
    }
}

/// A connection that is looked at, awake or not.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    Awake(&'a TcpSocket),
    Resting(Box<TcpSocket>),
}

impl<'a> Seen<'a> {
    /// The connection in this place, if there is one.
    pub(crate) fn of(socket: &'a Socket) -> Option<Self> {
        match socket {
            Socket::Tcp(socket) => Some(Self::Awake(socket)),
            Socket::Resting(socket) => Some(Self::Resting(Box::new(socket.with(socket.connection.look())))),
            Socket::Listen(_) | Socket::Udp(_) => None,
        }
    }
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

impl Stack {
    /// Somebody wants the connection for something that is no step of it.
    pub(crate) fn wake(&mut self, index: u32) {
        if matches!(self.sockets.get(index), Some(Socket::Resting(_))) {
            self.settle(index);
        }
    }

    /// A connection was opened, or accepted. The newcomer that leaves its place for it rests, if it is quiet.
    pub(crate) fn welcome(&mut self, index: u32) {
        let Some(oldest) = self.memory.welcome(index) else { return };
        if let Some(socket) = self.sockets.awake_at(oldest) {
            socket.connection.hasten_rest();
            self.let_rest(oldest);
        }
    }

    /// Nothing was due of a connection but to look at it: if nothing has happened either, it rests. The
    /// timer that it rests with is armed anew, or the one of its busy life would wake it.
    pub(super) fn let_rest(&mut self, index: u32) {
        let may = |socket: &&mut TcpSocket| !socket.retired && socket.connection.is_quiet();
        let Some(socket) = self.sockets.tcp_at(index).filter(may) else { return };
        let deadline = socket.connection.poll_timeout();
        let Some(resting) = RestingSocket::of(socket) else { return };
        self.sockets.put_to_rest(index, resting);
        self.burst.forget();
        self.timers.disarm(index);
        self.timers.arm(index, deadline);
    }
}

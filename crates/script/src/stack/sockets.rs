//! The application's sockets, by the numbers that the script gives them.

use linerate_stack::{ListenHandle, ListenOptions, TcpHandle};
use linerate_tcp::Config;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;

/// A socket as an application of BSD knows it.
#[derive(Debug)]
pub(super) enum Socket {
    /// Made, and perhaps bound.
    Fresh { config: Box<Config>, bound: Option<SocketAddrV4>, options: FreshOptions },
    /// Listening.
    Listener {
        handle: ListenHandle,
        /// There may be a connection to accept.
        incoming: bool,
        /// What it was made with.
        options: Box<ListenOptions>,
    },
    /// Opened or accepted.
    Connection {
        handle: TcpHandle,
        /// The application has called `connect` and been told to come back.
        connecting: bool,
        /// The application has been told why the connection ended.
        told: bool,
        /// Options that only the socket remembers.
        keep_alive: linerate_tcp::KeepAlive,
    },
}

/// What is remembered of a socket until there is a connection that can do it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FreshOptions {
    pub(super) type_of_service: u8,
    pub(super) ttl: Option<u8>,
    pub(super) keep_alive: Option<linerate_tcp::KeepAlive>,
    /// How many connections may be opened fast at a time once this listens.
    pub(super) fast_open: usize,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    list: BTreeMap<i32, (Socket, bool)>,
}

impl Sockets {
    pub(super) fn insert(&mut self, name: i32, socket: Socket, nonblocking: bool) {
        self.list.insert(name, (socket, nonblocking));
    }

    /// The same socket has become something else.
    pub(super) fn replace(&mut self, name: i32, socket: Socket) {
        if let Some(entry) = self.list.get_mut(&name) {
            entry.0 = socket;
        }
    }

    pub(super) fn get(&self, name: i32) -> Option<&Socket> {
        self.list.get(&name).map(|(socket, _)| socket)
    }

    pub(super) fn get_mut(&mut self, name: i32) -> Option<&mut Socket> {
        self.list.get_mut(&name).map(|(socket, _)| socket)
    }

    pub(super) fn remove(&mut self, name: i32) -> Option<Socket> {
        self.list.remove(&name).map(|(socket, _)| socket)
    }

    /// Do its calls wait?
    pub(super) fn is_nonblocking(&self, name: i32) -> bool {
        self.list.get(&name).is_some_and(|(_, nonblocking)| *nonblocking)
    }

    pub(super) fn set_nonblocking(&mut self, name: i32, on: bool) {
        if let Some(entry) = self.list.get_mut(&name) {
            entry.1 = on;
        }
    }

    pub(super) fn note_incoming(&mut self, listener: ListenHandle) {
        for (socket, _) in self.list.values_mut() {
            if let Socket::Listener { handle, incoming, .. } = socket
                && *handle == listener
            {
                *incoming = true;
            }
        }
    }
}

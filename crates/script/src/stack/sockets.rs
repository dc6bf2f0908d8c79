//! The application's sockets, by the numbers that the script gives them.

use super::epoll::Epoll;
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
    /// An epoll instance.
    Epoll(Epoll),
}

/// What is remembered of a socket until there is a connection that can do it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FreshOptions {
    pub(super) type_of_service: u8,
    pub(super) ttl: Option<u8>,
    pub(super) keep_alive: Option<linerate_tcp::KeepAlive>,
    /// How many connections may be opened fast at a time once this listens.
    pub(super) fast_open: usize,
    pub(super) cork: bool,
    pub(super) unsent_low_water: Option<u32>,
    pub(super) defer_accept: Option<linerate_units::Duration>,
    /// `connect` opens the connection with the first write, if there is a cookie.
    pub(super) fast_connect: bool,
    /// The address of a `connect` that waits for the first write.
    pub(super) deferred: Option<SocketAddrV4>,
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
        for (socket, _) in self.list.values_mut() {
            if let Socket::Epoll(epoll) = socket {
                epoll.forget(name);
            }
        }
        self.list.remove(&name).map(|(socket, _)| socket)
    }

    /// Something has happened to the socket that `is_it`.
    fn note(&mut self, is_it: impl Fn(&Socket) -> bool) {
        let names: Vec<i32> = self
            .list
            .iter()
            .filter(|(_, (socket, _))| is_it(socket))
            .map(|(&name, _)| name)
            .collect();
        names.into_iter().for_each(|name| self.note_socket(name));
    }

    /// Something has happened to the socket called `name`.
    pub(super) fn note_socket(&mut self, name: i32) {
        for (socket, _) in self.list.values_mut() {
            if let Socket::Epoll(epoll) = socket {
                epoll.note(name);
            }
        }
    }

    /// Something has happened to a connection.
    pub(super) fn note_connection(&mut self, connection: TcpHandle) {
        self.note(
            |socket| matches!(socket, Socket::Connection { handle, .. } if *handle == connection),
        );
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
        self.note(
            |socket| matches!(socket, Socket::Listener { handle, .. } if *handle == listener),
        );
    }
}

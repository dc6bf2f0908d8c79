//! The application's sockets, by their numbers in the script.

use super::epoll::Epoll;
use linerate_stack::{ListenHandle, ListenOptions, TcpHandle, UdpHandle, UdpOptions};
use linerate_tcp::Config;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A socket with BSD semantics.
#[derive(Debug)]
pub(super) enum Socket {
    /// A new TCP socket, possibly bound.
    Unconnected { config: Box<Config>, bound: Option<SocketAddr>, options: UnconnectedOptions },
    /// A listening TCP socket.
    Listener {
        handle: ListenHandle,
        /// The options with which the listener was created.
        options: Box<ListenOptions>,
    },
    /// A socket whose connection was opened or accepted.
    Connection {
        handle: TcpHandle,
        /// Whether this application opened the connection, and no later `connect` has returned 0 to
        /// report that it is established.
        connecting: bool,
        /// Whether the error that ended the connection has been reported to the application.
        is_error_taken: bool,
        /// Keep-alive settings of the socket. They are stored here, because the connection itself
        /// has them only while keep-alive is enabled.
        keep_alive: linerate_tcp::KeepAlive,
    },
    /// A UDP socket.
    Datagrams {
        /// The socket of the host, once it is bound.
        handle: Option<UdpHandle>,
        /// The options with which the socket is bound.
        options: UdpOptions,
    },
    /// An epoll instance.
    Epoll(Epoll),
}

/// Socket options that take effect when the socket listens or connects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnconnectedOptions {
    pub(super) type_of_service: u8,
    pub(super) ttl: Option<u8>,
    pub(super) keep_alive: Option<linerate_tcp::KeepAlive>,
    /// Maximum number of pending Fast Open connections. It applies if the socket becomes a
    /// listener.
    pub(super) fast_open: usize,
    pub(super) cork: bool,
    pub(super) unsent_low_water: Option<u32>,
    pub(super) defer_accept: Option<linerate_units::Duration>,
    /// Whether `connect` postpones the SYN until the first write, if a cookie exists.
    pub(super) fast_connect: bool,
    /// The address of a `connect` that waits for the first write; `None` if none waits.
    pub(super) deferred: Option<SocketAddr>,
}

/// All sockets by number, each with its non-blocking flag.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    list: BTreeMap<i32, (Socket, bool)>,
}

impl Sockets {
    pub(super) fn insert(&mut self, name: i32, socket: Socket, nonblocking: bool) {
        self.list.insert(name, (socket, nonblocking));
    }

    /// Replaces a socket that has become another kind, such as a listener.
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

    /// Notes in every epoll instance that an event has occurred on each socket for which `is_it`
    /// returns true.
    fn note(&mut self, is_it: impl Fn(&Socket) -> bool) {
        let names: Vec<i32> = self
            .list
            .iter()
            .filter(|(_, (socket, _))| is_it(socket))
            .map(|(&name, _)| name)
            .collect();
        names.into_iter().for_each(|name| self.note_socket(name));
    }

    /// Notes in every epoll instance that an event has occurred on socket number `name`.
    pub(super) fn note_socket(&mut self, name: i32) {
        for (socket, _) in self.list.values_mut() {
            if let Socket::Epoll(epoll) = socket {
                epoll.note(name);
            }
        }
    }

    /// Notes in every epoll instance that an event has occurred on the socket of a connection.
    pub(super) fn note_connection(&mut self, connection: TcpHandle) {
        self.note(
            |socket| matches!(socket, Socket::Connection { handle, .. } if *handle == connection),
        );
    }

    /// Returns whether a socket is non-blocking.
    pub(super) fn is_nonblocking(&self, name: i32) -> bool {
        self.list.get(&name).is_some_and(|(_, nonblocking)| *nonblocking)
    }

    pub(super) fn set_nonblocking(&mut self, name: i32, on: bool) {
        if let Some(entry) = self.list.get_mut(&name) {
            entry.1 = on;
        }
    }

    pub(super) fn note_incoming(&mut self, listener: ListenHandle) {
        self.note(
            |socket| matches!(socket, Socket::Listener { handle, .. } if *handle == listener),
        );
    }
}

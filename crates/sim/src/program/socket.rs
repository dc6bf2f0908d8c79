//! The TCP socket of a program. It opens a connection or listens for one, and recognises the events
//! of the host that are about this socket.

use super::{Task, TcpReport};
use linerate_stack::{ConnectOptions, Event, ListenHandle, ListenOptions, Stack, TcpHandle};
use linerate_tcp::{Config, Connection};
use std::borrow::Cow;
use std::net::SocketAddr;

#[derive(Debug, Default)]
pub(super) struct Socket {
    listener: Option<ListenHandle>,
    handle: Option<TcpHandle>,
}

impl Socket {
    pub(super) const fn new() -> Self {
        Self { listener: None, handle: None }
    }

    /// Opens a connection to `address`. The host chooses the local port, unless `local` gives it.
    /// Returns false if the host refuses to open the connection.
    pub(super) fn connect(
        &mut self,
        task: &mut Task<'_>,
        local: Option<SocketAddr>,
        address: SocketAddr,
        config: &Config,
    ) -> bool {
        let options = ConnectOptions { local, config: Some(*config), ..ConnectOptions::default() };
        self.handle = task.stack.tcp_connect(task.clock, address, &options).ok();
        self.handle.is_some()
    }

    /// Listens at `address`. Returns false if the host refuses.
    pub(super) fn listen(
        &mut self,
        task: &mut Task<'_>,
        address: SocketAddr,
        config: &Config,
    ) -> bool {
        let options = ListenOptions { config: Some(*config), ..ListenOptions::default() };
        self.listener = task.stack.tcp_listen(address, &options).ok();
        self.listener.is_some()
    }

    /// Accepts a connection. Returns false if none has arrived yet.
    pub(super) fn accept(&mut self, task: &mut Task<'_>) -> bool {
        let accepted = self.listener.and_then(|listener| task.stack.tcp_accept(listener));
        self.handle = accepted.map(|(handle, _)| handle);
        self.handle.is_some()
    }

    /// Returns the handle of the connection; `None` if it was not opened or accepted yet.
    pub(super) const fn handle(&self) -> Option<TcpHandle> {
        self.handle
    }

    /// Returns the connection, if it exists.
    pub(super) fn connection<'a>(&self, stack: &'a Stack) -> Option<Cow<'a, Connection>> {
        stack.tcp(self.handle?)
    }

    /// Returns whether received data can be read.
    pub(super) fn has_data(&self, stack: &Stack) -> bool {
        self.connection(stack).is_some_and(|connection| connection.readable_bytes() > 0)
    }

    /// Returns whether an event is about this socket.
    pub(super) fn wants(&self, event: &Event) -> bool {
        match *event {
            Event::Tcp(handle, _) => Some(handle) == self.handle,
            Event::Incoming(listener) => Some(listener) == self.listener,
            _ => false,
        }
    }

    /// Returns the counters and the state of the connection, if it exists.
    pub(super) fn report(&self, stack: &Stack) -> Option<TcpReport> {
        self.connection(stack).map(|connection| TcpReport::of(&connection))
    }
}

//! Who waits for which socket, and which event wakes whom.

use crate::gate::Gate;
use crate::patience::Side;
use linerate_stack::{Event, ListenHandle, Stack, TcpHandle, UdpEvent, UdpHandle};
use linerate_tcp::Event as TcpEvent;
use parking_lot::Condvar;
use std::collections::HashMap;
use std::sync::Arc;

/// A socket of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SocketId {
    Tcp(TcpHandle),
    Listen(ListenHandle),
    Udp(UdpHandle),
}

/// Where threads wait for one socket. Both conditions belong to the host's lock.
///
/// An event wakes one thread. If that thread leaves something for others, it wakes the next, so that
/// ten threads that wait for one datagram do not all wake up to find that nine came for nothing. What
/// concerns all, such as the end of a connection, wakes all.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    read: Condvar,
    write: Condvar,
    /// Where those wait who wait for sockets of several hosts at a time.
    gate: Option<Arc<Gate>>,
}

impl Waiters {
    pub(crate) const fn of(&self, side: Side) -> &Condvar {
        match side {
            Side::Read => &self.read,
            Side::Write => &self.write,
        }
    }

    pub(crate) fn wake_one(&self, side: Side) {
        self.of(side).notify_one();
        self.gate.iter().for_each(|gate| gate.open());
    }

    pub(crate) fn wake_all(&self) {
        self.read.notify_all();
        self.write.notify_all();
        self.gate.iter().for_each(|gate| gate.open_wide());
    }
}

/// The waiters of all sockets.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    sockets: HashMap<SocketId, Arc<Waiters>>,
}

impl Registry {
    /// Makes a place to wait for a socket.
    pub(crate) fn enter(&mut self, id: SocketId) -> Arc<Waiters> {
        Arc::clone(self.sockets.entry(id).or_default())
    }

    /// Makes a place to wait for a socket that is one of several.
    pub(crate) fn enter_by(&mut self, id: SocketId, gate: Arc<Gate>) -> Arc<Waiters> {
        let waiters = Waiters { gate: Some(gate), ..Waiters::default() };
        Arc::clone(self.sockets.entry(id).or_insert_with(|| Arc::new(waiters)))
    }

    pub(crate) fn leave(&mut self, id: SocketId) {
        self.sockets.remove(&id);
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = SocketId> + '_ {
        self.sockets.keys().copied()
    }

    pub(crate) fn wake_everybody(&self) {
        self.sockets.values().for_each(|waiters| waiters.wake_all());
    }

    /// Wakes whom the event concerns. Nobody may be interested; that costs next to nothing.
    pub(crate) fn hand_out(&self, event: &Event, stack: &Stack) {
        match *event {
            Event::Tcp(handle, event) => self.hand_out_tcp(handle, event, stack),
            Event::Incoming(handle) => self.wake_one(SocketId::Listen(handle), Side::Read),
            Event::Udp(handle, UdpEvent::Readable) => {
                self.wake_one(SocketId::Udp(handle), Side::Read);
            }
            Event::Udp(handle, UdpEvent::Writable) => {
                self.wake_one(SocketId::Udp(handle), Side::Write);
            }
            Event::Udp(handle, UdpEvent::Error) => self.wake_all(SocketId::Udp(handle)),
            Event::EchoReply(_) | Event::EchoError(_) => {}
        }
    }

    fn hand_out_tcp(&self, handle: TcpHandle, event: TcpEvent, stack: &Stack) {
        let id = SocketId::Tcp(handle);
        match event {
            TcpEvent::Connected | TcpEvent::Closed => self.wake_all(id),
            TcpEvent::Readable | TcpEvent::Urgent | TcpEvent::EndOfStream => {
                self.wake_one(id, Side::Read);
            }
            TcpEvent::Writable if is_worth_writing(handle, stack) => self.wake_one(id, Side::Write),
            // A stream's calls fail when the connection has ended, not while it may recover.
            TcpEvent::Writable | TcpEvent::Trouble | TcpEvent::PathMtu => {}
        }
    }

    fn wake_one(&self, id: SocketId, side: Side) {
        if let Some(waiters) = self.sockets.get(&id) {
            waiters.wake_one(side);
        }
    }

    fn wake_all(&self, id: SocketId) {
        if let Some(waiters) = self.sockets.get(&id) {
            waiters.wake_all();
        }
    }
}

/// Is a third of the send buffer free? A writer that was woken by each acknowledgement would write a
/// segment at a time and sleep again. There will be another event before the buffer has run empty.
fn is_worth_writing(handle: TcpHandle, stack: &Stack) -> bool {
    stack.tcp(handle).is_none_or(|connection| {
        connection.writable_bytes().saturating_mul(2) >= connection.unacknowledged_bytes()
    })
}

//! The threads that wait for sockets, and the dispatch of events to them.

use crate::event_count::EventCount;
use crate::poller::Registration;
use crate::timeouts::Direction;
use linerate_stack::{Event, ForwardEvent, ListenHandle, Stack, TcpHandle, UdpEvent, UdpHandle};
use linerate_tcp::Event as TcpEvent;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::sync::Arc;

/// The identifier of a socket of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SocketId {
    Tcp(TcpHandle),
    Listen(ListenHandle),
    Udp(UdpHandle),
}

/// The condition variables for one socket: threads wait on `read` to read, and on `write` to write.
/// The lock of the host protects them.
///
/// An event wakes one thread. If that thread leaves data or room for other threads, it wakes the
/// next one. Suppose ten threads wait for a datagram: if its arrival woke all of them, nine would
/// take the lock in vain. Events that concern all threads, such as the end of a connection, wake
/// all of them.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    read: Condvar,
    write: Condvar,
    /// The event count of a listener, on which threads wait for the sockets of all shards together.
    /// `None` for all other sockets.
    events: Option<Arc<EventCount>>,
    /// The registration with a [`Poller`](crate::Poller), if there is one.
    registration: Mutex<Option<Arc<Registration>>>,
}

impl Waiters {
    pub(crate) const fn of(&self, direction: Direction) -> &Condvar {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    pub(crate) fn wake_one(&self, direction: Direction) {
        self.of(direction).notify_one();
        self.events.iter().for_each(|events| events.notify_one());
        if let Some(registration) = &*self.registration.lock() {
            registration.notify(direction);
        }
    }

    pub(crate) fn wake_all(&self) {
        self.read.notify_all();
        self.write.notify_all();
        self.events.iter().for_each(|events| events.notify_all());
        if let Some(registration) = &*self.registration.lock() {
            registration.notify(Direction::Read);
            registration.notify(Direction::Write);
        }
    }

    /// Sets the registration. Returns false, and changes nothing, if the socket already has one.
    pub(crate) fn subscribe(&self, registration: &Arc<Registration>) -> bool {
        let mut known = self.registration.lock();
        let is_new = known.is_none();
        known.get_or_insert_with(|| Arc::clone(registration));
        is_new
    }

    pub(crate) fn unsubscribe(&self) {
        if let Some(registration) = self.registration.lock().take() {
            registration.cancel();
        }
    }
}

/// The registered sockets of a host, with the threads that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    sockets: HashMap<SocketId, Arc<Waiters>>,
    /// The handle of the host's forwarder, if there is one. It is registered like that of a
    /// listener.
    forwarder: Option<ListenHandle>,
}

impl Registry {
    /// Registers a socket.
    pub(crate) fn register(&mut self, id: SocketId) -> Arc<Waiters> {
        Arc::clone(self.sockets.entry(id).or_default())
    }

    /// Registers a socket whose events are also counted in `events`.
    pub(crate) fn register_with(&mut self, id: SocketId, events: Arc<EventCount>) -> Arc<Waiters> {
        let waiters = Waiters { events: Some(events), ..Waiters::default() };
        Arc::clone(self.sockets.entry(id).or_insert_with(|| Arc::new(waiters)))
    }

    pub(crate) fn remove(&mut self, id: SocketId) {
        self.sockets.remove(&id);
        // A map that is almost empty is shrunk, which frees memory. Shrinking takes time, but
        // happens only after most of the sockets have been removed. So its cost per removal is
        // small.
        if self.sockets.capacity() > 8 * self.sockets.len() + 64 {
            self.sockets.shrink_to(2 * self.sockets.len());
        }
        if self.forwarder.map(SocketId::Listen) == Some(id) {
            self.forwarder = None;
        }
    }

    pub(crate) const fn has_forwarder(&self) -> bool {
        self.forwarder.is_some()
    }

    /// Records the handle of the host's forwarder: the listener that accepts connections to any
    /// address.
    pub(crate) const fn set_forwarder(&mut self, forwarder: ListenHandle) {
        self.forwarder = Some(forwarder);
    }

    /// Dispatches the events of the forwarder. Wakes a thread that waits for a new flow, and the
    /// threads that wait for datagrams of a flow that has expired.
    pub(crate) fn dispatch_flows(&self, stack: &mut Stack) {
        while let Some(event) = stack.poll_ended_flow() {
            // There are two events: a UDP flow has expired, or a deferred handshake was cancelled.
            // Threads may wait for datagrams of the UDP flow, so they are woken. No thread waits
            // for a handshake: the application learns of its end when it accepts or rejects it.
            if let ForwardEvent::Expired(flow) = event {
                self.wake_all(SocketId::Udp(flow));
            }
        }
        if let Some(forwarder) = self.forwarder
            && stack.new_flows() > 0
        {
            self.wake_one(SocketId::Listen(forwarder), Direction::Read);
        }
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = SocketId> + '_ {
        self.sockets.keys().copied()
    }

    pub(crate) fn wake_all_sockets(&self) {
        self.sockets.values().for_each(|waiters| waiters.wake_all());
    }

    /// Wakes one thread that waits for the event, or all of them, depending on the event. Does
    /// nothing if no thread waits for it.
    pub(crate) fn dispatch(&self, event: &Event, stack: &Stack) {
        match *event {
            Event::Tcp(handle, event) => self.dispatch_tcp(handle, event, stack),
            Event::Incoming(handle) => self.wake_one(SocketId::Listen(handle), Direction::Read),
            Event::Udp(handle, UdpEvent::Readable) => {
                self.wake_one(SocketId::Udp(handle), Direction::Read);
            }
            Event::Udp(handle, UdpEvent::Writable) => {
                self.wake_one(SocketId::Udp(handle), Direction::Write);
            }
            Event::Udp(handle, _) => self.wake_all(SocketId::Udp(handle)),
            _ => {}
        }
    }

    fn dispatch_tcp(&self, handle: TcpHandle, event: TcpEvent, stack: &Stack) {
        let id = SocketId::Tcp(handle);
        match event {
            TcpEvent::Connected | TcpEvent::Closed => self.wake_all(id),
            TcpEvent::Readable | TcpEvent::Urgent | TcpEvent::EndOfStream => {
                self.wake_one(id, Direction::Read);
            }
            TcpEvent::Writable if is_worth_writing(handle, stack) => {
                self.wake_one(id, Direction::Write);
            }
            // The other events do not let a waiting call continue: a temporary problem, a new path
            // MTU, or too little room in the send buffer.
            _ => {}
        }
    }

    fn wake_one(&self, id: SocketId, direction: Direction) {
        if let Some(waiters) = self.sockets.get(&id) {
            waiters.wake_one(direction);
        }
    }

    fn wake_all(&self, id: SocketId) {
        if let Some(waiters) = self.sockets.get(&id) {
            waiters.wake_all();
        }
    }
}

/// Is at least a third of the send buffer free? Only then is it worthwhile to wake the writer: if
/// every acknowledgement woke it, it would write one segment at a time. If less is free now, a
/// later acknowledgement will cause another event before the buffer is empty.
fn is_worth_writing(handle: TcpHandle, stack: &Stack) -> bool {
    stack.tcp(handle).is_none_or(|connection| {
        connection.writable_bytes().saturating_mul(2) >= connection.unacknowledged_bytes()
    })
}

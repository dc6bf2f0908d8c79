//! The tasks that wait for sockets, and the dispatch of a host's events to them.

use linerate_stack::{Event, ForwardEvent, ListenHandle, Stack, TcpHandle, UdpEvent, UdpHandle};
use linerate_tcp::Event as TcpEvent;
use std::collections::BTreeMap;
use std::task::Waker;

/// Maximum number of registered tasks for one direction of a socket. A task that was dropped stays
/// registered, so without a limit the list could grow for ever. At the limit, all tasks are woken.
/// Tasks that still exist then register again.
const MOST_WAITERS: usize = 1_024;

/// The identifier of a socket of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SocketId {
    Tcp(TcpHandle),
    Listen(ListenHandle),
    Udp(UdpHandle),
}

/// The direction in which a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// The tasks that wait for one socket.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    read: Vec<Waker>,
    write: Vec<Waker>,
    /// Whether a write has been refused since the most recent event that reported room. The stack
    /// reports room only after it has refused a write.
    pub(crate) is_write_blocked: bool,
}

/// The waiting tasks of all sockets of a host.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    sockets: BTreeMap<SocketId, Waiters>,
    /// The tasks to wake after the next turn. [`Net::finish`](crate::Net::finish) waits in this
    /// way, because no event of a socket reports that all data is sent.
    turned: Vec<Waker>,
    /// The tasks to wake as soon as the host is unlocked.
    due: Vec<Waker>,
    /// The handle of the host's forwarder, if there is one.
    forwarder: Option<ListenHandle>,
}

impl Registry {
    pub(crate) fn insert(&mut self, id: SocketId) {
        self.sockets.insert(id, Waiters::default());
    }

    /// Removes a closed socket, and wakes the tasks that are still registered. Their calls were
    /// cancelled before, because a waiting call borrows the socket and keeps it open. So these
    /// wake-ups are spurious, and harmless.
    pub(crate) fn remove(&mut self, id: SocketId) {
        if self.forwarder.map(SocketId::Listen) == Some(id) {
            self.forwarder = None;
        }
        if let Some(waiters) = self.sockets.remove(&id) {
            self.due.extend(waiters.read);
            self.due.extend(waiters.write);
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

    /// Schedules the wake-up of tasks that wait for a new flow of the forwarder, or for a flow that
    /// has ended.
    pub(crate) fn dispatch_flows(&mut self, stack: &mut Stack) {
        while let Some(event) = stack.poll_ended_flow() {
            // An ended flow is an expired UDP flow or a cancelled TCP handshake. Tasks may wait for
            // the socket of a UDP flow. No task waits for a handshake; a task that answers it later
            // gets an error.
            if let ForwardEvent::Expired(flow) = event {
                self.wake_both(SocketId::Udp(flow));
            }
        }
        if let Some(forwarder) = self.forwarder
            && stack.new_flows() > 0
        {
            self.wake(SocketId::Listen(forwarder), Direction::Read);
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = SocketId> + '_ {
        self.sockets.keys().copied()
    }

    pub(crate) fn is_write_blocked(&self, id: SocketId) -> bool {
        self.sockets.get(&id).is_some_and(|waiters| waiters.is_write_blocked)
    }

    pub(crate) fn note_refused_write(&mut self, id: SocketId) {
        if let Some(waiters) = self.sockets.get_mut(&id) {
            waiters.is_write_blocked = true;
        }
    }

    /// Registers a task to be woken at the next event in this direction.
    pub(crate) fn wait(&mut self, id: SocketId, direction: Direction, waker: &Waker) {
        let Some(waiters) = self.sockets.get_mut(&id) else { return };
        let waiting = match direction {
            Direction::Read => &mut waiters.read,
            Direction::Write => &mut waiters.write,
        };
        if waiting.iter().any(|known| known.will_wake(waker)) {
            return;
        }
        if waiting.len() >= MOST_WAITERS {
            self.due.append(waiting);
        }
        waiting.push(waker.clone());
    }

    /// Registers a task to be woken after the next turn.
    pub(crate) fn wait_for_turn(&mut self, waker: &Waker) {
        if self.turned.len() >= MOST_WAITERS {
            self.wake_turned();
        }
        self.turned.push(waker.clone());
    }

    /// Schedules the wake-up of the tasks that wait for a turn.
    pub(crate) fn wake_turned(&mut self) {
        self.due.append(&mut self.turned);
    }

    /// Schedules the wake-up of all waiting tasks, because the host has stopped.
    pub(crate) fn wake_all(&mut self) {
        for waiters in self.sockets.values_mut() {
            waiters.is_write_blocked = false;
            self.due.append(&mut waiters.read);
            self.due.append(&mut waiters.write);
        }
        self.wake_turned();
    }

    /// Moves the tasks to wake to the end of `into`.
    pub(crate) fn move_due(&mut self, into: &mut Vec<Waker>) {
        into.append(&mut self.due);
    }

    /// Schedules the wake-up of the tasks that wait for `event`.
    pub(crate) fn dispatch(&mut self, event: &Event, stack: &Stack) {
        match *event {
            Event::Tcp(handle, event) => self.dispatch_tcp(handle, event, stack),
            Event::Incoming(handle) => self.wake(SocketId::Listen(handle), Direction::Read),
            Event::Udp(handle, UdpEvent::Readable) => {
                self.wake(SocketId::Udp(handle), Direction::Read);
            }
            Event::Udp(handle, UdpEvent::Writable) => {
                self.wake(SocketId::Udp(handle), Direction::Write);
            }
            Event::Udp(handle, _) => self.wake_both(SocketId::Udp(handle)),
            _ => {}
        }
    }

    fn dispatch_tcp(&mut self, handle: TcpHandle, event: TcpEvent, stack: &Stack) {
        let id = SocketId::Tcp(handle);
        match event {
            TcpEvent::Connected | TcpEvent::Closed => self.wake_both(id),
            TcpEvent::Readable | TcpEvent::Urgent | TcpEvent::EndOfStream => {
                self.wake(id, Direction::Read);
            }
            TcpEvent::Writable if is_worth_writing(handle, stack) => {
                self.wake(id, Direction::Write);
            }
            // All other events wake no task. `Writable` is ignored if `is_worth_writing` finds too
            // little room. Another such event follows when there is more room. A soft error may be
            // temporary, and calls on a stream fail only after the connection has ended. A stream
            // does not report changes of the path MTU.
            _ => {}
        }
    }

    fn wake_both(&mut self, id: SocketId) {
        self.wake(id, Direction::Read);
        self.wake(id, Direction::Write);
    }

    fn wake(&mut self, id: SocketId, direction: Direction) {
        let Some(waiters) = self.sockets.get_mut(&id) else { return };
        match direction {
            Direction::Read => self.due.append(&mut waiters.read),
            Direction::Write => {
                waiters.is_write_blocked = false;
                self.due.append(&mut waiters.write);
            }
        }
    }
}

/// Is at least a third of the send buffer free, so that waking the writer is worthwhile? A writer
/// that every acknowledgement woke would write one segment at a time. If less is free, a later
/// acknowledgement causes another event, before the buffer is empty.
fn is_worth_writing(handle: TcpHandle, stack: &Stack) -> bool {
    stack.tcp(handle).is_none_or(|connection| {
        connection.writable_bytes().saturating_mul(2) >= connection.unacknowledged_bytes()
    })
}

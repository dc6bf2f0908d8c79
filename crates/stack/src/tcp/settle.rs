//! What the host does after each step of a connection: its turn to send, its timer, its events, its memory and
//! its state.
//!
//! Most steps change nothing of it but what can be sent and what can be read. So a step is settled with the
//! socket in hand that it was made with, by a few compares, and the rest is followed apart.

use super::TcpSocket;
use crate::collections::timer_wheel::TimerWheel;
use crate::event::EventQueue;
use crate::ready::{Ready, Sender};
use crate::tcp::memory::Memory;
use crate::tcp::{Owner, TcpTimer};
use core::hint::cold_path;
use linerate_tcp::{Events, State};

/// What tells more than the application: of the way to the peer.
pub(crate) const OF_THE_WAY: Events = Events::TROUBLE.union(Events::PATH_MTU);

/// The parts of a host that a step of a connection concerns.
pub(crate) struct Concerned<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) ready: &'a mut Ready,
    pub(crate) local_ready: &'a mut Ready,
    pub(crate) timers: &'a mut TimerWheel<TcpTimer>,
    pub(crate) events: &'a mut EventQueue,
}

/// Those parts of a host, while its sockets are in use.
macro_rules! concerned {
    ($stack:expr) => {
        $crate::tcp::settle::Concerned {
            memory: &$stack.memory,
            ready: &mut $stack.ready,
            local_ready: &mut $stack.local_ready,
            timers: &mut $stack.timers,
            events: &mut $stack.events,
        }
    };
}
pub(crate) use concerned;

/// Has everything been done that a step makes necessary?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Settled {
    Yes,
    /// All but what [`Stack::follow`] does.
    Not,
}

impl Concerned<'_> {
    /// Does what a step of the connection with this number makes necessary.
    #[inline(always)]
    pub(crate) fn settle(self, index: u32, socket: &mut TcpSocket) -> Settled {
        if socket.concerns(self.memory)
            || socket.is_elsewhere()
            || socket.connection.events().intersects(OF_THE_WAY)
        {
            return Settled::Not;
        }
        socket.arm(index, self.timers);
        self.note(index, socket);
        Settled::Yes
    }

    /// The same after an application has read or written, which leaves the state as it is, and of which it need not be
    /// told.
    #[inline(always)]
    pub(crate) fn settle_use(mut self, index: u32, socket: &mut TcpSocket) -> Settled {
        if socket.concerns(self.memory) || socket.state == State::Closed {
            return Settled::Not;
        }
        debug_assert!(!socket.is_elsewhere() && socket.connection.events().is_empty());
        socket.arm(index, self.timers);
        self.call(index, socket);
        Settled::Yes
    }

    /// Notes that a connection wants to send.
    #[inline(always)]
    pub(crate) fn call(&mut self, index: u32, socket: &TcpSocket) {
        if socket.connection.wants_transmit() {
            let ready = if socket.is_local { &mut *self.local_ready } else { &mut *self.ready };
            ready.push(Sender::Socket(index));
        }
    }

    /// Notes that a connection wants to send, and what its application may want to know.
    #[inline(always)]
    pub(crate) fn note(mut self, index: u32, socket: &mut TcpSocket) {
        self.call(index, socket);
        let events = socket.connection.take_events();
        if !events.is_empty() && socket.owner == Owner::Application {
            self.events.note(index, events.bits());
        }
    }
}

impl TcpSocket {
    /// Has the timer of the connection, which has this number, come due in time.
    #[inline(always)]
    pub(crate) fn arm(&mut self, index: u32, timers: &mut TimerWheel<TcpTimer>) {
        let deadline = self.connection.earliest_timeout();
        if deadline < self.armed {
            cold_path();
            timers.arm(TcpTimer::Of(index), deadline);
            self.armed = deadline;
        }
    }

    /// Does the host's memory have to hear of the last step?
    #[inline(always)]
    pub(crate) fn concerns(&self, memory: &Memory) -> bool {
        self.connection.buffer_memory() != self.held || memory.is_awaited()
    }

    /// Is the connection in another state than the host knows of, or over?
    #[inline(always)]
    fn is_elsewhere(&self) -> bool {
        self.connection.state() != self.state || self.state == State::Closed
    }
}

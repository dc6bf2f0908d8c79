//! Post-step dispatch: the host's work after each step of a connection. The host schedules the
//! connection for sending, arms its timer, notes its events, and accounts for its memory and state.
//!
//! Most steps only make data available to send or to read. For these steps, the fast path suffices,
//! which compares a few fields of the socket. All other effects are left to the slow path.

use super::TcpSocket;
use crate::collections::timer_wheel::TimerWheel;
use crate::event::EventQueue;
use crate::ip::interface::Interface;
use crate::ready::{Ready, Sender};
use crate::tcp::memory::Memory;
use crate::tcp::{Owner, TcpTimer};
use alloc::boxed::Box;
use core::hint::cold_path;
use linerate_tcp::{Events, State};

/// Events about the path to the peer. The host itself reacts to these events, and also passes them
/// to the application.
pub(crate) const PATH_EVENTS: Events = Events::SOFT_ERROR.union(Events::PATH_MTU);

/// The parts of a host that a step of a connection can affect.
pub(crate) struct StepEffects<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) interface: &'a mut Interface,
    pub(crate) others: &'a mut [Box<Interface>],
    pub(crate) local_ready: &'a mut Ready,
    pub(crate) timers: &'a mut TimerWheel<TcpTimer>,
    pub(crate) events: &'a mut EventQueue,
}

/// Creates a [`StepEffects`] from a host. It borrows only fields of the host that contain no
/// sockets, so that the caller can keep a reference to a socket. A method would borrow the whole
/// host, so this is a macro.
macro_rules! step_effects {
    ($stack:expr) => {
        $crate::tcp::dispatch::StepEffects {
            memory: &$stack.memory,
            interface: &mut $stack.interface,
            others: &mut $stack.others,
            local_ready: &mut $stack.local_ready,
            timers: &mut $stack.timers,
            events: &mut $stack.events,
        }
    };
}
pub(crate) use step_effects;

/// The result of the fast path: whether it has handled all effects of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Dispatched {
    /// All effects have been handled.
    Fully,
    /// Some effects remain: `Stack::dispatch_slowly` must be called.
    Partly,
}

impl StepEffects<'_> {
    /// Handles the effects of a step of the connection at `index`. If the step has changed memory
    /// or the TCP state, or caused a path event, does nothing and returns [`Dispatched::Partly`],
    /// so that the slow path handles all effects.
    #[inline(always)]
    pub(crate) fn dispatch(self, index: u32, socket: &mut TcpSocket) -> Dispatched {
        if socket.changes_memory(self.memory)
            || socket.has_changed_state()
            || socket.connection.events().intersects(PATH_EVENTS)
        {
            return Dispatched::Partly;
        }
        socket.arm(index, self.timers);
        self.note(index, socket);
        Dispatched::Fully
    }

    /// Handles the effects of a read or write by the application. The TCP state and the events of
    /// the connection are not checked, because a read or write does not change the state and causes
    /// no events.
    #[inline(always)]
    pub(crate) fn dispatch_read_or_write(
        mut self,
        index: u32,
        socket: &mut TcpSocket,
    ) -> Dispatched {
        if socket.changes_memory(self.memory) || socket.state == State::Closed {
            return Dispatched::Partly;
        }
        debug_assert!(!socket.has_changed_state() && socket.connection.events().is_empty());
        socket.arm(index, self.timers);
        self.schedule(index, socket);
        Dispatched::Fully
    }

    /// Adds the connection to the ring of senders, if it has something to send.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, index: u32, socket: &TcpSocket) {
        if socket.connection.wants_transmit() {
            let ring = socket.egress.ring(self.interface, self.others, self.local_ready);
            ring.push(Sender::Socket(index));
        }
    }

    /// Adds the connection to the ring of senders, and notes its events for the application.
    #[inline(always)]
    pub(crate) fn note(mut self, index: u32, socket: &mut TcpSocket) {
        self.schedule(index, socket);
        let events = socket.connection.driver().take_events();
        if !events.is_empty() && socket.owner == Owner::Application {
            self.events.note(index, events.bits());
        }
    }
}

impl TcpSocket {
    /// Arms the timer of the connection for the connection's deadline. If the timer is already
    /// armed for an earlier time, it keeps that time.
    #[inline(always)]
    pub(crate) fn arm(&mut self, index: u32, timers: &mut TimerWheel<TcpTimer>) {
        let deadline = self.connection.earliest_timeout();
        if deadline < self.armed {
            cold_path();
            timers.arm(TcpTimer::Connection(index), deadline);
            self.armed = deadline;
        }
    }

    /// Returns whether the memory accounting must be updated, because the connection's buffer
    /// memory has changed, or because an application waits for memory.
    #[inline(always)]
    pub(crate) fn changes_memory(&self, memory: &Memory) -> bool {
        self.connection.buffer_memory() != self.held || memory.is_awaited()
    }

    /// Returns whether the TCP state of the connection has changed, or the connection has ended.
    #[inline(always)]
    fn has_changed_state(&self) -> bool {
        self.connection.state() != self.state || self.state == State::Closed
    }
}

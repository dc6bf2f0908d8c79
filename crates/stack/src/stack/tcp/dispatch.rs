//! Post-step dispatch: the work of the host after each step of a connection.
//!
//! `tcp::dispatch` implements the fast path, for steps that change only what can be sent and read.

use crate::stack::Stack;
use crate::tcp::dispatch::Dispatched;
use crate::tcp::dispatch::PATH_EVENTS;
use crate::tcp::dispatch::step_effects;
use core::net::IpAddr;
use linerate_tcp::{Events, SoftError, State};

impl Stack {
    /// Dispatches a step of a connection. Must be called after each step.
    pub(crate) fn dispatch_step(&mut self, index: u32) {
        if let Some(socket) = self.sockets.tcp_at(index)
            && step_effects!(self).dispatch(index, socket) == Dispatched::Partly
        {
            self.dispatch_slowly(index);
        }
    }

    /// Schedules a connection that was just opened: it has a SYN to send, and nothing else has
    /// changed.
    #[inline(never)]
    pub(crate) fn schedule_opened(&mut self, index: u32) {
        if let Some(socket) = self.sockets.full_at(index) {
            step_effects!(self).schedule(index, socket);
        }
    }

    /// Dispatches a step with effects beyond sending and reading.
    #[cold]
    pub(crate) fn dispatch_slowly(&mut self, index: u32) {
        let Some(mut socket) = self.sockets.tcp_at(index) else { return };
        if socket.changes_memory(&self.memory) {
            self.handle_memory_change(index);
            let Some(same) = self.sockets.tcp_at(index) else { return };
            socket = same;
        }
        if socket.is_retired {
            return;
        }
        let events = socket.connection.events();
        step_effects!(self).note(index, socket);
        let (before, state) = (socket.state, socket.connection.state());
        socket.state = state;
        let time_wait_end =
            if state == State::TimeWait { socket.connection.time_wait_deadline() } else { None };
        if time_wait_end.is_none() {
            socket.arm(index, &mut self.timers);
        }
        if events.intersects(PATH_EVENTS) {
            self.handle_path_events(index, events);
        }
        if before != state || state == State::Closed {
            self.handle_state_change(index, (before, state));
        }
        if let Some(end) = time_wait_end {
            self.queue_for_end(index, end);
        }
    }

    /// Handles events about the path to the peer.
    #[cold]
    fn handle_path_events(&mut self, index: u32, events: Events) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let (connection, peer) = (&socket.connection, socket.flow().hosts.remote());
        let interface = socket.egress.interface();
        let is_silent = events.contains(Events::SOFT_ERROR)
            && connection.soft_error() == Some(SoftError::Silent);
        if events.contains(Events::PATH_MTU) && connection.is_path_mtu_confirmed() {
            // Later connections use a confirmed result. A router's report alone may be forged, and
            // would affect all of them.
            let (mtu, is_estimated) = (connection.path_mtu(), connection.is_path_mtu_estimated());
            self.path_mtus.note_found(self.now, peer, mtu, is_estimated);
        }
        if is_silent {
            self.serving(interface, |stack| stack.suspect_path_to(peer));
        }
    }

    /// RFC 9293 §3.8.3 (b): a peer that does not answer is negative advice about the next hop, so
    /// the next hop is probed.
    fn suspect_path_to(&mut self, peer: IpAddr) {
        if let Some(route) = self.routes.lookup(peer) {
            self.interface.neighbors.suspect(self.now, route.next_hop(peer));
        }
    }
}

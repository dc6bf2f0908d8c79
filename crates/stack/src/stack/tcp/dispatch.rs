//! Post-step dispatch: applies the effects of each step of a connection to the host. A step is a
//! call that may change the connection.
//!
//! The module `tcp::dispatch` implements the fast path, for steps that change only whether the
//! connection has data to send or to read. This module implements the slow path.

use crate::stack::Stack;
use crate::tcp::dispatch::Dispatched;
use crate::tcp::dispatch::PATH_EVENTS;
use crate::tcp::dispatch::step_effects;
use core::net::IpAddr;
use linerate_tcp::{Events, SoftError, State};

impl Stack {
    /// Applies the effects of the most recent step of a connection to the host. Must be called
    /// after every step.
    pub(crate) fn dispatch_step(&mut self, index: u32) {
        if let Some(socket) = self.sockets.tcp_at(index)
            && step_effects!(self).dispatch(index, socket) == Dispatched::Partly
        {
            self.dispatch_slowly(index);
        }
    }

    /// Adds a connection that was just opened to the ring of senders, because a SYN or SYN-ACK has
    /// to be sent. Opening has no other effect, so no full dispatch is needed.
    #[inline(never)]
    pub(crate) fn schedule_opened(&mut self, index: u32) {
        if let Some(socket) = self.sockets.full_at(index) {
            step_effects!(self).schedule(index, socket);
        }
    }

    /// Applies the effects of a step that the fast path does not cover: changes of memory and of
    /// state, and events about the path.
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

    /// Handles events of a connection about the path to its peer: a confirmed path MTU, or a peer
    /// that does not answer.
    #[cold]
    fn handle_path_events(&mut self, index: u32, events: Events) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let (connection, peer) = (&socket.connection, socket.flow().hosts.remote());
        let interface = socket.egress.interface();
        let is_silent = events.contains(Events::SOFT_ERROR)
            && connection.soft_error() == Some(SoftError::Silent);
        if events.contains(Events::PATH_MTU) && connection.is_path_mtu_confirmed() {
            // Only a confirmed path MTU is stored for later connections to this peer. An
            // unconfirmed path MTU may come from a forged ICMP report, which must not affect other
            // connections.
            let (mtu, is_estimated) = (connection.path_mtu(), connection.is_path_mtu_estimated());
            self.path_mtus.note_found(self.now, peer, mtu, is_estimated);
        }
        if is_silent {
            self.serving(interface, |stack| stack.suspect_path_to(peer));
        }
    }

    /// Makes the next hop towards `peer` stale, so that the next packet leads to a probe of the
    /// next hop. Called because the peer does not answer, which may be due to the next hop
    /// (negative advice, RFC 9293 §3.8.3 (b)).
    fn suspect_path_to(&mut self, peer: IpAddr) {
        if let Some(route) = self.routes.lookup(peer) {
            self.interface.neighbors.suspect(self.now, route.next_hop(peer));
        }
    }
}

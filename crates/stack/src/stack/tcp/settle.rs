//! What the host does after each step of a connection: its turn to send, its timer, its events, its memory and
//! its state.
//!
//! Most steps change nothing of it but what can be sent and what can be read. So a step is settled with the
//! socket in hand that it was made with, by a few compares, and the rest is followed apart.

use crate::stack::Stack;
use crate::tcp::settle::OF_THE_WAY;
use crate::tcp::settle::Settled;
use crate::tcp::settle::concerned;
use core::net::Ipv4Addr;
use linerate_tcp::{Events, State, Trouble};

impl Stack {
    /// Does what a step of a connection makes necessary. To be called after each.
    pub(crate) fn settle(&mut self, index: u32) {
        if let Some(socket) = self.sockets.tcp_at(index)
            && concerned!(self).settle(index, socket) == Settled::Not
        {
            self.follow(index);
        }
    }

    /// The same for a connection that has just been opened: it has its SYN to send, and nothing else has happened to it.
    #[inline(never)]
    pub(crate) fn call_newcomer(&mut self, index: u32) {
        if let Some(socket) = self.sockets.awake_at(index) {
            concerned!(self).call(index, socket);
        }
    }

    /// The same for a step after which there is more to be done than to send and to read.
    #[cold]
    pub(crate) fn follow(&mut self, index: u32) {
        let Some(mut socket) = self.sockets.tcp_at(index) else { return };
        if socket.concerns(&self.memory) {
            self.follow_memory(index);
            let Some(same) = self.sockets.tcp_at(index) else { return };
            socket = same;
        }
        if socket.retired {
            return;
        }
        let events = socket.connection.events();
        concerned!(self).note(index, socket);
        let (before, state) = (socket.state, socket.connection.state());
        socket.state = state;
        let waits_until =
            if state == State::TimeWait { socket.connection.waits_until() } else { None };
        if waits_until.is_none() {
            socket.arm(index, &mut self.timers);
        }
        if events.intersects(OF_THE_WAY) {
            self.follow_way(index, events);
        }
        if before != state || state == State::Closed {
            self.follow_change(index, (before, state));
        }
        if let Some(end) = waits_until {
            self.queue_for_end(index, end);
        }
    }

    /// What a connection has found out of the way to its peer.
    #[cold]
    fn follow_way(&mut self, index: u32, events: Events) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let (connection, peer) = (&socket.connection, *socket.peer.ip());
        let is_silent =
            events.contains(Events::TROUBLE) && connection.trouble() == Some(Trouble::Silent);
        if events.contains(Events::PATH_MTU) && connection.is_path_mtu_confirmed() {
            // What one connection has found out is worth remembering for the next. What a router has only
            // said may be forged, and would harm all of them.
            let (mtu, is_estimated) = (connection.path_mtu(), connection.is_path_mtu_estimated());
            self.path_mtus.note_found(self.now, peer, mtu, is_estimated);
        }
        if is_silent {
            self.suspect_path_to(peer);
        }
    }

    /// RFC 9293 §3.8.3 (b): a peer that answers nothing is negative advice about the neighbour on the
    /// way to it, which is asked whether it is still there.
    fn suspect_path_to(&mut self, peer: Ipv4Addr) {
        if let Some(route) = self.routes.lookup(peer) {
            self.neighbors.suspect(self.now, route.next_hop(peer));
        }
    }
}

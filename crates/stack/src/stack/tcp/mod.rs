//! TCP connections of a host: how they are opened, placed in the tables, and removed.

mod burst;
mod calls;
mod input;
mod lend;
pub(super) mod output;
mod resting;
pub(super) mod settle;
mod time_wait;

use crate::demux::Flow;
use crate::handle::TcpHandle;
use crate::ip::PathInfo;
use crate::ready::Sender;
use crate::stack::Stack;
use crate::tcp::Owner;
use crate::tcp::TcpSocket;
use crate::tcp::configs::Rules;
use crate::tcp::grant::Lent;
use crate::tcp::headers::HostHeaders;
use crate::tcp::is_open;
use crate::tcp::time_wait::TcpTimer;
use alloc::boxed::Box;
use core::hint::cold_path;
use core::net::SocketAddrV4;
use linerate_tcp::{Connection, Open, Seeds, State};
use linerate_units::Instant;
use linerate_wire::SeqNum;

impl Stack {
    /// Opens a connection, in the place of one that is over if there is one: a connection is more than a kilobyte, and
    /// each move of it costs as much as two hashes. Whoever asks for that tells it of its SYN where it stays then, and
    /// settles it. It begins with `iss`, or with a number that nobody can guess. Nobody has its flow yet.
    pub(crate) fn insert_tcp(
        &mut self,
        owner: Owner,
        (local, peer): (SocketAddrV4, SocketAddrV4),
        path_info: &PathInfo,
        rules: Rules,
        open: Open,
        iss: Option<SeqNum>,
    ) -> TcpHandle {
        let path = path_info.tcp_path();
        let now = self.now;
        let flow = Flow::new(local, peer);
        let seeds = Seeds {
            initial_sequence: iss.unwrap_or_else(|| self.numbers.sequence(now, flow)),
            timestamp_offset: self.numbers.timestamp_offset(local, peer),
        };
        let is_local = self.interface.is_ours(*peer.ip());
        let recent = &mut self.recent_headers;
        if !recent.are_between(local, peer) {
            *recent = HostHeaders::new(*local.ip(), *peer.ip());
        }
        let flow_hash = self.flows.hash(flow);
        let (granted, grant) = self.memory.first_grant();
        let config = self.tcp_configs.shared(rules);
        let mut socket = match self.sockets.take_spare() {
            Some(mut spare) => {
                spare.connection.reopen(config, path, seeds, open, now);
                spare
            }
            None => Box::new(TcpSocket::around(Connection::open(
                config.clone(),
                path,
                seeds,
                open,
                now,
            ))),
        };
        // Every field is named, for the compiler to ask for one that is new: in a place that is used again, one that is
        // forgotten would go on with what it was to the connection before.
        let TcpSocket {
            headers,
            hop,
            granted: told,
            held,
            armed,
            owner: holder,
            room,
            is_local: is_here,
            state,
            retired,
            lent,
            local: this_end,
            connection,
            peer: that_end,
            flow_hash: hash,
        } = &mut *socket;
        connection.grant_memory(grant);
        (*headers, *hop) = recent.with_ports(local.port(), peer.port());
        (*told, *held, *lent) = (granted, 0, Lent::default());
        (*this_end, *that_end, *hash) = (local, peer, flow_hash);
        (*holder, *state, *retired) = (owner, connection.state(), false);
        *room = u32::try_from(path.link_payload).unwrap_or(u32::MAX);
        *is_here = is_local;
        *armed = Instant::NEVER;
        let handle = self.sockets.insert_tcp(socket);
        self.flows.insert_hashed(flow_hash, flow, handle.index());
        handle
    }

    /// A connection has gone from one state to another, or is about to leave the network.
    #[inline(always)]
    fn follow_change(&mut self, index: u32, (before, state): (State, State)) {
        if matches!(before, State::SynSent | State::SynReceived) && state != before {
            self.leave_handshake(index, (before, state));
        }
        let established = &mut self.counted.tcp.currently_established;
        match (is_open(before), is_open(state)) {
            (false, true) => {
                *established += 1;
                return self.welcome(index);
            }
            (true, false) => *established -= 1,
            _ => {}
        }
        match state {
            State::TimeWait if before != state => self.enter_time_wait(index),
            State::Closed => self.follow_end(index, before),
            _ => {}
        }
    }

    /// A connection is over, and leaves the network when it has nothing to send any more.
    #[inline(never)]
    fn follow_end(&mut self, index: u32, before: State) {
        let Some(socket) = self.sockets.awake_at(index) else { return };
        let (is_over, is_orphan) = (socket.connection.is_released(), socket.is_orphan());
        self.counted.tcp.established_resets += u64::from(is_open(before));
        if before == State::TimeWait {
            cold_path();
            self.leave_time_wait(index);
            self.orphans += usize::from(is_orphan);
        }
        if is_over {
            self.retire_awake(index);
        }
    }

    /// What the end of a handshake shows, and who waited for it.
    #[inline(never)]
    fn leave_handshake(&mut self, index: u32, (before, state): (State, State)) {
        match before {
            State::SynSent => self.learn_fast_open(index),
            _ if self.pending_fast.is_empty() => {}
            _ => self.leave_pending(index),
        }
        self.counted.tcp.attempt_failures += u64::from(state == State::Closed);
        if state.is_synchronized()
            && let Some(socket) = self.sockets.awake_at(index)
            && let Owner::HalfOpen(listener) = socket.owner
        {
            self.complete_handshake(listener, index);
        }
    }

    /// Connections in TIME-WAIT are limited; of too many, the one that has waited longest ends.
    #[inline]
    fn enter_time_wait(&mut self, index: u32) {
        let is_orphan =
            self.sockets.awake_at(index).is_some_and(|socket| socket.owner == Owner::Nobody);
        self.orphans -= usize::from(is_orphan);
        self.queues.push_back(&mut self.time_wait.list, index);
        if self.time_wait.len() > self.limits.time_wait {
            self.end_oldest_wait();
        }
    }

    #[cold]
    fn end_oldest_wait(&mut self) {
        if let Some(oldest) = self.time_wait.list.first() {
            self.counted.tcp_extra.time_wait_overflows += 1;
            self.retire(oldest);
        }
    }

    /// Takes a connection off the network. Its memory stays as long as an application holds it.
    ///
    /// Its timer stays where it is, too, and comes due once more: for nobody, or for whoever has the place by then, who is
    /// asked for its own deadline as ever. Places are used again at once, so who comes next finds the timer armed for
    /// an earlier time than it needs, and has nothing to arm.
    pub(crate) fn retire(&mut self, index: u32) {
        if !self.end_waiting(index) {
            self.retire_awake(index);
        }
    }

    fn retire_awake(&mut self, index: u32) {
        let Some(socket) = self.sockets.tcp_at(index).filter(|socket| !socket.retired) else {
            return;
        };
        let (was_established, was_orphan) = (socket.is_established(), socket.is_orphan());
        let (owner, flow) = (socket.owner, Flow::new(socket.local, socket.peer));
        let flow_hash = socket.flow_hash;
        let is_waiting = socket.state == State::TimeWait;
        let ready = if socket.is_local { &mut self.local_ready } else { &mut self.ready };
        if ready.contains(Sender::Socket(index)) {
            cold_path();
            ready.remove(Sender::Socket(index));
        }
        socket.retired = true;
        self.counted.tcp.currently_established -= u64::from(was_established);
        self.orphans -= usize::from(was_orphan);
        self.flows.remove_hashed(flow_hash, flow, index);
        if is_waiting {
            cold_path();
            self.leave_time_wait(index);
        }
        if let Owner::HalfOpen(_) | Owner::Acceptable(_) = owner {
            cold_path();
            self.leave_listener(owner, index);
        }
        if owner != Owner::Application {
            self.drop_connection(index);
        }
    }

    /// Nobody needs the connection any more.
    fn drop_connection(&mut self, index: u32) {
        self.forget_memory(index);
        self.sockets.remove(index);
    }

    /// An application lets go of a connection, which has been told how to end.
    pub(crate) fn release(&mut self, index: u32) {
        self.events.forget(index);
        self.memory.stop_waiting(index);
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        socket.owner = Owner::Nobody;
        if socket.retired {
            cold_path();
            self.drop_connection(index);
            return;
        }
        self.orphans += usize::from(socket.is_orphan());
        if socket.state == State::TimeWait {
            self.settle_in_time_wait(index);
        } else {
            self.follow(index);
        }
    }

    /// Lets one timer of a connection expire, if one is due.
    #[inline]
    pub(crate) fn handle_connection_timeout(&mut self, now: Instant) -> bool {
        if now < self.timers.next() {
            return false;
        }
        match self.timers.expire(now) {
            Some(TcpTimer::Of(index)) => self.expire_connection(now, index),
            Some(TcpTimer::Queue) => self.end_queued(now),
            None => return false,
        }
        true
    }

    #[inline(never)]
    fn expire_connection(&mut self, now: Instant, index: u32) {
        if let Some(end) = self.sockets.waits_until(index) {
            // Or the timer is of its busy life, and another one has been armed since.
            if end <= now {
                self.end_waiting(index);
            }
            return;
        }
        // The deadline may have moved later since the timer was armed; then it is armed anew, and that is all: little of
        // the connection is touched, which may not be at hand.
        if let Some(socket) = self.sockets.awake_at(index) {
            socket.armed = Instant::NEVER;
            if let Some(deadline) = socket.connection.deadline_after(now) {
                self.timers.arm(TcpTimer::Of(index), deadline);
                socket.armed = deadline;
                return;
            }
        }
        if let Some(socket) = self.sockets.tcp_at(index) {
            socket.connection.handle_timeout(now);
        }
        self.settle(index);
        self.let_rest(index);
    }

    /// Judges the invariants of one connection and its place in the host.
    pub(crate) fn check_tcp(&self, index: u32, socket: &TcpSocket) {
        socket.connection.check();
        assert_eq!(socket.held, socket.connection.buffer_memory(), "the host follows what is held");
        self.memory.check_granted(socket);
        if socket.retired {
            assert_eq!(socket.owner, Owner::Application, "only an application keeps what is over");
            return;
        }
        let flow = Flow::new(socket.local, socket.peer);
        assert_eq!(self.flows.get(flow), Some(index), "each connection is found by its flow");
        assert_eq!(
            socket.state,
            socket.connection.state(),
            "the host has followed each connection"
        );
        let ready = if socket.is_local { &self.local_ready } else { &self.ready };
        let waits = socket.connection.wants_transmit();
        assert!(
            !waits || ready.contains(Sender::Socket(index)),
            "who wants to send stands in the ring"
        );
        self.check_timer(index, socket);
        assert!(socket.connection.events().is_empty(), "what has happened was noted");
        assert!(!socket.connection.is_released(), "what is over has left");
    }

    /// Judges what the host has counted of its connections.
    pub(crate) fn check_connections(&self) {
        let connections = || self.sockets.iter().filter_map(|(_, socket)| socket.as_tcp());
        let count = |is: fn(&TcpSocket) -> bool| connections().filter(|socket| is(socket)).count();
        assert_eq!(self.flows.len(), count(|socket| !socket.retired), "flows are connections");
        self.memory.check(connections().map(|socket| socket.held));
        let held = |index| Some(self.sockets.get(index)?.as_tcp()?.held);
        self.memory.check_newcomers(held);
        assert_eq!(self.orphans, count(TcpSocket::is_orphan), "orphans are counted");
        assert_eq!(
            self.time_wait.len(),
            count(|socket| !socket.retired && socket.state == State::TimeWait),
            "connections in TIME-WAIT stand in their queue"
        );
        assert!(self.time_wait.len() <= self.limits.time_wait, "TIME-WAIT is limited");
        let established = count(TcpSocket::is_established) as u64;
        assert_eq!(self.counted.tcp.currently_established, established, "CurrEstab is right");
    }
}

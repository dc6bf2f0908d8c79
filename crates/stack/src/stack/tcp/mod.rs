//! TCP connections in the stack: state changes, timers and removal.

mod batch;
mod calls;
mod compact;
pub(super) mod dispatch;
mod input;
mod open;
mod options;
pub(super) mod output;
mod time_wait;
mod zero_copy;

use crate::collections::timer_wheel::TimerId;
use crate::ready::Sender;
use crate::stack::Stack;
use crate::tcp::Owner;
use crate::tcp::TcpSocket;
use crate::tcp::is_open;
use crate::tcp::time_wait::TcpTimer;
use core::hint::cold_path;
use linerate_tcp::State;
use linerate_units::Instant;

impl Stack {
    /// Updates the host after a step in which the state of a connection changed from `before` to
    /// `state`. Must be called after each step of a closed connection even if the state is
    /// unchanged, because the step may have sent the final segment, after which the connection is
    /// removed.
    #[inline(always)]
    fn handle_state_change(&mut self, index: u32, (before, state): (State, State)) {
        if matches!(before, State::SynSent | State::SynReceived) && state != before {
            self.leave_handshake(index, (before, state));
        }
        let established = &mut self.counted.tcp.currently_established;
        match (is_open(before), is_open(state)) {
            (false, true) => {
                *established += 1;
                return self.handle_newcomer(index);
            }
            (true, false) => *established -= 1,
            _ => {}
        }
        match state {
            State::TimeWait if before != state => self.enter_time_wait(index),
            State::Closed => self.handle_end(index, before),
            _ => {}
        }
    }

    /// Handles a step after which a connection is closed. The connection stays in the tables until
    /// it has no segment left to send, such as a reset.
    #[inline(never)]
    fn handle_end(&mut self, index: u32, before: State) {
        let Some(socket) = self.sockets.full_at(index) else { return };
        let (is_over, is_orphan) = (socket.connection.is_released(), socket.is_orphan());
        self.counted.tcp.established_resets += u64::from(is_open(before));
        if before == State::TimeWait {
            cold_path();
            self.leave_time_wait(index);
            self.orphans += usize::from(is_orphan);
        }
        if is_over {
            self.retire_full(index);
        }
    }

    /// Handles the end of a handshake, successful or not: updates the queues of the listener and
    /// the Fast Open cache.
    #[inline(never)]
    fn leave_handshake(&mut self, index: u32, (before, state): (State, State)) {
        match before {
            State::SynSent => self.learn_fast_open(index),
            _ if self.pending_fast.is_empty() => {}
            _ => self.leave_pending(index),
        }
        self.counted.tcp.attempt_failures += u64::from(state == State::Closed);
        if state.is_synchronized()
            && let Some(socket) = self.sockets.full_at(index)
            && let Owner::HalfOpen(listener) = socket.owner
        {
            self.complete_handshake(listener, index);
        }
    }

    /// Adds a connection to the TIME-WAIT queue. If the queue then exceeds its limit, the
    /// connection that has been in the queue longest is removed before the end of its TIME-WAIT.
    #[inline]
    fn enter_time_wait(&mut self, index: u32) {
        let is_orphan =
            self.sockets.full_at(index).is_some_and(|socket| socket.owner == Owner::Orphan);
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

    /// Removes a connection from all tables and queues. If an application still owns the
    /// connection, the socket itself remains, with its unread data.
    ///
    /// The timer of the connection stays armed, because another connection soon reuses the slot.
    /// The deadline of that connection is usually later, so it needs no timer of its own: it checks
    /// its deadline when this timer expires.
    pub(crate) fn retire(&mut self, index: u32) {
        if !self.end_record(index) {
            self.retire_full(index);
        }
    }

    fn retire_full(&mut self, index: u32) {
        let Some(socket) = self.sockets.tcp_at(index).filter(|socket| !socket.is_retired) else {
            return;
        };
        let (was_established, was_orphan) = (socket.is_established(), socket.is_orphan());
        let (owner, flow) = (socket.owner, socket.flow());
        let flow_hash = socket.flow_hash;
        let is_waiting = socket.state == State::TimeWait;
        let egress = socket.egress;
        let ready = egress.ring(&mut self.interface, &mut self.others, &mut self.local_ready);
        if ready.contains(Sender::Socket(index)) {
            cold_path();
            ready.remove(Sender::Socket(index));
        }
        socket.is_retired = true;
        self.counted.tcp.currently_established -= u64::from(was_established);
        self.orphans -= usize::from(was_orphan);
        self.flows.remove_hashed(flow_hash, &flow, index);
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

    /// Frees the slot of a closed socket, which must not be in any queue.
    pub(crate) fn remove_socket(&mut self, index: u32) {
        if let Some(slots) = self.sockets.remove(index) {
            self.shrink_tables(slots);
        }
    }

    /// Shrinks the tables that are indexed by socket, after the slots with an index of `slots` or
    /// more were removed.
    #[cold]
    fn shrink_tables(&mut self, slots: usize) {
        let first = u32::try_from(slots).unwrap_or(u32::MAX);
        self.events.shrink(slots);
        self.memory.shrink(slots);
        self.queues.shrink(slots);
        self.all_interfaces_mut().for_each(|interface| interface.ready.shrink(first));
        self.local_ready.shrink(first);
        self.timers.shrink(TcpTimer::Connection(first).number());
    }

    /// Frees a connection with its buffer memory and its slot.
    fn drop_connection(&mut self, index: u32) {
        self.forget_memory(index);
        self.remove_socket(index);
    }

    /// Takes a connection from its application, which has closed or aborted it. The connection
    /// becomes an orphan, or is freed if it has already ended.
    pub(crate) fn release(&mut self, index: u32) {
        self.events.forget(index);
        self.memory.stop_waiting(index);
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        socket.owner = Owner::Orphan;
        if socket.is_retired {
            cold_path();
            self.drop_connection(index);
            return;
        }
        self.orphans += usize::from(socket.is_orphan());
        if socket.state == State::TimeWait {
            self.dispatch_in_time_wait(index);
        } else {
            self.dispatch_slowly(index);
        }
    }

    /// Runs one timer of a connection, of a forwarded UDP flow or of the TIME-WAIT queue, if a
    /// timer is due at `now`. Returns whether a timer has run.
    #[inline]
    pub(crate) fn handle_connection_timeout(&mut self, now: Instant) -> bool {
        if now < self.timers.next() {
            return false;
        }
        match self.timers.expire(now) {
            Some(TcpTimer::Connection(index)) => self.expire_connection(now, index),
            Some(TcpTimer::Queue) => self.end_due_records(now),
            None => return false,
        }
        true
    }

    #[inline(never)]
    fn expire_connection(&mut self, now: Instant, index: u32) {
        if let Some(end) = self.sockets.time_wait_end(index) {
            // If the TIME-WAIT record has not ended yet, this timer is one that was armed while the
            // connection still had its full form. Another timer ends the record, so this one has no
            // effect.
            if end <= now {
                self.end_record(index);
            }
            return;
        }
        // When the deadline of a connection moves to a later time, its timer is left as it is, so
        // the timer may expire before the deadline. It is then armed here for the deadline. This
        // check reads only few fields of the connection, which may not be in the processor's
        // caches.
        if let Some(socket) = self.sockets.full_at(index) {
            socket.armed = Instant::NEVER;
            if let Some(deadline) = socket.connection.driver().deadline_after(now) {
                self.timers.arm(TcpTimer::Connection(index), deadline);
                socket.armed = deadline;
                return;
            }
        }
        let Some(socket) = self.sockets.tcp_at(index) else {
            return self.expire_udp_flow(now, index);
        };
        socket.connection.driver().handle_timeout(now);
        self.dispatch_step(index);
        self.pack_if_idle(index);
    }

    /// Checks the invariants of a connection and of its entries in the tables of the host. Panics
    /// if one is broken.
    pub(crate) fn check_tcp(&self, index: u32, socket: &TcpSocket) {
        socket.connection.check();
        assert_eq!(
            socket.held,
            socket.connection.buffer_memory(),
            "the host accounts for all memory"
        );
        self.memory.check_granted(socket);
        if socket.is_retired {
            assert_eq!(
                socket.owner,
                Owner::Application,
                "only an application keeps an ended connection"
            );
            return;
        }
        assert_eq!(
            self.flows.get(&socket.flow()),
            Some(index),
            "each connection is found by its flow"
        );
        assert_eq!(socket.state, socket.connection.state(), "each change of state was dispatched");
        let is_in_ring = if socket.egress.is_local() {
            self.local_ready.contains(Sender::Socket(index))
        } else {
            self.is_sender(socket.egress.interface(), index)
        };
        let is_sender = socket.connection.wants_transmit();
        assert!(!is_sender || is_in_ring, "a connection with data to send is in the ring");
        self.check_timer(index, socket);
        assert!(socket.connection.events().is_empty(), "all events were noted");
        assert!(!socket.connection.is_released(), "an ended connection has left the tables");
    }

    /// Checks the counters of connections against the sockets. Panics if one differs.
    pub(crate) fn check_connections(&self) {
        let connections = || self.sockets.iter().filter_map(|(_, socket)| socket.as_tcp());
        let count = |is: fn(&TcpSocket) -> bool| connections().filter(|socket| is(socket)).count();
        assert_eq!(self.flows.len(), count(|socket| !socket.is_retired), "flows are connections");
        self.memory.check(connections().map(|socket| socket.held));
        let held = |index| Some(self.sockets.get(index)?.as_tcp()?.held);
        self.memory.check_newcomers(held);
        assert_eq!(self.orphans, count(TcpSocket::is_orphan), "orphans are counted");
        assert_eq!(
            self.time_wait.len(),
            count(|socket| !socket.is_retired && socket.state == State::TimeWait),
            "connections in TIME-WAIT are in their queue"
        );
        assert!(self.time_wait.len() <= self.limits.time_wait, "TIME-WAIT is limited");
        let established = count(TcpSocket::is_established) as u64;
        assert_eq!(self.counted.tcp.currently_established, established, "CurrEstab is right");
    }
}

//! Connections in TIME-WAIT, in the order in which they end, and one timer for nearly all of them.
//!
//! They end in the order in which they have come, as long as each waits for as long as the one before it. So whoever
//! is kept as nothing but what TIME-WAIT needs stands in the queue without a timer of its own: the queue's comes
//! due a little after the first of them may end, and ends all that may end by then. To wait for a little longer
//! costs nothing but the record; TIME-WAIT is never shorter than it has to be (RFC 9293 §3.6.1).

use crate::stack::Stack;
use crate::tcp::time_wait::AT_A_TIME;
use crate::tcp::time_wait::TcpTimer;
use crate::tcp::{Owner, TcpSocket};
use core::hint::cold_path;
use linerate_tcp::State;
use linerate_units::Instant;

impl Stack {
    /// A connection, which is in the queue and which nobody holds, does nothing any more but wait until `end`.
    #[inline]
    pub(super) fn queue_for_end(&mut self, index: u32, end: Instant) {
        if end < self.time_wait.latest {
            cold_path();
            // One that was woken, or whose rules are others.
            self.timers.set(TcpTimer::Of(index), end);
            if let Some(socket) = self.sockets.awake_at(index) {
                socket.armed = Instant::NEVER;
            }
            return;
        }
        self.time_wait.latest = end;
        self.time_wait.passed = 0;
        if self.time_wait.list.last() != Some(index) {
            cold_path();
            self.move_back(index);
        }
        self.timers.arm(TcpTimer::Queue, end + self.time_wait.late);
    }

    /// TIME-WAIT of one of the queue is over.
    #[inline]
    pub(super) fn leave_time_wait(&mut self, index: u32) {
        self.queues.remove(&mut self.time_wait.list, index);
        self.time_wait.passed = 0;
    }

    /// Puts one of the queue behind all others.
    fn move_back(&mut self, index: u32) {
        self.queues.remove(&mut self.time_wait.list, index);
        self.queues.push_back(&mut self.time_wait.list, index);
    }

    /// Ends those at the front of the queue whose time has come. Who is found to do something else stands behind the others
    /// then, until all have been asked, or one is found whose time has not come.
    pub(super) fn end_queued(&mut self, now: Instant) {
        for _ in 0..AT_A_TIME {
            let Some(first) = self.time_wait.list.first() else { break };
            match self.sockets.waits_until(first) {
                Some(end) => {
                    self.time_wait.passed = 0;
                    if end > now {
                        return self.timers.arm(TcpTimer::Queue, end + self.time_wait.late);
                    }
                    self.end_waiting(first);
                }
                None if self.time_wait.passed < self.time_wait.len() => self.pass_over(now, first),
                None => break,
            }
        }
        if self.time_wait.passed < self.time_wait.len() {
            return self.timers.arm(TcpTimer::Queue, now);
        }
        // Nobody stands there without a timer of its own; whoever does nothing but wait from now on says so.
        self.time_wait.passed = 0;
        self.time_wait.latest = Instant::ZERO;
    }

    /// One that is awake, and perhaps has an application that looks at it, keeps nobody from being ended.
    #[cold]
    fn pass_over(&mut self, now: Instant, index: u32) {
        self.move_back(index);
        self.expire_connection(now, index);
        self.time_wait.passed += usize::from(self.queues.contains(index));
        if let Some(socket) = self.sockets.awake_at(index) {
            self.timers.arm(TcpTimer::Of(index), socket.connection.poll_timeout());
        }
    }

    /// Judges whether a timer, its own or the queue's, is armed in time for a connection.
    pub(super) fn check_timer(&self, index: u32, socket: &TcpSocket) {
        let deadline = socket.connection.poll_timeout();
        let armed = self.timers.deadline(TcpTimer::Of(index));
        assert!(
            armed <= socket.armed,
            "each timer comes due when the connection believes it does, or before"
        );
        let is_queued = socket.state == State::TimeWait && socket.owner == Owner::Nobody;
        let queue =
            is_queued && self.timers.deadline(TcpTimer::Queue) <= deadline + self.time_wait.late;
        assert!(queue || armed <= deadline, "each timer is armed in time");
    }
}

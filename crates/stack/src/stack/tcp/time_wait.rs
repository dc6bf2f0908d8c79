//! The queue of connections in TIME-WAIT, with one timer for nearly all connections.
//!
//! The module `tcp::time_wait` explains why a TIME-WAIT record needs no timer of its own.

use crate::stack::Stack;
use crate::tcp::time_wait::ENDS_PER_EXPIRY;
use crate::tcp::time_wait::TcpTimer;
use crate::tcp::{Owner, TcpSocket};
use core::hint::cold_path;
use linerate_tcp::State;
use linerate_units::Instant;

impl Stack {
    /// Schedules the end of TIME-WAIT at `end` for a connection in the queue. The connection is a
    /// TIME-WAIT record, or it is an orphan without buffer memory, which can become a record.
    #[inline]
    pub(super) fn queue_for_end(&mut self, index: u32, end: Instant) {
        if end < self.time_wait.latest {
            cold_path();
            // The queue is ordered by the end of TIME-WAIT, and the timer of the queue follows this
            // order. This connection ends earlier than another that is already in the queue. Its
            // TIME-WAIT is shorter, or it was restored to its full form for a while. At the back of
            // the queue it would end too late, so it gets a timer of its own.
            self.timers.set(TcpTimer::Connection(index), end);
            if let Some(socket) = self.sockets.full_at(index) {
                socket.armed = Instant::NEVER;
            }
            return;
        }
        self.time_wait.latest = end;
        self.time_wait.skipped = 0;
        if self.time_wait.list.last() != Some(index) {
            cold_path();
            self.move_back(index);
        }
        self.timers.arm(TcpTimer::Queue, end + self.time_wait.delay);
    }

    /// Removes a connection from the TIME-WAIT queue.
    #[inline]
    pub(super) fn leave_time_wait(&mut self, index: u32) {
        self.queues.remove(&mut self.time_wait.list, index);
        self.time_wait.skipped = 0;
    }

    /// Moves a connection to the back of the TIME-WAIT queue.
    fn move_back(&mut self, index: u32) {
        self.queues.remove(&mut self.time_wait.list, index);
        self.queues.push_back(&mut self.time_wait.list, index);
    }

    /// Ends the records at the front of the queue whose TIME-WAIT is over, and arms the timer of
    /// the queue for the next record. Connections that are not records move to the back of the
    /// queue. Stops at the first record that is not due yet. Handles at most [`ENDS_PER_EXPIRY`]
    /// entries; if more are left, the timer expires again at once.
    pub(super) fn end_due_records(&mut self, now: Instant) {
        for _ in 0..ENDS_PER_EXPIRY {
            let Some(first) = self.time_wait.list.first() else { break };
            match self.sockets.time_wait_end(first) {
                Some(end) => {
                    self.time_wait.skipped = 0;
                    if end > now {
                        return self.timers.arm(TcpTimer::Queue, end + self.time_wait.delay);
                    }
                    self.end_record(first);
                }
                None if self.time_wait.skipped < self.time_wait.len() => self.skip(now, first),
                None => break,
            }
        }
        if self.time_wait.skipped < self.time_wait.len() {
            return self.timers.arm(TcpTimer::Queue, now);
        }
        // The queue contains no record, so its timer is not armed. It is armed when a record is
        // added.
        self.time_wait.skipped = 0;
        self.time_wait.latest = Instant::ZERO;
    }

    /// Moves a connection that is not a record to the back of the queue, so that it does not block
    /// the records behind it. Runs the timer of the connection.
    #[cold]
    fn skip(&mut self, now: Instant, index: u32) {
        self.move_back(index);
        self.expire_connection(now, index);
        self.time_wait.skipped += usize::from(self.queues.contains(index));
        if let Some(socket) = self.sockets.full_at(index) {
            self.timers.arm(TcpTimer::Connection(index), socket.connection.poll_timeout());
        }
    }

    /// Checks that a timer is armed for the deadline of a connection. This is the timer of the
    /// connection, or, if the connection is an orphan in TIME-WAIT, the timer of the queue. The
    /// timer of the queue may expire later than the deadline by the delay of the queue. Panics if
    /// there is no such timer.
    pub(super) fn check_timer(&self, index: u32, socket: &TcpSocket) {
        let deadline = socket.connection.poll_timeout();
        let armed = self.timers.deadline(TcpTimer::Connection(index));
        assert!(armed <= socket.armed, "each timer expires no later than recorded");
        let is_queued = socket.state == State::TimeWait && socket.owner == Owner::Orphan;
        let queue =
            is_queued && self.timers.deadline(TcpTimer::Queue) <= deadline + self.time_wait.delay;
        assert!(queue || armed <= deadline, "each timer is armed in time");
    }
}

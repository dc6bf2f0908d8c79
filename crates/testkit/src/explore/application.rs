//! A random application at one endpoint of a connection, which behaves as its [`Habit`] says.

use super::stage::{End, Presence};
use super::world::Habit;
use crate::{Access, pattern};
use linerate_tcp::Error;
use linerate_units::Instant;

/// An application at one endpoint of a connection, with its progress in reading and writing.
#[derive(Clone, Debug)]
pub(super) struct Application {
    habit: Habit,
    /// Number of bytes that the peer's application will send.
    expects: usize,
    /// Earliest time of the application's next action.
    wakes: Instant,
    reads_from: Instant,
    written: usize,
    read: usize,
    closed: bool,
    read_to_end: bool,
    pub(super) aborted: bool,
    pub(super) failed: Option<Error>,
}

impl Application {
    pub(super) fn new(habit: Habit, expects: usize, now: Instant) -> Self {
        Self {
            habit,
            expects,
            wakes: now,
            reads_from: now + habit.reads_nothing_for,
            written: 0,
            read: 0,
            closed: false,
            read_to_end: false,
            aborted: false,
            failed: None,
        }
    }

    /// Returns whether the application makes no further calls: it has closed and read everything,
    /// it has aborted the connection, or the connection has failed.
    pub(super) fn is_done(&self) -> bool {
        (self.closed && self.read_to_end) || self.aborted || self.failed.is_some()
    }

    /// Returns whether a call of the application has reported that the connection timed out. In
    /// this case, perhaps no segment has ever reached the peer.
    pub(super) fn has_given_up(&self) -> bool {
        self.failed == Some(Error::TimedOut)
    }

    /// Returns the time at which the application acts next without an event such as the arrival of
    /// data. Returns `NEVER` if it only waits for events, or makes no further calls.
    pub(super) fn wakes(&self, now: Instant) -> Instant {
        if self.is_done() {
            Instant::NEVER
        } else if self.wakes > now {
            self.wakes
        } else if self.reads_from > now {
            self.reads_from
        } else {
            Instant::NEVER
        }
    }

    /// Reads and writes once, and closes or aborts the connection if the application's habit says
    /// so. Returns whether this has changed anything.
    pub(super) fn act(&mut self, end: &mut End<'_>, now: Instant) -> bool {
        if self.is_done() || now < self.wakes || end.presence() == Presence::Absent {
            return false;
        }
        self.wakes = now + self.habit.pause;
        let before = (self.written, self.read, self.closed, self.is_done());
        if now >= self.reads_from {
            self.read(end);
        }
        if !self.is_done() {
            self.write(end);
        }
        let limit = self.habit.aborts_after.unwrap_or(usize::MAX);
        if !self.is_done() && self.written.max(self.read) >= limit {
            end.abort();
            self.aborted = true;
        }
        before != (self.written, self.read, self.closed, self.is_done())
    }

    fn read(&mut self, end: &mut End<'_>) {
        let mut part = vec![0; self.habit.read_size];
        match end.read(Access::at(self.read), &mut part) {
            Ok(0) => {
                assert_eq!(self.read, self.expects, "the stream has ended early");
                self.read_to_end = true;
            }
            Ok(count) => {
                let expected = (self.read..self.read + count).map(pattern);
                assert!(
                    part[..count].iter().copied().eq(expected),
                    "wrong bytes after {}",
                    self.read
                );
                self.read += count;
                assert!(self.read <= self.expects, "more bytes than were sent");
            }
            Err(Error::WouldBlock) => {}
            Err(error) => self.failed = Some(error),
        }
    }

    fn write(&mut self, end: &mut End<'_>) {
        if self.written < self.habit.bytes {
            let count = self.habit.write_size.min(self.habit.bytes - self.written);
            let part: Vec<u8> = (self.written..self.written + count).map(pattern).collect();
            match end.write(Access::at(self.written), &part) {
                Ok(count) => self.written += count,
                Err(error) => self.failed = Some(error),
            }
        }
        if self.written == self.habit.bytes && !self.closed && self.failed.is_none() {
            end.close_direction();
            self.closed = true;
        }
    }
}

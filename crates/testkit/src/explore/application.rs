//! An application with a habit, at one end of a connection.

use super::stage::{End, Place};
use super::world::Habit;
use crate::{Way, pattern};
use linerate_tcp::Error;
use linerate_units::Instant;

/// How far it has come.
#[derive(Clone, Debug)]
pub(super) struct Application {
    habit: Habit,
    /// What the other one means to send.
    expects: usize,
    /// When it does something again.
    wakes: Instant,
    hears_from: Instant,
    written: usize,
    read: usize,
    closed: bool,
    heard_end: bool,
    pub(super) aborted: bool,
    pub(super) failed: Option<Error>,
}

impl Application {
    pub(super) fn new(habit: Habit, expects: usize, now: Instant) -> Self {
        Self {
            habit,
            expects,
            wakes: now,
            hears_from: now + habit.deaf_for,
            written: 0,
            read: 0,
            closed: false,
            heard_end: false,
            aborted: false,
            failed: None,
        }
    }

    /// Has it done everything that it meant to, or was it stopped?
    pub(super) fn is_done(&self) -> bool {
        (self.closed && self.heard_end) || self.aborted || self.failed.is_some()
    }

    /// Has its connection ended because nobody answered? Nobody may have heard of that.
    pub(super) fn has_given_up(&self) -> bool {
        self.failed == Some(Error::TimedOut)
    }

    /// When it does something by itself.
    pub(super) fn wakes(&self, now: Instant) -> Instant {
        if self.is_done() {
            Instant::NEVER
        } else if self.wakes > now {
            self.wakes
        } else if self.hears_from > now {
            self.hears_from
        } else {
            Instant::NEVER
        }
    }

    /// Does what it can do now; says whether that was anything.
    pub(super) fn act(&mut self, end: &mut End<'_>, now: Instant) -> bool {
        if self.is_done() || now < self.wakes || end.place() == Place::Nowhere {
            return false;
        }
        self.wakes = now + self.habit.pause;
        let before = (self.written, self.read, self.closed, self.is_done());
        if now >= self.hears_from {
            self.hear(end);
        }
        if !self.is_done() {
            self.speak(end);
        }
        let patience = self.habit.aborts_after.unwrap_or(usize::MAX);
        if !self.is_done() && self.written.max(self.read) >= patience {
            end.abort();
            self.aborted = true;
        }
        before != (self.written, self.read, self.closed, self.is_done())
    }

    fn hear(&mut self, end: &mut End<'_>) {
        let mut part = vec![0; self.habit.read_size];
        match end.read(Way::at(self.read), &mut part) {
            Ok(0) => {
                assert_eq!(self.read, self.expects, "the stream has ended early");
                self.heard_end = true;
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

    fn speak(&mut self, end: &mut End<'_>) {
        if self.written < self.habit.bytes {
            let count = self.habit.write_size.min(self.habit.bytes - self.written);
            let part: Vec<u8> = (self.written..self.written + count).map(pattern).collect();
            match end.write(Way::at(self.written), &part) {
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

//! Timeouts and the non-blocking mode of a socket. All clones of a socket share them, as in
//! `std::net`.

use crate::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The direction in which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The thread waits for data, the end of a stream, a connection or a datagram.
    Read,
    /// The thread waits for room in a send buffer, or for its own connection to open.
    Write,
}

/// The time that one call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    /// The call must not wait.
    NoWait,
    /// The call may wait this long.
    Within(Duration),
    /// The call may wait without limit.
    Forever,
}

/// The timeouts of a socket. By default calls wait without limit.
#[derive(Debug, Default)]
pub(crate) struct Timeouts {
    nonblocking: AtomicBool,
    /// The timeout of reads in nanoseconds; zero if there is none. `write` is the timeout of
    /// writes.
    read: AtomicU64,
    write: AtomicU64,
}

impl Timeouts {
    pub(crate) fn limit(&self, direction: Direction) -> WaitLimit {
        if self.nonblocking.load(Ordering::Relaxed) {
            return WaitLimit::NoWait;
        }
        self.timeout(direction).map_or(WaitLimit::Forever, WaitLimit::Within)
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
    }

    pub(crate) fn timeout(&self, direction: Direction) -> Option<Duration> {
        let nanos = self.of(direction).load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    pub(crate) fn set_timeout(
        &self,
        direction: Direction,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        let nanos = match timeout {
            Some(Duration::ZERO) => return Err(Error::ZeroTimeout),
            Some(timeout) => u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
            None => 0,
        };
        self.of(direction).store(nanos, Ordering::Relaxed);
        Ok(())
    }

    const fn of(&self, direction: Direction) -> &AtomicU64 {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_has_its_timeout_and_nonblocking_overrides_both() {
        let timeouts = Timeouts::default();
        assert_eq!(timeouts.limit(Direction::Read), WaitLimit::Forever);
        let second = Duration::from_secs(1);
        timeouts.set_timeout(Direction::Read, Some(second)).unwrap();
        assert_eq!(
            (timeouts.timeout(Direction::Read), timeouts.timeout(Direction::Write)),
            (Some(second), None)
        );
        assert_eq!(timeouts.limit(Direction::Read), WaitLimit::Within(second));
        timeouts.set_nonblocking(true);
        assert_eq!(
            (timeouts.limit(Direction::Read), timeouts.limit(Direction::Write)),
            (WaitLimit::NoWait, WaitLimit::NoWait)
        );
        timeouts.set_nonblocking(false);
        timeouts.set_timeout(Direction::Read, None).unwrap();
        assert_eq!(timeouts.limit(Direction::Read), WaitLimit::Forever);
    }

    #[test]
    fn a_zero_timeout_is_refused_and_a_huge_one_is_capped() {
        let timeouts = Timeouts::default();
        assert_eq!(
            timeouts.set_timeout(Direction::Write, Some(Duration::ZERO)),
            Err(Error::ZeroTimeout)
        );
        timeouts.set_timeout(Direction::Write, Some(Duration::MAX)).unwrap();
        assert_eq!(timeouts.timeout(Direction::Write), Some(Duration::from_nanos(u64::MAX)));
    }
}

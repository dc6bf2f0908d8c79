//! How long the calls on a socket may wait. All clones of a socket share it, as they do in `std::net`.

use crate::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The two things that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Something to take: data, the end of a stream, a connection, a datagram.
    Read,
    /// Room to put something, or a connection that is open.
    Write,
}

/// How long one call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Not at all.
    None,
    /// No longer than this.
    Within(Duration),
    /// As long as it takes.
    Endless,
}

/// The limits of a socket. Waiting without end is the rule until something else is set.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    nonblocking: AtomicBool,
    /// Nanoseconds; 0 for waiting without end.
    read: AtomicU64,
    write: AtomicU64,
}

impl Patience {
    pub(crate) fn limit(&self, side: Side) -> Limit {
        if self.nonblocking.load(Ordering::Relaxed) {
            return Limit::None;
        }
        self.timeout(side).map_or(Limit::Endless, Limit::Within)
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
    }

    pub(crate) fn timeout(&self, side: Side) -> Option<Duration> {
        let nanos = self.of(side).load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    pub(crate) fn set_timeout(&self, side: Side, timeout: Option<Duration>) -> Result<(), Error> {
        let nanos = match timeout {
            Some(Duration::ZERO) => return Err(Error::ZeroTimeout),
            Some(timeout) => u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
            None => 0,
        };
        self.of(side).store(nanos, Ordering::Relaxed);
        Ok(())
    }

    const fn of(&self, side: Side) -> &AtomicU64 {
        match side {
            Side::Read => &self.read,
            Side::Write => &self.write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_its_timeout_and_nonblocking_overrides_both() {
        let patience = Patience::default();
        assert_eq!(patience.limit(Side::Read), Limit::Endless);
        let second = Duration::from_secs(1);
        patience.set_timeout(Side::Read, Some(second)).unwrap();
        assert_eq!(
            (patience.timeout(Side::Read), patience.timeout(Side::Write)),
            (Some(second), None)
        );
        assert_eq!(patience.limit(Side::Read), Limit::Within(second));
        patience.set_nonblocking(true);
        assert_eq!(
            (patience.limit(Side::Read), patience.limit(Side::Write)),
            (Limit::None, Limit::None)
        );
        patience.set_nonblocking(false);
        patience.set_timeout(Side::Read, None).unwrap();
        assert_eq!(patience.limit(Side::Read), Limit::Endless);
    }

    #[test]
    fn a_timeout_of_no_time_is_refused_and_one_beyond_measure_is_the_longest() {
        let patience = Patience::default();
        assert_eq!(
            patience.set_timeout(Side::Write, Some(Duration::ZERO)),
            Err(Error::ZeroTimeout)
        );
        patience.set_timeout(Side::Write, Some(Duration::MAX)).unwrap();
        assert_eq!(patience.timeout(Side::Write), Some(Duration::from_nanos(u64::MAX)));
    }
}

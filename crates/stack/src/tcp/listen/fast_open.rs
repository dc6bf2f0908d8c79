//! Whom a listener lets in by TCP Fast Open (RFC 7413 §4.2.2): who brings a cookie that is good, as long as
//! not too many wait for the end of their handshake.
//!
//! A stolen cookie opens connections from an address that is not the thief's. So those that wait are
//! limited, and those that are reset while they wait count on for a while: it is their owner's host that
//! resets them, and without that a flood would be let in as fast as resets come back (§5.1). While a
//! listener gives SYN cookies it lets in nobody: it is being flooded, and keeps nothing of a SYN.

use alloc::collections::VecDeque;
use linerate_units::{Duration, Instant};
use linerate_wire::FastOpenCookie;

/// How long a connection that was reset while it waited counts on.
const MEMORY_OF_RESETS: Duration = Duration::from_secs(60);

/// Connections of one listener that were opened fast and whose handshake is not complete.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// PendingFastOpenRequests (RFC 7413 §4.2), without those that were reset.
    pub(crate) waiting: usize,
    /// When each of those that were reset counts no longer, the oldest first.
    ///
    /// Invariant: with those that wait, they are no more than the limit.
    resets: VecDeque<Instant>,
}

impl Pending {
    /// How many count now.
    pub(crate) fn len(&self) -> usize {
        self.waiting + self.resets.len()
    }

    /// Is there a place for one more, at most `limit` in all?
    pub(crate) fn has_room(&mut self, now: Instant, limit: usize) -> bool {
        while self.resets.front().is_some_and(|&until| until <= now) {
            self.resets.pop_front();
        }
        self.len() < limit
    }

    /// One of them waits no longer.
    pub(crate) fn leave(&mut self, now: Instant, was_reset: bool) {
        self.waiting -= 1;
        if was_reset {
            self.resets.push_back(now + MEMORY_OF_RESETS);
        }
    }

    /// Panics if an invariant is broken; `waiting` is how many connections there are.
    pub(crate) fn check(&self, waiting: usize, limit: usize) {
        assert_eq!(self.waiting, waiting, "connections that were opened fast are counted");
        assert!(self.len() <= limit, "and limited");
    }
}

/// What a listener makes of a SYN with the option, or of any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The handshake comes first, as ever; the answer may offer a cookie for the next time.
    Ordinary(Option<FastOpenCookie>),
    /// The connection is as good as open; its answer may bring a newer cookie.
    Fast(Option<FastOpenCookie>),
}

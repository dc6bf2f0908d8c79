//! The limit of pending Fast Open connections of a listener (RFC 7413 §4.2.2).
//!
//! An attacker with a stolen cookie can open connections from an address that is not its own, so
//! the number of pending handshakes is limited. A pending connection that the true owner of the
//! address resets counts for another minute; otherwise a flood would be admitted as fast as resets
//! return (§5.1). A listener that sends SYN cookies admits no Fast Open connections, because it is
//! under a flood.

use alloc::collections::VecDeque;
use linerate_units::{Duration, Instant};
use linerate_wire::FastOpenCookie;

/// Time for which a connection that was reset counts towards the limit.
const RESET_LIFETIME: Duration = Duration::from_secs(60);

/// The pending Fast Open connections of a listener.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Number of Fast Open connections whose handshake is in progress (PendingFastOpenRequests, RFC
    /// 7413 §4.2), without those that were reset.
    pub(crate) waiting: usize,
    /// For each connection that was reset, the time until which it counts, oldest first.
    ///
    /// Invariant: at most the limit, together with `waiting`.
    resets: VecDeque<Instant>,
}

impl Pending {
    /// Returns the number of connections that count towards the limit.
    pub(crate) fn len(&self) -> usize {
        self.waiting + self.resets.len()
    }

    /// Returns whether another connection is permitted by `limit`.
    pub(crate) fn has_room(&mut self, now: Instant, limit: usize) -> bool {
        while self.resets.front().is_some_and(|&until| until <= now) {
            self.resets.pop_front();
        }
        self.len() < limit
    }

    /// Removes a connection whose handshake has ended.
    pub(crate) fn leave(&mut self, now: Instant, was_reset: bool) {
        self.waiting -= 1;
        if was_reset {
            self.resets.push_back(now + RESET_LIFETIME);
        }
    }

    /// Panics if an invariant is violated. `waiting` is the expected number of pending connections.
    pub(crate) fn check(&self, waiting: usize, limit: usize) {
        assert_eq!(self.waiting, waiting, "connections that were opened fast are counted");
        assert!(self.len() <= limit, "connections that were opened fast are limited");
    }
}

/// The decision how to answer a SYN that may use Fast Open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// By a handshake without Fast Open. The SYN-ACK may carry a cookie for later connections.
    Ordinary(Option<FastOpenCookie>),
    /// By Fast Open: the data of the SYN are accepted. The SYN-ACK may carry a newer cookie.
    Fast(Option<FastOpenCookie>),
}

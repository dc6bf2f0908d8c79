//! The limit of pending Fast Open connections of a listener (RFC 7413 §4.2.2).
//!
//! An attacker with a stolen cookie can open connections from an address that is not its own. So
//! the number of pending handshakes is limited. A pending connection that is reset by the owner of
//! the address counts for another minute; otherwise a flood would be admitted as fast as resets
//! return (§5.1). A listener that sends SYN cookies admits no Fast Open connections, because it is
//! under a flood.

use alloc::collections::VecDeque;
use linerate_units::{Duration, Instant};
use linerate_wire::FastOpenCookie;

/// The time for which a reset connection counts towards the limit.
const RESET_LIFETIME: Duration = Duration::from_secs(60);

/// The pending Fast Open connections of a listener.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// PendingFastOpenRequests (RFC 7413 §4.2), without those that were reset.
    pub(crate) waiting: usize,
    /// The times until which reset connections count, the oldest first.
    ///
    /// Invariant: together with `waiting`, at most the limit.
    resets: VecDeque<Instant>,
}

impl Pending {
    /// Returns the number of connections that count towards the limit.
    pub(crate) fn len(&self) -> usize {
        self.waiting + self.resets.len()
    }

    /// Is there room for another connection below `limit`?
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

    /// Panics if an invariant is broken; `waiting` is the number of pending connections.
    pub(crate) fn check(&self, waiting: usize, limit: usize) {
        assert_eq!(self.waiting, waiting, "connections that were opened fast are counted");
        assert!(self.len() <= limit, "connections that were opened fast are limited");
    }
}

/// The decision about a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// An ordinary handshake. The SYN-ACK may carry a cookie for later connections.
    Ordinary(Option<FastOpenCookie>),
    /// Fast Open. The SYN-ACK may carry a newer cookie.
    Fast(Option<FastOpenCookie>),
}

//! The limit of pending Fast Open connections of a listener (RFC 7413 §4.2.2).
//!
//! An attacker with a stolen cookie can open connections from the address of another host, so the
//! number of connections in the handshake is limited. The real owner of the address resets these
//! connections, because it has not sent their SYNs. A connection still counts towards the limit for
//! a minute after it was reset. Otherwise the attacker could open new connections as fast as resets
//! arrive (RFC 7413 §5.1). A listener that sends SYN cookies admits no Fast Open connections,
//! because it is probably under a SYN flood.

use alloc::collections::VecDeque;
use linerate_units::{Duration, Instant};
use linerate_wire::FastOpenCookie;

/// Time for which a connection still counts towards the limit after it was reset.
const RESET_LIFETIME: Duration = Duration::from_secs(60);

/// The Fast Open connections of a listener that count towards the limit: those in the handshake,
/// and those that were reset recently.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Number of Fast Open connections whose handshake is in progress (PendingFastOpenRequests, RFC
    /// 7413 §4.2). Connections that were reset are not included.
    pub(crate) waiting: usize,
    /// The times until which the reset connections count towards the limit, earliest first.
    ///
    /// Invariant: the length of this queue plus `waiting` is at most the limit.
    resets: VecDeque<Instant>,
}

impl Pending {
    /// Returns the number of connections that count towards the limit.
    pub(crate) fn len(&self) -> usize {
        self.waiting + self.resets.len()
    }

    /// Returns whether `limit` permits another pending connection.
    pub(crate) fn has_room(&mut self, now: Instant, limit: usize) -> bool {
        while self.resets.front().is_some_and(|&until| until <= now) {
            self.resets.pop_front();
        }
        self.len() < limit
    }

    /// Removes a connection whose handshake has ended. If it was reset, it still counts towards the
    /// limit for a minute.
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

/// The way in which a listener answers a SYN that may use Fast Open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Answer by a handshake without Fast Open. The SYN-ACK carries the cookie, if any, which the
    /// client can use for later connections.
    Ordinary(Option<FastOpenCookie>),
    /// Use Fast Open: accept the data of the SYN. If the client's cookie was made with the previous
    /// key, the SYN-ACK carries a new cookie, which replaces it.
    Fast(Option<FastOpenCookie>),
}

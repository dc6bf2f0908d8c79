//! The random choice of an IPv4 link-local address (RFC 3927 §2).

use crate::keys::Draws;
use core::net::Ipv4Addr;
use linerate_units::{Duration, Instant};

/// Number of conflicts after which the host limits the rate of further attempts: MAX_CONFLICTS of
/// RFC 3927 §9.
const MAX_CONFLICTS: u8 = 10;
/// Minimum time between attempts after [`MAX_CONFLICTS`] conflicts: RATE_LIMIT_INTERVAL of RFC 3927
/// §9.
const RATE_LIMIT_INTERVAL: Duration = Duration::from_secs(60);

/// The generator of candidates for a link-local address.
#[derive(Debug)]
pub(crate) struct LinkLocalCandidates {
    draws: Draws,
    conflicts: u8,
}

impl LinkLocalCandidates {
    pub(crate) const fn new(draws: Draws) -> Self {
        Self { draws, conflicts: 0 }
    }

    /// Draws a candidate address. The first and the last 256 addresses of 169.254.0.0/16 are
    /// reserved (RFC 3927 §2.1).
    pub(crate) fn draw(&mut self) -> Ipv4Addr {
        let offset = self.draws.number() % (254 * 256);
        #[allow(clippy::cast_possible_truncation, reason = "at most 16 bits")]
        let offset = offset as u32;
        Ipv4Addr::from_bits(Ipv4Addr::new(169, 254, 1, 0).to_bits() + offset)
    }

    /// Notes a conflict with another host, and returns the earliest time of the next attempt (RFC
    /// 3927 §2.2.1).
    pub(crate) fn note_conflict(&mut self, now: Instant) -> Instant {
        self.conflicts = self.conflicts.saturating_add(1);
        if self.conflicts > MAX_CONFLICTS { now + RATE_LIMIT_INTERVAL } else { now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;

    #[test]
    fn candidates_differ_and_are_not_reserved() {
        let keys = Keys::new([1; 32]);
        let mut candidates = LinkLocalCandidates::new(Draws::new(&keys, "link-local"));
        let mut last = Ipv4Addr::UNSPECIFIED;
        for _ in 0..1_000 {
            let [a, b, c, _] = candidates.draw().octets();
            assert_eq!((a, b), (169, 254));
            assert!((1..=254).contains(&c));
            let next = candidates.draw();
            assert_ne!(next, last);
            last = next;
        }
    }
}

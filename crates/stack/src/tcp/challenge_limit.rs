//! The rate limit of challenge ACKs, for all connections together (RFC 5961 §7).
//!
//! A limit of known size that all connections share would be a side channel (Cao et al., USENIX
//! Security 2016). An attacker could use up all but one of the challenge ACKs of a second on its
//! own connection. It could then send a forged segment for another connection. If its own
//! connection then still gets the remaining challenge ACK, the forged segment has provoked none.
//! The attacker thus learns whether the forged numbers are valid. The limit of each second is
//! therefore random.

use linerate_units::{Duration, Instant};
use siphasher::sip::SipHasher24;

/// A rate limit of challenge ACKs, which is drawn at random for each second.
#[derive(Debug)]
pub(crate) struct ChallengeLimit {
    hasher: SipHasher24,
    mean: u32,
    /// The second to which `left`, the remaining number of challenge ACKs, applies.
    second: u64,
    left: u32,
}

impl ChallengeLimit {
    /// Creates a limit of `mean` challenge ACKs per second on average. A mean of zero permits none.
    pub(crate) const fn new(mean: u32, hasher: SipHasher24) -> Self {
        Self { hasher, mean, second: u64::MAX, left: 0 }
    }

    /// Takes one challenge ACK from the budget of the current second. Returns false if the budget
    /// is used up.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let second = now.as_nanos() / Duration::from_secs(1).as_nanos();
        if second != self.second {
            self.second = second;
            self.left = self.draw(second);
        }
        let is_allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_allowed
    }

    /// Draws the limit that applies in the second with the number `second`. It is between 50 % and
    /// 150 % of the mean.
    fn draw(&self, second: u64) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "any bits will do")]
        let noise = self.hasher.hash(&second.to_be_bytes()) as u32;
        let spread = noise.checked_rem(self.mean.saturating_add(1)).unwrap_or(0);
        self.mean.div_ceil(2).saturating_add(spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;
    use alloc::vec::Vec;

    fn taken(mean: u32, seed: u8, second: u64) -> usize {
        let mut limit = ChallengeLimit::new(mean, Keys::new([seed; 32]).visible("challenges"));
        let now = Instant::ZERO + Duration::from_secs(second);
        (0..1_000).filter(|_| limit.take(now)).count()
    }

    #[test]
    fn limits_vary_around_the_mean() {
        let numbers: Vec<_> = (0..50).map(|second| taken(100, 1, second)).collect();
        assert!(numbers.iter().all(|number| (50..=150).contains(number)), "{numbers:?}");
        let mut different = numbers.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 25, "{numbers:?}");
        assert_ne!(numbers, (0..50).map(|second| taken(100, 2, second)).collect::<Vec<_>>());
    }

    #[test]
    fn a_mean_of_zero_allows_none() {
        assert_eq!(taken(0, 1, 1), 0);
    }
}

//! How many challenge acknowledgements the host may send in a second (RFC 5961 §7).
//!
//! A limit that all connections share says something about each of them: who can spend all but one of a
//! known number on a connection of his own learns, from whether the last one comes, if his forgery hit
//! somebody else's (Cao et al., USENIX Security 2016). So the number is another one every second, and
//! nobody outside can compute it.

use linerate_units::{Duration, Instant};
use siphasher::sip::SipHasher24;

/// So many a second, more or less.
#[derive(Debug)]
pub(crate) struct ChallengeLimit {
    hasher: SipHasher24,
    usual: u32,
    /// The second that `left` is for.
    second: u64,
    left: u32,
}

impl ChallengeLimit {
    /// About `usual` a second; none if that is zero.
    pub(crate) const fn new(usual: u32, hasher: SipHasher24) -> Self {
        Self { hasher, usual, second: u64::MAX, left: 0 }
    }

    /// May one more be sent?
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let second = now.as_nanos() / Duration::from_secs(1).as_nanos();
        if second != self.second {
            self.second = second;
            self.left = self.draw(second);
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }

    /// From half of the usual number up to half as many more.
    fn draw(&self, second: u64) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "any bits will do")]
        let noise = self.hasher.hash(&second.to_be_bytes()) as u32;
        let spread = noise.checked_rem(self.usual.saturating_add(1)).unwrap_or(0);
        self.usual.div_ceil(2).saturating_add(spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;
    use alloc::vec::Vec;

    fn taken(usual: u32, seed: u8, second: u64) -> usize {
        let mut limit = ChallengeLimit::new(usual, Keys::new([seed; 32]).visible("challenges"));
        let now = Instant::ZERO + Duration::from_secs(second);
        (0..1_000).filter(|_| limit.take(now)).count()
    }

    #[test]
    fn the_number_of_a_second_is_around_the_usual_one_and_unlike_the_next() {
        let numbers: Vec<_> = (0..50).map(|second| taken(100, 1, second)).collect();
        assert!(numbers.iter().all(|number| (50..=150).contains(number)), "{numbers:?}");
        let mut different = numbers.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 25, "{numbers:?}");
        assert_ne!(numbers, (0..50).map(|second| taken(100, 2, second)).collect::<Vec<_>>());
    }

    #[test]
    fn none_is_none() {
        assert_eq!(taken(0, 1, 1), 0);
    }
}

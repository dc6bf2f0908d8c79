//! Keys for the keyed hashes of a host. Each key is derived from the seed for one purpose, so that
//! one key reveals nothing about the other keys.

use crate::ip::zone::FIRST_INTERFACE;
use alloc::format;
use linerate_units::Duration;
use siphasher::sip::{SipHasher13, SipHasher24};

/// The seed from which all keys of a host or of an interface are derived.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    seed: [u8; 32],
}

impl Keys {
    pub(crate) const fn new(seed: [u8; 32]) -> Self {
        Self { seed }
    }

    /// Returns the keys of an interface. The first interface has the keys of the host, and each
    /// other interface has keys of its own.
    pub(crate) fn of_interface(&self, number: u16) -> Self {
        if u32::from(number) == FIRST_INTERFACE {
            return *self;
        }
        let purpose = format!("interface {number}");
        let mut seed = [0; 32];
        for (index, word) in (0..).zip(seed.as_chunks_mut::<8>().0) {
            *word = self.draw(&purpose, index).to_be_bytes();
        }
        Self { seed }
    }

    /// Returns a fast keyed hash for a hash table that is indexed by values which peers can choose.
    pub(crate) fn table(&self, purpose: &str) -> SipHasher13 {
        SipHasher13::new_with_keys(self.draw(purpose, 0), self.draw(purpose, 1))
    }

    /// Returns a keyed hash for values that peers can see, such as sequence numbers and ports. It
    /// is stronger than that of [`Keys::table`], because peers could use these values to guess the
    /// key.
    pub(crate) fn visible(&self, purpose: &str) -> SipHasher24 {
        SipHasher24::new_with_keys(self.draw(purpose, 0), self.draw(purpose, 1))
    }

    /// Derives a 64-bit number for a purpose. Each `index` gives another number for this purpose.
    /// The number depends on all 256 bits of the seed.
    pub(crate) fn draw(&self, purpose: &str, index: u8) -> u64 {
        let halves = self.seed.as_chunks::<16>().0;
        halves.iter().zip([0, 128]).fold(0, |number, (half, side)| {
            let mut hasher = SipHasher24::new_with_key(half);
            core::hash::Hasher::write(&mut hasher, purpose.as_bytes());
            core::hash::Hasher::write_u8(&mut hasher, index | side);
            number ^ core::hash::Hasher::finish(&hasher)
        })
    }
}

/// A sequence of pseudorandom numbers for one purpose. A peer that sees some of these numbers
/// cannot predict the next number.
#[derive(Debug)]
pub(crate) struct Draws {
    hasher: SipHasher24,
    count: u64,
}

impl Draws {
    pub(crate) fn new(keys: &Keys, purpose: &str) -> Self {
        Self { hasher: keys.visible(purpose), count: 0 }
    }

    /// Draws a number of 64 random bits.
    pub(crate) fn number(&mut self) -> u64 {
        self.count += 1;
        self.hasher.hash(&self.count.to_be_bytes())
    }

    /// Draws a random duration from zero to `limit`, inclusive.
    pub(crate) fn below(&mut self, limit: Duration) -> Duration {
        Duration::from_nanos(self.number() % (limit.as_nanos().saturating_add(1)))
    }
}

/// Omits the seed from debug output.
impl core::fmt::Debug for Keys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Keys(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_times_are_within_their_limit_and_differ() {
        let mut draws = Draws::new(&Keys::new([3; 32]), "times");
        let limit = Duration::from_secs(1);
        let mut times: alloc::vec::Vec<_> = (0..100).map(|_| draws.below(limit)).collect();
        assert!(times.iter().all(|&time| time <= limit));
        times.sort_unstable();
        times.dedup();
        assert_eq!(times.len(), 100);
        assert_eq!(draws.below(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn every_byte_of_the_seed_and_every_purpose_counts() {
        let base = Keys::new([0; 32]);
        assert_eq!(base.draw("ports", 0), Keys::new([0; 32]).draw("ports", 0));
        assert_ne!(base.draw("ports", 0), base.draw("ports", 1));
        assert_ne!(base.draw("ports", 0), base.draw("flows", 0));
        for byte in 0..32 {
            let mut seed = [0; 32];
            seed[byte] = 1;
            assert_ne!(base.draw("ports", 0), Keys::new(seed).draw("ports", 0), "byte {byte}");
        }
    }
}

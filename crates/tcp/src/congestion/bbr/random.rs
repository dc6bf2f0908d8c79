//! A pseudo-random generator (splitmix64), which BBR uses to choose the times of probes. Flows that
//! begin together thus probe at different times, if their seeds differ. The random numbers depend
//! only on the seed.

use crate::compact::pack::packed;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Random(u64);

packed!(Random(0));

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a random number below `bound`, which must not be zero.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

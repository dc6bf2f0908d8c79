//! Random numbers. Each component draws them from a stream of its own, so a component that draws
//! more numbers does not change those of the others. One seed determines all streams.

use linerate_units::Span;
use oorandom::Rand64;

/// The stream of random numbers of one component.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Rand64);

impl Stream {
    /// Creates random number stream `number` of the seed `seed`.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        Self(Rand64::new(u128::from(seed) << 64 | u128::from(number)))
    }

    /// Returns an integer below `limit`, or zero if `limit` is zero.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.0.rand_range(0..limit) }
    }

    /// Returns true with the probability `probability`.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.0.rand_float() < probability
    }

    /// Draws the time until the next event of a Poisson process with the mean interval `mean`.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a drawn time, of which no picosecond matters; a float that is too large saturates"
    )]
    pub(crate) fn exponential(&mut self, mean: Span) -> Span {
        let share = -(1.0 - self.0.rand_float()).ln();
        Span::from_picos((mean.as_picos() as f64 * share) as u64)
    }

    /// Draws the 32 bytes of a host's secret key.
    pub(crate) fn secret(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.0.rand_u64().to_le_bytes());
        }
        bytes
    }
}

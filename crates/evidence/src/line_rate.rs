//! The bit rate of a link, with its source.

use linerate_units::Rate;
use serde::{Deserialize, Serialize};

/// The bit rate of a link, and where the figure comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRate {
    /// The rate in bits per second.
    pub bits_per_second: u64,
    /// The source of the figure, such as `driver of eth0` or `--line-rate`.
    pub source: String,
}

impl LineRate {
    /// Returns the rate as a value with a unit.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        Rate::from_bits_per_second(self.bits_per_second)
    }
}

//! The bit rate of a link, and the source of the figure.

use linerate_units::Rate;
use serde::{Deserialize, Serialize};

/// The bit rate of a link, and the source of the figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRate {
    /// The rate in bits per second.
    pub bits_per_second: u64,
    /// The source of the figure, such as `driver of eth0` or `as told by --line-rate`.
    pub source: String,
}

impl LineRate {
    /// Returns the bit rate as a [`Rate`], whose unit is part of the type.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        Rate::from_bits_per_second(self.bits_per_second)
    }
}

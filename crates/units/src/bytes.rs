//! A number of bytes, with the binary and decimal suffixes that people type.

use crate::parse::{ParseUnitError, Scale, parse_scaled};
use core::fmt;
use core::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// Creates a value of `count` bytes.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }
}

const SCALE: Scale = Scale {
    unit: "bytes",
    suffixes: &[
        ("B", 1),
        ("K", 1 << 10),
        ("KiB", 1 << 10),
        ("kB", 1_000),
        ("M", 1 << 20),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("G", 1 << 30),
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("T", 1 << 40),
        ("TiB", 1 << 40),
        ("TB", 1_000_000_000_000),
    ],
};

/// Parses `8MiB`, `64K` (binary, as KiB) and `1.5GB` (decimal); a bare number counts bytes.
impl FromStr for Bytes {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_scaled(text, &SCALE, 1).map(Self)
    }
}

impl fmt::Display for Bytes {
    #[allow(clippy::cast_precision_loss, reason = "at most five digits are printed")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, size) in
            [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        {
            if self.0.is_multiple_of(size) && self.0 > 0 {
                return write!(f, "{} {name}", self.0 / size);
            }
            if self.0 >= size * 10 {
                return write!(f, "{:.1} {name}", self.0 as f64 / size as f64);
            }
        }
        write!(f, "{} B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn binary_and_decimal_suffixes_differ() {
        assert_eq!("8MiB".parse(), Ok(Bytes::new(8 << 20)));
        assert_eq!("8MB".parse(), Ok(Bytes::new(8_000_000)));
        assert_eq!("1460".parse(), Ok(Bytes::new(1_460)));
        assert_eq!(
            ["2TiB", "2T", "2TB"].map(str::parse),
            [2 << 40, 2 << 40, 2_000_000_000_000].map(|bytes| Ok(Bytes::new(bytes)))
        );
    }

    #[test]
    fn multiples_of_a_unit_are_printed_without_a_fraction() {
        assert_eq!(Bytes::new(8 << 20).to_string(), "8 MiB");
        assert_eq!(Bytes::new(3 << 40).to_string(), "3 TiB");
        assert_eq!(Bytes::new(24_820).to_string(), "24.2 KiB");
        assert_eq!(Bytes::new(1_460).to_string(), "1460 B");
    }
}

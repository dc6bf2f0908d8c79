//! The unit of rates in a report.

use linerate_evidence::notation::{self, KILOBYTE};

/// A unit of rates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Name of the unit, with its size if that is not obvious.
    pub(crate) name: &'static str,
    /// Name of the unit alone.
    pub(crate) short: &'static str,
    /// Size of the unit in bytes per second.
    pub(crate) bytes: f64,
}

/// Rate in KB/s from which MB/s are used.
const MANY: f64 = 1e5;

impl Unit {
    /// Returns the unit for rates up to `best`, in bytes per second.
    pub(crate) fn up_to(best: f64) -> Self {
        if best > MANY * KILOBYTE {
            Self { name: "MB/s (of 1,024 KB)", short: "MB/s", bytes: KILOBYTE * KILOBYTE }
        } else {
            Self { name: "KB/s", short: "KB/s", bytes: KILOBYTE }
        }
    }

    /// Formats a rate without the unit, with at least three digits.
    pub(crate) fn figure(self, bytes_per_second: f64) -> String {
        match bytes_per_second / self.bytes {
            value @ ..9.995 => format!("{value:.2}"),
            value @ ..99.95 => format!("{value:.1}"),
            value => notation::thousands(value),
        }
    }
}

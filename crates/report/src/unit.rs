//! The unit of rates in a report: KB/s or MB/s.

use linerate_evidence::notation::{self, KILOBYTE};

/// A unit of rates: KB/s or MB/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Name of the unit, with an explanation of its size if the name alone is ambiguous.
    pub(crate) name: &'static str,
    /// Name of the unit without an explanation.
    pub(crate) short: &'static str,
    /// Number of bytes per second in one unit.
    pub(crate) bytes: f64,
}

/// Highest rate, in KB/s, up to which a report uses the unit KB/s. If its best rate is higher, the
/// report shows all its rates in MB/s.
const MANY: f64 = 1e5;

impl Unit {
    /// Returns the unit for a report whose highest rate is `best` bytes per second.
    pub(crate) fn up_to(best: f64) -> Self {
        if best > MANY * KILOBYTE {
            Self { name: "MB/s (of 1,024 KB)", short: "MB/s", bytes: KILOBYTE * KILOBYTE }
        } else {
            Self { name: "KB/s", short: "KB/s", bytes: KILOBYTE }
        }
    }

    /// Formats a rate without its unit, with at least three significant digits.
    pub(crate) fn figure(self, bytes_per_second: f64) -> String {
        match bytes_per_second / self.bytes {
            value @ ..9.995 => format!("{value:.2}"),
            value @ ..99.95 => format!("{value:.1}"),
            value => notation::thousands(value),
        }
    }
}

//! The eight calibration cells of the table of 1988. Only to these cells may parameters of the
//! model be fitted.
//!
//! The other published cells serve to test the model. They are not part of the program, so that
//! parameters cannot be fitted to them.

/// A column of the table of October 1988, measured between two machines.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Names of the two machines.
    pub title: &'static str,
    /// Name of the scenario that repeats the measurement.
    pub scenario: &'static str,
    /// The column's calibration cells: size of both buffers in packets, and throughput in KB/s.
    pub cells: &'static [(u32, f64)],
}

/// The cells of both columns to which parameters may be fitted, from Van Jacobson's mail of October
/// 1988.
pub const COLUMNS: [Column; 2] = [
    Column {
        title: "3/60 → 3/60 (LANCE)",
        scenario: "sun-3-60-to-3-60",
        cells: &[(1, 384.0), (2, 606.0), (4, 784.0), (8, 954.0), (12, 1_001.0)],
    },
    Column {
        title: "3/280 → 3/60 (82586)",
        scenario: "sun-3-280-to-3-60",
        cells: &[(1, 337.0), (2, 575.0), (8, 718.0)],
    },
];

/// Highest possible throughput from task to task over an Ethernet of 10 Mbit/s, in KB/s, if each
/// segment is acknowledged. A segment with 1,460 bytes of data takes the time of 1,538 bytes on the
/// wire, and its acknowledgement that of 76.
pub const MOST: f64 = 10e6 / 8.0 * 1_460.0 / (1_538.0 + 76.0) / 1_024.0;

impl Column {
    /// Returns the published throughput in KB/s for buffers of this many packets, or `None` if that
    /// is no calibration cell.
    #[must_use]
    pub fn published(&self, packets: u32) -> Option<f64> {
        self.cells.iter().find(|(known, _)| *known == packets).map(|&(_, rate)| rate)
    }
}

/// Returns the bit rate on the wire, in bit/s, that belongs to a throughput in KB/s. As in the
/// message of 1988, one acknowledgement for two segments is assumed.
#[must_use]
pub fn wire_by_formula(kilobytes: f64) -> f64 {
    kilobytes * 1_024.0 * 8.0 * (1_538.0 + 76.0 / 2.0) / 1_460.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_that_of_the_mail() {
        assert_eq!(format!("{MOST:.0}"), "1104");
        assert_eq!(format!("{:.2}", wire_by_formula(1_001.0) / 1e6), "8.85");
    }

    #[test]
    fn parameters_are_fitted_to_eight_cells_and_no_more() {
        assert_eq!(COLUMNS.iter().map(|column| column.cells.len()).sum::<usize>(), 8);
    }
}

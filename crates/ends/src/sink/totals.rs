//! Totals over the runs of one control connection, at the sink.

use crate::ended::Ended;
use crate::socket::ReadResult;
use std::time::Duration;

/// Totals over the runs of one control connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Number of runs whose data connection has ended.
    pub ended: u64,
    /// Number of data bytes received.
    pub bytes: u64,
    /// Sum over all runs of the time from reading the first byte to reading the last byte.
    pub reading: Duration,
    /// Number of runs that did not transfer all requested bytes.
    pub incomplete: u64,
    /// Number of runs whose data was compared and matched the pattern.
    pub intact: u64,
    /// Number of runs whose data was compared and differed from the pattern.
    pub wrong: u64,
}

impl RunTotals {
    /// Adds the result of a run to the totals. `verified` is `None` if the data was not compared.
    pub(super) fn add(&mut self, result: &ReadResult, verified: Option<bool>) {
        self.ended += 1;
        self.bytes = self.bytes.saturating_add(result.bytes);
        self.reading = self.reading.saturating_add(result.span());
        self.incomplete += u64::from(result.ended != Ended::Complete);
        self.intact += u64::from(verified == Some(true));
        self.wrong += u64::from(verified == Some(false));
    }
}

//! The totals of the runs of one sweep at the sink.

use crate::ended::Ended;
use crate::socket::ReadResult;
use std::time::Duration;

/// The totals of the runs of one sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Runs whose data connection has ended.
    pub ended: u64,
    /// Bytes of data received.
    pub bytes: u64,
    /// Time of reading: the sum of the times from the first to the last byte of each run.
    pub reading: Duration,
    /// Runs that are not complete.
    pub incomplete: u64,
    /// Runs whose data was compared, and intact.
    pub intact: u64,
    /// Runs whose data was wrong.
    pub wrong: u64,
}

impl RunTotals {
    /// Adds a run.
    pub(super) fn add(&mut self, result: &ReadResult, verified: Option<bool>) {
        self.ended += 1;
        self.bytes = self.bytes.saturating_add(result.bytes);
        self.reading = self.reading.saturating_add(result.span());
        self.incomplete += u64::from(result.ended != Ended::Complete);
        self.intact += u64::from(verified == Some(true));
        self.wrong += u64::from(verified == Some(false));
    }
}

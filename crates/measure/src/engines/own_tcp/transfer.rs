//! The state of a transfer that the threads of the source and the sink share: its request, start
//! and end.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use linerate_ends::Interrupt;
use linerate_units::Instant;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A transfer between two threads, one for the source and one for the sink.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    pub(crate) request: &'a RunRequest,
    pub(crate) interrupt: &'a Interrupt,
    /// Time of the first write in nanoseconds of the monotonic clock; `Instant::NEVER` before the
    /// first write.
    began: AtomicU64,
    /// Has the source or the sink finished or failed?
    over: AtomicBool,
}

impl<'a> Transfer<'a> {
    /// Creates a transfer that has not begun.
    pub(crate) const fn new(request: &'a RunRequest, interrupt: &'a Interrupt) -> Self {
        let began = AtomicU64::new(Instant::NEVER.as_nanos());
        Self { request, interrupt, began, over: AtomicBool::new(false) }
    }

    /// Records the time of the first write.
    pub(crate) fn begin(&self, now: Instant) {
        self.began.store(now.as_nanos(), Ordering::Release);
    }

    /// Returns the time of the first write, or `Instant::NEVER` before the first write.
    pub(crate) fn began(&self) -> Instant {
        Instant::from_nanos(self.began.load(Ordering::Acquire))
    }

    /// Returns the time at which the maximum duration ends, or `Instant::NEVER` before the first
    /// write.
    pub(crate) fn deadline(&self) -> Instant {
        self.began() + self.request.max_time
    }

    /// Has the maximum duration of the run passed at the time `now`?
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        now >= self.deadline()
    }

    /// Records that the source or the sink has finished or failed.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Has the source or the sink finished or failed?
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Returns a guard that ends the transfer when it is dropped. Each thread keeps one until it
    /// returns. A thread that fails therefore also ends the transfer, so that the other thread
    /// stops.
    pub(crate) const fn ending(&self) -> Ending<'_> {
        Ending(self)
    }

    /// Returns an error if the user has interrupted the run.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`] if the run was interrupted.
    pub(crate) fn check_interrupt(&self) -> Result<(), BenchError> {
        if self.interrupt.is_raised() { Err(BenchError::Interrupted) } else { Ok(()) }
    }
}

/// A guard that ends its transfer when it is dropped, see [`Transfer::ending`].
pub(crate) struct Ending<'a>(&'a Transfer<'a>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

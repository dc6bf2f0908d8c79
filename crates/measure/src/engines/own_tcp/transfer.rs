//! What both ends of a transfer know of it: what is asked for, when it began, whether it is over.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use linerate_ends::Interrupt;
use linerate_units::Instant;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One transfer between two threads.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    pub(crate) request: &'a RunRequest,
    pub(crate) interrupt: &'a Interrupt,
    /// Nanoseconds of the monotonic clock at the first write; NEVER before it.
    began: AtomicU64,
    over: AtomicBool,
}

impl<'a> Transfer<'a> {
    /// A transfer that has not begun.
    pub(crate) const fn new(request: &'a RunRequest, interrupt: &'a Interrupt) -> Self {
        let began = AtomicU64::new(Instant::NEVER.as_nanos());
        Self { request, interrupt, began, over: AtomicBool::new(false) }
    }

    /// The source is about to write its first byte.
    pub(crate) fn begin(&self, now: Instant) {
        self.began.store(now.as_nanos(), Ordering::Release);
    }

    /// When the first byte was written; never, before it was.
    pub(crate) fn began(&self) -> Instant {
        Instant::from_nanos(self.began.load(Ordering::Acquire))
    }

    /// When the time of the run is up; never, before it has begun.
    pub(crate) fn deadline(&self) -> Instant {
        self.began() + self.request.max_time
    }

    /// Is the time of the run up?
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        now >= self.deadline()
    }

    /// One end has nothing more to do, for whatever reason.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Has the other end nothing more to do?
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends the transfer when the guard is dropped, on every way out of a thread.
    pub(crate) const fn ending(&self) -> Ending<'_> {
        Ending(self)
    }

    /// # Errors
    /// [`BenchError::Interrupted`] if somebody asked to stop.
    pub(crate) fn listen_to_interrupt(&self) -> Result<(), BenchError> {
        if self.interrupt.is_raised() { Err(BenchError::Interrupted) } else { Ok(()) }
    }
}

/// See [`Transfer::ending`].
pub(crate) struct Ending<'a>(&'a Transfer<'a>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

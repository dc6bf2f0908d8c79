//! The progress of a floor measurement, which the sending and the receiving thread share.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use linerate_ends::Interrupt;
use linerate_link::MonotonicClock;
use linerate_units::{Clock, Duration, Instant};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Maximum number of datagrams in flight, chosen so that they fit into the kernel's receive buffer.
const WINDOW: u64 = 64;
/// Time without progress after which the datagrams in flight count as dropped.
const STALL: Duration = Duration::from_millis(50);
/// Number of iterations of a busy loop between two reads of the receiver's progress, while the
/// sender waits.
const POLLS: u32 = 200;

/// The progress of a floor measurement, which the sending and the receiving thread share.
#[derive(Debug)]
pub(crate) struct FloorProgress<'a> {
    interrupt: &'a Interrupt,
    /// Number of bytes to transfer.
    total: u64,
    /// Maximum number of bytes in flight.
    window: u64,
    /// Maximum duration of the measurement.
    max_time: Duration,
    /// Number of bytes that the receiver has read.
    delivered: AtomicU64,
    /// Time of the first write in nanoseconds of the monotonic clock; zero before that write.
    began: AtomicU64,
    /// Time when the final read of the transfer ended, in nanoseconds of the monotonic clock; zero
    /// while the transfer is in progress.
    ended: AtomicU64,
}

impl<'a> FloorProgress<'a> {
    pub(crate) fn new(request: &RunRequest, interrupt: &'a Interrupt, payload: u64) -> Self {
        Self {
            interrupt,
            total: request.bytes,
            window: WINDOW * payload,
            max_time: request.max_time,
            delivered: AtomicU64::new(0),
            began: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    /// Records the time of the first write, at which the measurement starts.
    pub(crate) fn begin(&self) {
        self.began.store(MonotonicClock.now().as_nanos(), Ordering::Relaxed);
    }

    /// Records that the receiver has read `bytes` more bytes.
    pub(crate) fn deliver(&self, bytes: usize) {
        let delivered = self.delivered.fetch_add(bytes as u64, Ordering::Release) + bytes as u64;
        if delivered >= self.total && self.ended.load(Ordering::Relaxed) == 0 {
            self.ended.store(MonotonicClock.now().as_nanos(), Ordering::Relaxed);
        }
    }

    /// Has the receiver read all data?
    pub(crate) fn is_complete(&self) -> bool {
        self.delivered.load(Ordering::Acquire) >= self.total
    }

    /// Returns the time from the first write to the end of the final read.
    pub(crate) fn time(&self) -> Duration {
        let at = |nanos: &AtomicU64| Instant::from_nanos(nanos.load(Ordering::Relaxed));
        at(&self.ended).since(at(&self.began))
    }

    /// Returns an error if the measurement cannot continue.
    ///
    /// # Errors
    /// The run was interrupted, or its maximum duration has passed.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        if self.interrupt.is_raised() {
            return Err(BenchError::Interrupted);
        }
        let began = self.began.load(Ordering::Relaxed);
        let late = began > 0 && MonotonicClock.now() > Instant::from_nanos(began) + self.max_time;
        if late {
            let what = "the time was up while the floor was measured".to_owned();
            return Err(BenchError::ConnectionLost {
                bytes: self.delivered.load(Ordering::Relaxed),
                what,
            });
        }
        Ok(())
    }

    /// Waits until fewer than `window` of the `sent` bytes are in flight, or until all bytes of the
    /// transfer have arrived. If nothing arrives for [`STALL`], the bytes in flight count as
    /// dropped. Returns the number of dropped bytes, which the caller must send again.
    ///
    /// # Errors
    /// The errors of [`FloorProgress::check`].
    pub(crate) fn await_room(&self, sent: u64) -> Result<u64, BenchError> {
        let mut seen = self.delivered.load(Ordering::Acquire);
        let mut since = MonotonicClock.now();
        while sent.saturating_sub(seen) >= self.window && seen < self.total {
            for _ in 0..POLLS {
                spin_loop();
            }
            let now_seen = self.delivered.load(Ordering::Acquire);
            if now_seen > seen {
                (seen, since) = (now_seen, MonotonicClock.now());
                continue;
            }
            self.check()?;
            if MonotonicClock.now().since(since) >= STALL {
                return Ok(sent - seen);
            }
            thread::yield_now();
        }
        Ok(0)
    }
}

//! How far the bytes are, as both threads see it.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use linerate_ends::Interrupt;
use linerate_link::MonotonicClock;
use linerate_units::{Clock, Duration, Instant};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Datagrams that may be under way: what the kernel's receive buffer holds for certain.
const WINDOW: u64 = 64;
/// What has not arrived after so long was dropped somewhere.
const STALL: Duration = Duration::from_millis(50);
/// Looks at the other thread's progress before the core is offered to it.
const LOOKS: u32 = 200;

/// How far the bytes are.
#[derive(Debug)]
pub(crate) struct Pace<'a> {
    interrupt: &'a Interrupt,
    total: u64,
    window: u64,
    max_time: Duration,
    delivered: AtomicU64,
    /// Nanoseconds of the monotonic clock.
    began: AtomicU64,
    ended: AtomicU64,
}

impl<'a> Pace<'a> {
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

    /// The sender is about to begin.
    pub(crate) fn begin(&self) {
        self.began.store(MonotonicClock.now().as_nanos(), Ordering::Relaxed);
    }

    /// The receiver has read `bytes` more.
    pub(crate) fn deliver(&self, bytes: usize) {
        let delivered = self.delivered.fetch_add(bytes as u64, Ordering::Release) + bytes as u64;
        if delivered >= self.total && self.ended.load(Ordering::Relaxed) == 0 {
            self.ended.store(MonotonicClock.now().as_nanos(), Ordering::Relaxed);
        }
    }

    /// Is everything there?
    pub(crate) fn is_complete(&self) -> bool {
        self.delivered.load(Ordering::Acquire) >= self.total
    }

    /// From the first write to the last read.
    pub(crate) fn time(&self) -> Duration {
        let at = |nanos: &AtomicU64| Instant::from_nanos(nanos.load(Ordering::Relaxed));
        at(&self.ended).since(at(&self.began))
    }

    /// # Errors
    /// If somebody asked to stop, or the bytes do not get through.
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

    /// Waits until less than a window is under way of the `sent` bytes. Returns what of them has to
    /// be sent again, because it cannot be under way any more.
    ///
    /// # Errors
    /// As for [`Pace::check`].
    pub(crate) fn await_room(&self, sent: u64) -> Result<u64, BenchError> {
        let mut seen = self.delivered.load(Ordering::Acquire);
        let mut since = MonotonicClock.now();
        while sent.saturating_sub(seen) >= self.window && seen < self.total {
            for _ in 0..LOOKS {
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

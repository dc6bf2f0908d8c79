//! A run of a sweep at the sink, from its request to its report.

use super::limits::Limits;
use super::receive_buffer::ReceiveBufferGuard;
use super::totals::RunTotals;
use crate::control::{Reply, RunSpec, send};
use crate::observe::{CallClock, observed};
use crate::serve::lock;
use crate::socket::{ReadResult, ReadTask, Stream};
use crate::workload::Pattern;
use linerate_evidence::EndEvidence;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Interval at which a session checks a run whose data is being read. A run ends if no data arrives
/// for as long as its maximum duration, but at least for this interval.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum size of a `read` call in bytes, which limits the memory that a sweep can occupy in the
/// sink.
const MAX_READ: u64 = 16 << 20;
/// Maximum duration of a run in milliseconds.
const MAX_MILLISECONDS: u64 = 24 * 60 * 60 * 1_000;

/// A run that a sweep has requested.
#[derive(Debug)]
pub(super) struct Run<'a> {
    spec: RunSpec,
    /// The control connection on which the run was requested.
    control: Arc<ControlEnd>,
    phase: Mutex<Phase<'a>>,
    /// Has the sweep stopped the run, or disconnected?
    stopped: AtomicBool,
}

/// The phase of a run, from its request to its end.
#[derive(Debug)]
enum Phase<'a> {
    /// The sink waits for the data connection until `until`. `_guard` holds the lock of the receive
    /// buffer.
    Expected { _guard: ReceiveBufferGuard<'a>, until: Instant },
    /// The data connection has arrived, and its data is being read.
    UnderWay,
    /// The run has ended, or was cancelled.
    Over,
}

/// The sending direction of a control connection, and the totals of its runs. The session and the
/// threads of its runs share this state.
#[derive(Debug)]
pub(super) struct ControlEnd {
    stream: Mutex<Stream>,
    totals: Mutex<RunTotals>,
}

impl ControlEnd {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream: Mutex::new(stream), totals: Mutex::default() }
    }

    /// Returns the totals of the runs that have ended.
    pub(super) fn totals(&self) -> RunTotals {
        *lock(&self.totals)
    }

    /// Sends `reply` to the sweep. If that fails, the sweep has disconnected, and the session ends
    /// for that reason. The error is therefore ignored.
    pub(super) fn send(&self, reply: &Reply) {
        let _ = send(&lock(&self.stream), reply);
    }

    /// Refuses the current request, and sends the reason.
    pub(super) fn refuse(&self, reason: impl Into<String>) {
        self.send(&Reply::Refused { reason: reason.into() });
    }
}

impl<'a> Run<'a> {
    /// Creates a run that waits for its data connection for at most `timeout`. The run keeps
    /// `guard` while it waits, so the receive buffer stays locked against other runs.
    pub(super) fn expected(
        spec: RunSpec,
        control: Arc<ControlEnd>,
        guard: ReceiveBufferGuard<'a>,
        timeout: Duration,
    ) -> Self {
        let until = Instant::now() + timeout;
        let phase = Mutex::new(Phase::Expected { _guard: guard, until });
        Self { spec, control, phase, stopped: AtomicBool::new(false) }
    }

    /// Returns how long the session may wait for a request before it must check this run again.
    /// Returns `None` if the run has ended and needs no checks.
    pub(super) fn timeout(&self) -> Option<Duration> {
        match *lock(&self.phase) {
            Phase::Expected { until, .. } => Some(until.saturating_duration_since(Instant::now())),
            Phase::UnderWay => Some(CHECK_INTERVAL),
            Phase::Over => None,
        }
    }

    /// Has the run ended?
    pub(super) fn is_over(&self) -> bool {
        matches!(*lock(&self.phase), Phase::Over)
    }

    /// Cancels the run if its data connection is late. Returns true if the run was cancelled.
    pub(super) fn give_up_if_late(&self) -> bool {
        let mut phase = lock(&self.phase);
        let late = matches!(*phase, Phase::Expected { until, .. } if until <= Instant::now());
        if late {
            *phase = Phase::Over;
        }
        late
    }

    /// Stops the run. If it still waits for its data connection, it ends at once, and the caller
    /// must also remove it from the expected runs. Otherwise it ends when the reading thread next
    /// checks the flag.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let mut phase = lock(&self.phase);
        if matches!(*phase, Phase::Expected { .. }) {
            *phase = Phase::Over;
        }
    }

    /// Records that the data connection has arrived. The receive buffer of that connection is fixed
    /// now, so other runs may set the buffer of the listening socket: the function drops the guard
    /// that prevented it. Returns false if the run has already been cancelled.
    pub(super) fn arrive(&self) -> bool {
        let mut phase = lock(&self.phase);
        let expected = matches!(*phase, Phase::Expected { .. });
        if expected {
            *phase = Phase::UnderWay;
        }
        expected
    }

    /// Reads the data of the run until the run ends, is stopped, or `is_closing` returns true. The
    /// pauses and the read size in `limits` apply, unless the data is discarded. Returns the
    /// result, and evidence if the sweep requested an observation.
    pub(super) fn take(
        &self,
        stream: &Stream,
        already: &[u8],
        limits: Limits,
        is_closing: impl Fn() -> bool,
    ) -> (ReadResult, Option<EndEvidence>) {
        let max_time = Duration::from_millis(self.spec.max_milliseconds);
        let asked = usize::try_from(self.spec.read_size).unwrap_or(usize::MAX);
        let read_task = ReadTask {
            bytes: self.spec.bytes,
            read_size: limits.read_size.filter(|_| !self.spec.discard).unwrap_or(asked),
            pattern: self.spec.verify.map(Pattern::new),
            max_time,
            idle_time: max_time.max(CHECK_INTERVAL),
            pause: if self.spec.discard { Duration::ZERO } else { limits.pause },
            discard: self.spec.discard,
        };
        let stop = || self.stopped.load(Ordering::Relaxed) || is_closing();
        let Some(after) = self.spec.observe_after else {
            return (read_task.run(stream, already, stop), None);
        };
        let clock = CallClock::new();
        let read = || read_task.run_timed(stream, &clock, already, stop);
        let (result, evidence) = observed(stream, &clock, Duration::from_millis(after), read);
        (result, Some(evidence))
    }

    /// Marks the run as ended, and adds its result to the totals of the control connection.
    pub(super) fn end(&self, result: &ReadResult, verified: Option<bool>) {
        lock(&self.control.totals).add(result, verified);
        *lock(&self.phase) = Phase::Over;
    }

    /// Sends `reply` to the sweep that requested the run.
    pub(super) fn send(&self, reply: &Reply) {
        self.control.send(reply);
    }

    /// Must the data of the run be compared with a pattern?
    pub(super) const fn verifies(&self) -> bool {
        self.spec.verify.is_some()
    }
}

/// Returns the reason why the sink refuses a run; `None` if it accepts the run.
pub(super) fn objection(spec: &RunSpec) -> Option<String> {
    if spec.bytes == 0 {
        return Some("a run of zero bytes has no rate".to_owned());
    }
    if !(1..=MAX_READ).contains(&spec.read_size) {
        return Some(format!(
            "a read size of {} bytes is not supported: the range is from 1 to {MAX_READ}",
            spec.read_size
        ));
    }
    if !(1..=MAX_MILLISECONDS).contains(&spec.max_milliseconds) {
        return Some(format!("a run may last from 1 to {MAX_MILLISECONDS} milliseconds"));
    }
    None
}

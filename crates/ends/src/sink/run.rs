//! One run of a sweep at the sink: from the wish on the control connection to the report.

use super::door::Turn;
use crate::control::{Reply, RunSpec, send};
use crate::serve::lock;
use crate::socket::{Intake, Stream, Taken};
use crate::workload::Pattern;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a data connection may take to come.
const ARRIVAL_PATIENCE: Duration = Duration::from_secs(10);
/// What a sink reads at a time at most: the memory that a sweep can make it take.
const MOST_READ: u64 = 16 << 20;
/// No run takes longer.
const MOST_MILLISECONDS: u64 = 24 * 60 * 60 * 1_000;

/// A run that a sweep asked for.
#[derive(Debug)]
pub(super) struct Run<'a> {
    spec: RunSpec,
    control: Arc<ControlEnd>,
    phase: Mutex<Phase<'a>>,
    stopped: AtomicBool,
}

/// How far a run is.
#[derive(Debug)]
enum Phase<'a> {
    /// The data connection has not come; until then the run keeps its turn at the door.
    Expected { _turn: Turn<'a>, until: Instant },
    /// Bytes are coming.
    UnderWay,
    /// Nothing more will happen.
    Over,
}

/// The sink's writing end of a control connection, shared by the session and its run.
#[derive(Debug)]
pub(super) struct ControlEnd(Mutex<Stream>);

impl ControlEnd {
    pub(super) const fn new(stream: Stream) -> Self {
        Self(Mutex::new(stream))
    }

    /// Says `reply` to the sweep. One that is gone needs none: its session ends by itself.
    pub(super) fn say(&self, reply: &Reply) {
        let _ = send(&lock(&self.0), reply);
    }

    /// Says no.
    pub(super) fn refuse(&self, reason: impl Into<String>) {
        self.say(&Reply::Refused { reason: reason.into() });
    }
}

impl<'a> Run<'a> {
    /// A run that waits for its data connection, if what is asked for is within the limits.
    pub(super) fn expected(
        spec: RunSpec,
        control: Arc<ControlEnd>,
        turn: Turn<'a>,
        patience: Duration,
    ) -> Self {
        let until = Instant::now() + patience;
        let phase = Mutex::new(Phase::Expected { _turn: turn, until });
        Self { spec, control, phase, stopped: AtomicBool::new(false) }
    }

    /// How long its session may wait for the sweep's next word before it must look after the run.
    pub(super) fn patience(&self) -> Option<Duration> {
        match *lock(&self.phase) {
            Phase::Expected { until, .. } => Some(until.saturating_duration_since(Instant::now())),
            Phase::UnderWay => Some(ARRIVAL_PATIENCE),
            Phase::Over => None,
        }
    }

    /// Is there nothing more to come of it?
    pub(super) fn is_over(&self) -> bool {
        matches!(*lock(&self.phase), Phase::Over)
    }

    /// Gives up a run whose data connection is late; false if it came, or still has time.
    pub(super) fn give_up_if_late(&self) -> bool {
        let mut phase = lock(&self.phase);
        let late = matches!(*phase, Phase::Expected { until, .. } if until <= Instant::now());
        if late {
            *phase = Phase::Over;
        }
        late
    }

    /// Ends the run soon, in whatever phase it is.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let mut phase = lock(&self.phase);
        if matches!(*phase, Phase::Expected { .. }) {
            *phase = Phase::Over;
        }
    }

    /// The data connection is there: leaves the door. False if the run had been given up.
    pub(super) fn arrive(&self) -> bool {
        let mut phase = lock(&self.phase);
        let expected = matches!(*phase, Phase::Expected { .. });
        if expected {
            *phase = Phase::UnderWay;
        }
        expected
    }

    /// Reads the bytes of the run until it ends, is stopped, or `is_closing` says so.
    pub(super) fn take(
        &self,
        stream: &Stream,
        already: &[u8],
        is_closing: impl Fn() -> bool,
    ) -> Taken {
        let max_time = Duration::from_millis(self.spec.max_milliseconds);
        let intake = Intake {
            bytes: self.spec.bytes,
            read_size: usize::try_from(self.spec.read_size).unwrap_or(usize::MAX),
            pattern: self.spec.verify.map(Pattern::new),
            max_time,
            idle_time: max_time.max(ARRIVAL_PATIENCE),
        };
        intake.take(stream, already, || self.stopped.load(Ordering::Relaxed) || is_closing())
    }

    /// Ends the run: nothing more will come of it.
    pub(super) fn end(&self) {
        *lock(&self.phase) = Phase::Over;
    }

    /// Says `reply` to the sweep that asked for the run.
    pub(super) fn say(&self, reply: &Reply) {
        self.control.say(reply);
    }

    /// Returns whether the bytes of the run are to be compared.
    pub(super) const fn verifies(&self) -> bool {
        self.spec.verify.is_some()
    }
}

/// Why a sink does not carry `spec` out, if it does not.
pub(super) fn objection(spec: &RunSpec) -> Option<String> {
    if spec.bytes == 0 {
        return Some("a run of zero bytes has no rate".to_owned());
    }
    if !(1..=MOST_READ).contains(&spec.read_size) {
        return Some(format!(
            "a read size of {} is not to be had: from 1 to {MOST_READ} bytes are",
            spec.read_size
        ));
    }
    if !(1..=MOST_MILLISECONDS).contains(&spec.max_milliseconds) {
        return Some(format!("a run may last from 1 to {MOST_MILLISECONDS} milliseconds"));
    }
    None
}

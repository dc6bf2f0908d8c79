//! Programs that run on simulated machines. They use the host's sockets like any application, and
//! their work costs processor time.

mod bulk;
mod content;
mod dialogue;
mod echo;
mod sink;
mod socket;
mod source;
mod typist;

pub(crate) use bulk::Bulk;
pub(crate) use dialogue::Dialogue;
pub(crate) use echo::Echo;
pub(crate) use sink::Sink;
pub(crate) use source::Source;
pub(crate) use typist::Typist;

use crate::timeline::Activity;
use linerate_stack::{Event, Stack};
use linerate_tcp::Connection;
use linerate_units::{Instant, Span, Tick};
use std::fmt::Debug;

/// A program, which a processor runs in steps. [`Program::handle_run`] returns a step and its cost.
/// The processor then spends the step's processor time. After that, the next call of this method
/// performs the step, and returns the one that follows.
pub(crate) trait Program: Debug + Send {
    /// Performs the step whose processor time has passed, and returns the next step.
    fn handle_run(&mut self, task: &mut Task<'_>) -> Step;

    /// Returns whether an event wakes the program.
    fn wants(&self, event: &Event) -> bool;

    /// Returns whether the program has finished. A simulation ends when all programs have finished.
    fn is_finished(&self) -> bool;

    /// Returns the results of the program.
    fn report(&self, stack: &Stack) -> ProgramReport;
}

/// The environment that a running program can access.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// TCP/IP stack of the machine.
    pub(crate) stack: &'a mut Stack,
    /// Time that the machine's clock shows.
    pub(crate) clock: Instant,
    /// Simulated time. A program may use it only in its report, because a real program could read
    /// only the machine's clock.
    pub(crate) now: Tick,
}

/// The next step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Work, whose processor time follows from this charge.
    Work(Charge),
    /// Sleep until an event wakes the program.
    Sleep,
}

/// Amount of a program's work, from which the machine's cost table determines the processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    /// Number of system calls.
    pub(crate) calls: u64,
    /// Number of bytes copied between task and kernel.
    pub(crate) copied: u64,
}

/// The step of a system call that reads or writes one character.
const CHARACTER: Step = Step::Work(Charge { calls: 1, copied: 1 });

/// The results of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramReport {
    /// Name of the program in the scenario, followed by its role, such as `source` or `sink`.
    pub name: String,
    /// Name of the host on which the program runs.
    pub host: String,
    /// Number of bytes that the program has transferred.
    pub bytes: u64,
    /// Time at which the program began to transfer: when its connection was established or
    /// accepted, or the start of the simulation if it has no connection. `None` if it has not
    /// begun.
    pub began: Option<Tick>,
    /// Time at which the program finished its transfer, or at which its connection failed. `None`
    /// if neither has happened.
    pub ended: Option<Tick>,
    /// Whether the program has finished its work.
    pub complete: bool,
    /// Stream position of the first wrong byte that was received; `None` if all bytes were right or
    /// were not verified.
    pub wrong_at: Option<u64>,
    /// State of the program's TCP connection, if it has one.
    pub tcp: Option<TcpReport>,
    /// Counters by name. Each kind of program has its own ones.
    pub counted: Vec<(&'static str, u64)>,
}

/// Counters and variables of a TCP connection at the time of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpReport {
    /// Counters of the connection.
    pub statistics: linerate_tcp::Statistics,
    /// Congestion window at the time of the report, in bytes.
    pub congestion_window: u32,
    /// Variables of the connection at the time of the report.
    pub information: linerate_tcp::Information,
}

impl ProgramReport {
    /// Creates an empty report for a program.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            host: String::new(),
            bytes: 0,
            began: None,
            ended: None,
            complete: false,
            wrong_at: None,
            tcp: None,
            counted: Vec::new(),
        }
    }

    /// Returns the time from [`ProgramReport::began`] to [`ProgramReport::ended`]; `None` if the
    /// program has not begun or has not ended.
    #[must_use]
    pub fn time(&self) -> Option<Span> {
        Some(self.ended?.since(self.began?))
    }

    /// Returns the event that the connection waits for, given that the machine is idle. Returns
    /// `None` if the connection waits only for its program, or does not exist yet.
    pub(crate) fn waits_for(&self) -> Option<Activity> {
        let TcpReport { statistics, information: state, .. } = self.tcp.as_ref()?;
        if statistics.bytes_sent == 0 {
            return (statistics.bytes_received > 0).then_some(Activity::WaitsForData);
        }
        let next = state.in_flight.saturating_add(state.effective_mss);
        if state.unsent >= state.effective_mss && next > state.send_window {
            return Some(Activity::WaitsForWindow);
        }
        (state.in_flight > 0).then_some(Activity::WaitsForAcknowledgement)
    }

    /// Returns the program's throughput in bytes per second; `None` if [`ProgramReport::time`] is
    /// `None` or zero.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a figure for people; 53 bits are plenty")]
    pub fn bytes_per_second(&self) -> Option<f64> {
        let seconds = self.time()?.as_secs_f64();
        (seconds > 0.0).then(|| self.bytes as f64 / seconds)
    }
}

impl TcpReport {
    fn of(connection: &Connection) -> Self {
        let information = connection.information();
        let congestion_window = information.congestion_window;
        Self { statistics: connection.statistics().clone(), congestion_window, information }
    }
}

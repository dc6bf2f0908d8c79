//! What runs on machines: programs that read and write as any other, and whose processor time is charged for.

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

use linerate_stack::{Event, Stack};
use linerate_tcp::Connection;
use linerate_units::{Instant, Span, Tick};
use std::fmt::Debug;

/// A program. It is asked what it does next; when the processor has done that, it is asked again, and then what it
/// had said takes effect.
pub(crate) trait Program: Debug + Send {
    /// It runs: what was charged for happens, and what does it do next?
    fn handle_run(&mut self, task: &mut Task<'_>) -> Step;

    /// Is this event one that it may sleep for?
    fn wants(&self, event: &Event) -> bool;

    /// Has it done all that it was to do? A world ends when all programs that are waited for have.
    fn is_over(&self) -> bool;

    /// How it went.
    fn report(&self, stack: &Stack) -> ProgramReport;
}

/// What a program works with.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// The host.
    pub(crate) stack: &'a mut Stack,
    /// What the machine's clock shows.
    pub(crate) clock: Instant,
    /// The world's time, which no program of the time could know: for reports.
    pub(crate) now: Tick,
}

/// What a program does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It works, for which it is charged.
    Work(Charge),
    /// It sleeps until something happens that it wants.
    Sleep,
}

/// What costs processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    /// System calls.
    pub(crate) calls: u64,
    /// Bytes copied between task and kernel.
    pub(crate) copied: u64,
}

/// A system call for a character.
const CHARACTER: Step = Step::Work(Charge { calls: 1, copied: 1 });

/// How a program went.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramReport {
    /// Its name in the scenario, and which end of it.
    pub name: String,
    /// The host that it runs on.
    pub host: String,
    /// Bytes that it has moved.
    pub bytes: u64,
    /// When it moved the first.
    pub began: Option<Tick>,
    /// When it had moved the last.
    pub ended: Option<Tick>,
    /// Did it do all that it was to do?
    pub complete: bool,
    /// The first byte that was not the right one.
    pub wrong_at: Option<u64>,
    /// Its connection, if it has one.
    pub tcp: Option<TcpReport>,
    /// What else it has counted.
    pub counted: Vec<(&'static str, u64)>,
}

/// What a connection counted.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpReport {
    /// Its counters.
    pub statistics: linerate_tcp::Statistics,
    /// The congestion window, in bytes.
    pub congestion_window: u32,
}

impl ProgramReport {
    /// Of a program that has done nothing yet.
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

    /// How long it took, as far as it got.
    #[must_use]
    pub fn time(&self) -> Option<Span> {
        Some(self.ended?.since(self.began?))
    }

    /// What it moved in a second.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a figure for people; 53 bits are plenty")]
    pub fn bytes_per_second(&self) -> Option<f64> {
        let seconds = self.time()?.as_secs_f64();
        (seconds > 0.0).then(|| self.bytes as f64 / seconds)
    }
}

impl TcpReport {
    fn of(connection: &Connection) -> Self {
        let congestion_window = connection.information().congestion_window;
        Self { statistics: connection.statistics().clone(), congestion_window }
    }
}

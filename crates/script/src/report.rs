//! The results of a script.

use linerate_units::Duration;
use serde::Serialize;
use std::fmt;

/// The run of one script on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The verdict.
    pub verdict: Verdict,
    /// Duration of the run, in the time of the machine.
    pub took: Duration,
    /// The output of `print` statements.
    pub printed: String,
    /// All packets, in order.
    pub trace: Vec<Traced>,
}

/// A packet in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Time since the start of the script.
    pub at: Duration,
    /// Was the packet sent by the host?
    pub sent: bool,
    /// The bytes, starting with the IP header.
    pub bytes: Vec<u8>,
}

/// The verdict on a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// The run went as the script expects.
    Passed,
    /// The first difference between the script and the run.
    Failed(Deviation),
    /// The script needs a feature that this machine does not have.
    Refused {
        /// The line of the script.
        line: u32,
        /// The missing feature, and what is supported instead.
        what: String,
    },
    /// The machine itself failed.
    Broken {
        /// The line of the script.
        line: u32,
        /// The error.
        what: String,
    },
}

/// The first difference between a script and a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deviation {
    /// The line of the script.
    pub line: u32,
    /// A description of the difference.
    pub what: String,
    /// The expectation, in the script's notation.
    pub expected: String,
    /// The event that happened instead, in the script's notation, with its time.
    pub actual: String,
}

impl Verdict {
    /// Returns the line at which the run ended, unless the script passed.
    #[must_use]
    pub const fn line(&self) -> Option<u32> {
        match self {
            Self::Passed => None,
            Self::Failed(deviation) => Some(deviation.line),
            Self::Refused { line, .. } | Self::Broken { line, .. } => Some(*line),
        }
    }

    /// Returns the verdict as text, starting with `file`. Empty if the script passed.
    #[must_use]
    pub fn describe(&self, file: &str) -> String {
        match self {
            Self::Passed => String::new(),
            Self::Failed(deviation) => format!("{file}:{deviation}"),
            Self::Refused { line, what } => format!("{file}:{line}: refused: {what}"),
            Self::Broken { line, what } => format!("{file}:{line}: the machine failed: {what}"),
        }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, what, expected, actual } = self;
        write!(f, "{line}: {what}\n  expected  {expected}\n  actual    {actual}")
    }
}

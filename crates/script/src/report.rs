//! What became of a script.

use linerate_units::Duration;
use serde::Serialize;
use std::fmt;

/// The run of one script on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What became of it.
    pub verdict: Verdict,
    /// How long it took, in the time of the machine.
    pub took: Duration,
    /// What code in the script has printed.
    pub printed: String,
    /// Every packet that passed, in order.
    pub trace: Vec<Traced>,
}

/// A packet that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Since the beginning of the script.
    pub at: Duration,
    /// Did the host send it?
    pub sent: bool,
    /// From the IP header on.
    pub bytes: Vec<u8>,
}

/// What became of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// Everything was as the script says.
    Passed,
    /// Something was not.
    Failed(Deviation),
    /// The script asks for something that this machine does not have.
    Refused {
        /// The line that asks.
        line: u32,
        /// For what, and what there is.
        what: String,
    },
    /// The machine itself failed.
    Broken {
        /// The line at which it did.
        line: u32,
        /// How.
        what: String,
    },
}

/// Where a machine left the script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deviation {
    /// The line of the script.
    pub line: u32,
    /// What is different.
    pub what: String,
    /// What the script says.
    pub expected: String,
    /// What happened, in the script's notation, and when.
    pub came: String,
}

impl Verdict {
    /// The line at which the machine and the script parted.
    #[must_use]
    pub const fn line(&self) -> Option<u32> {
        match self {
            Self::Passed => None,
            Self::Failed(deviation) => Some(deviation.line),
            Self::Refused { line, .. } | Self::Broken { line, .. } => Some(*line),
        }
    }

    /// The lines that tell of it, each after `file`; nothing for a script that passed.
    #[must_use]
    pub fn told(&self, file: &str) -> String {
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
        let Self { line, what, expected, came } = self;
        write!(f, "{line}: {what}\n  expected  {expected}\n  came      {came}")
    }
}

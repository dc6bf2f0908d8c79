//! The results of a script.

use linerate_units::Duration;
use serde::Serialize;
use std::fmt;

/// The result of running one script on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The verdict on the script.
    pub verdict: Verdict,
    /// Duration of the run by the host's clock, which may be virtual.
    pub took: Duration,
    /// The output of `print` statements.
    pub printed: String,
    /// The packets in both directions, in order; only the first 10,000, if there are more.
    pub trace: Vec<Traced>,
}

impl Report {
    /// Returns the report of a script that is refused before it runs.
    pub(crate) const fn refused(what: String) -> Self {
        Self {
            verdict: Verdict::Refused { line: 1, what },
            took: Duration::ZERO,
            printed: String::new(),
            trace: Vec::new(),
        }
    }
}

/// A packet in the trace of a script's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Time since the start of the script.
    pub at: Duration,
    /// True for a packet that the host sent, false for a packet of the script.
    pub sent: bool,
    /// Bytes of the packet from the IP header on.
    pub bytes: Vec<u8>,
}

/// The verdict on a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// The host behaved as the script expects.
    Passed,
    /// The host behaved differently from the script. The value describes the first difference.
    Failed(Deviation),
    /// The script needs a feature that the host lacks.
    Refused {
        /// Line of the script that needs the feature.
        line: u32,
        /// The missing feature, and an alternative to it.
        what: String,
    },
    /// The host could not be run, because of an error of the machine.
    Broken {
        /// Line of the script at which the error occurred.
        line: u32,
        /// Description of the error.
        what: String,
    },
}

/// The first difference between a script and the behaviour of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deviation {
    /// Line of the script that contains the expected event.
    pub line: u32,
    /// A description of the difference.
    pub what: String,
    /// The expected event, in the script's notation.
    pub expected: String,
    /// The actual event, in the script's notation and with its time.
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

    /// Returns the verdict as text that begins with the name `file`. The text is empty if the
    /// script passed.
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

//! The levels of requirements (RFC 2119).

use serde::Deserialize;
use std::fmt;

/// All levels, in the order in which tables are printed.
pub(crate) const LEVELS: [Level; 4] = [Level::Must, Level::Should, Level::May, Level::Recommended];

/// The level of a requirement (RFC 2119).
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    #[serde(rename = "MUST")]
    Must,
    #[serde(rename = "SHLD")]
    Should,
    #[serde(rename = "MAY")]
    May,
    #[serde(rename = "REC")]
    Recommended,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHLD",
            Self::May => "MAY",
            Self::Recommended => "REC",
        })
    }
}

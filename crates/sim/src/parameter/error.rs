//! Why a file or a change of a parameter is refused. Whoever wrote it can mend it.

use super::Place;
use thiserror::Error;

/// Why a scenario, or a change of it, is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// Nothing has this name.
    #[error("there is no {what} `{}`: choose one of {known}", name.escape_debug())]
    Unknown {
        /// `scenario`, `machine`, `card`, `medium`.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A file that another one names cannot be read.
    #[error("{file}, which {key} names, cannot be read ({what}): see that it is there")]
    Unreadable {
        /// The key.
        key: String,
        /// The file.
        file: String,
        /// What the system says.
        what: String,
    },
    /// The file is no TOML.
    #[error(
        "{place} is no TOML ({what}): mend it, or see `linerate sim show sun-3-60-to-3-60` for a scenario"
    )]
    NotToml {
        /// The line.
        place: Place,
        /// What the reader says.
        what: String,
    },
    /// An entry is not what it should be.
    #[error("{key}{} {what}", within(place.as_ref()))]
    Wrong {
        /// The key.
        key: String,
        /// Where it stands, if a file says it.
        place: Option<Place>,
        /// What is wrong with it, and what it should be.
        what: String,
    },
    /// A parameter that is needed is not there.
    #[error("{key} is missing: the scenario, or a file that it names, must say it")]
    Missing {
        /// The parameter.
        key: String,
    },
    /// A parameter that nobody reads.
    #[error(
        "{key}{} means nothing here: leave it out, or see `linerate sim show` for the keys that there are",
        within(place.as_ref())
    )]
    Unread {
        /// The parameter.
        key: String,
        /// Where it stands.
        place: Option<Place>,
    },
    /// A change of a parameter that is not there.
    #[error("there is no parameter `{key}`{hint}: see `linerate sim show {scenario}`")]
    NoSuchKey {
        /// What was to be changed.
        key: String,
        /// The nearest name.
        hint: String,
        /// The scenario.
        scenario: String,
    },
    /// A change that is not KEY=VALUE.
    #[error("`{0}` is no change of a parameter: write KEY=VALUE")]
    NotAChange(String),
    /// A value that is no number.
    #[error("`{value}` is no number for {key}: write one in {unit}")]
    NotANumber {
        /// The parameter.
        key: String,
        /// What was written.
        value: String,
        /// Its unit.
        unit: String,
    },
    /// A value outside of what is physically possible.
    #[error(
        "{key} = {value} {unit}{} cannot be: it lies between {range} {unit}",
        within(place.as_ref())
    )]
    OutOfRange {
        /// The parameter.
        key: String,
        /// Where it stands, if a file says it.
        place: Option<Place>,
        /// The value.
        value: String,
        /// Its unit.
        unit: String,
        /// The least and the most.
        range: String,
    },
    /// The parts of a scenario do not fit together.
    #[error("{0}")]
    Topology(String),
}

/// Where that is, behind the name of a key.
fn within(place: Option<&Place>) -> String {
    place.map_or_else(String::new, |place| format!(", {place},"))
}

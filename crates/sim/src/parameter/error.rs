//! The error of a refused scenario or parameter change. Every message says how to correct the
//! cause.

use super::Place;
use thiserror::Error;

/// The error of a refused scenario or parameter change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// No file, host or option has this name.
    #[error("there is no {what} `{}`: choose one of {known}", name.escape_debug())]
    Unknown {
        /// The kind of the missing item: `scenario`, `machine`, `NIC`, `medium` …
        what: &'static str,
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// A file that another one names cannot be read.
    #[error("{file}, which {key} names, cannot be read ({what}): check its name")]
    Unreadable {
        /// The key that names the file.
        key: String,
        /// The file.
        file: String,
        /// The error of the operating system.
        what: String,
    },
    /// The file is not valid TOML.
    #[error(
        "{place} is not valid TOML ({what}): correct it, or see `linerate sim show \
         sun-3-60-to-3-60` for a scenario"
    )]
    NotToml {
        /// The line of the error.
        place: Place,
        /// The error of the parser.
        what: String,
    },
    /// An entry has a wrong value.
    #[error("{key}{} {what}", within(place.as_ref()))]
    Wrong {
        /// The key.
        key: String,
        /// The line of the entry, if it comes from a file.
        place: Option<Place>,
        /// The fault, and the permitted values.
        what: String,
    },
    /// A required parameter is missing.
    #[error("{key} is missing: the scenario, or a file that it names, must set it")]
    Missing {
        /// The parameter.
        key: String,
    },
    /// An entry that is not used.
    #[error(
        "{key}{} means nothing here: leave it out, or see `linerate sim show` for the keys that \
         there are",
        within(place.as_ref())
    )]
    Unread {
        /// The parameter.
        key: String,
        /// The line in the file.
        place: Option<Place>,
    },
    /// A change of a parameter that does not exist.
    #[error("there is no parameter `{key}`{hint}: see `linerate sim show {scenario}`")]
    NoSuchKey {
        /// The key to change.
        key: String,
        /// The nearest name.
        hint: String,
        /// The scenario.
        scenario: String,
    },
    /// A change that is not KEY=VALUE.
    #[error("`{0}` does not change a parameter: write KEY=VALUE")]
    NotAChange(String),
    /// A value that is not a number.
    #[error("`{value}` is not a number for {key}: write one in {unit}")]
    NotANumber {
        /// The parameter.
        key: String,
        /// The text.
        value: String,
        /// Unit of the value.
        unit: String,
    },
    /// A value outside its physical range.
    #[error(
        "{key} = {value} {unit}{} is out of range: it lies between {range} {unit}",
        within(place.as_ref())
    )]
    OutOfRange {
        /// The parameter.
        key: String,
        /// The line in the file, if it comes from one.
        place: Option<Place>,
        /// The value.
        value: String,
        /// Unit of the value.
        unit: String,
        /// The lower and the upper limit.
        range: String,
    },
    /// The parts of a scenario do not fit together.
    #[error("{0}")]
    Topology(String),
}

/// Formats the place of a key for an error message.
fn within(place: Option<&Place>) -> String {
    place.map_or_else(String::new, |place| format!(", {place},"))
}

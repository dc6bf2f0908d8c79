//! The error for a refused scenario or parameter change. Every message says how to correct the
//! cause.

use super::Place;
use thiserror::Error;

/// The reason why a scenario or a parameter change was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// A name that matches no file, host or option.
    #[error("there is no {what} `{}`: choose one of {known}", name.escape_debug())]
    Unknown {
        /// Kind of the missing item: `scenario`, `machine`, `NIC`, `medium` …
        what: &'static str,
        /// The unknown name.
        name: String,
        /// All known names of this kind, for the message.
        known: String,
    },
    /// A file that cannot be read, although an entry of another file names it.
    #[error("{file}, which {key} names, cannot be read ({what}): check its name")]
    Unreadable {
        /// Key of the entry that names the file.
        key: String,
        /// Name of the file, as the entry gives it.
        file: String,
        /// Error of the operating system.
        what: String,
    },
    /// A file that is not valid TOML.
    #[error(
        "{place} is not valid TOML ({what}): correct it, or see `linerate sim show \
         sun-3-60-to-3-60` for a scenario"
    )]
    NotToml {
        /// Position of the fault.
        place: Place,
        /// Message of the TOML parser.
        what: String,
    },
    /// An entry whose value is wrong.
    #[error("{key}{} {what}", within(place.as_ref()))]
    Wrong {
        /// Key of the entry.
        key: String,
        /// Position of the entry, if it comes from a file.
        place: Option<Place>,
        /// The fault, and the values that are permitted.
        what: String,
    },
    /// A required entry that is missing.
    #[error("{key} is missing: the scenario, or a file that it names, must set it")]
    Missing {
        /// Key of the missing entry.
        key: String,
    },
    /// An entry that no part of the scenario uses, for example because its key is misspelt.
    #[error(
        "{key}{} means nothing here: leave it out, or see `linerate sim show` for the keys that \
         there are",
        within(place.as_ref())
    )]
    Unread {
        /// Key of the unused entry.
        key: String,
        /// Position of the entry, if it comes from a file.
        place: Option<Place>,
    },
    /// A change of an entry that does not exist.
    #[error("there is no parameter `{key}`{hint}: see `linerate sim show {scenario}`")]
    NoSuchKey {
        /// Key that the change names.
        key: String,
        /// Text that suggests the nearest existing key.
        hint: String,
        /// Name of the scenario.
        scenario: String,
    },
    /// A change that does not have the form KEY=VALUE.
    #[error("`{0}` does not change a parameter: write KEY=VALUE")]
    NotAChange(String),
    /// A value that should be a number and is not.
    #[error("`{value}` is not a number for {key}: write one in {unit}")]
    NotANumber {
        /// Key of the entry.
        key: String,
        /// Text given as the value.
        value: String,
        /// Unit of the number.
        unit: String,
    },
    /// A number outside its physical range.
    #[error(
        "{key} = {value} {unit}{} is out of range: it lies between {range} {unit}",
        within(place.as_ref())
    )]
    OutOfRange {
        /// Key of the number.
        key: String,
        /// Position of the number, if it comes from a file.
        place: Option<Place>,
        /// The refused value.
        value: String,
        /// Unit of the value and of the range.
        unit: String,
        /// Lower and upper limit of the value.
        range: String,
    },
    /// Parts of a scenario that contradict each other, such as a route without a router.
    #[error("{0}")]
    Topology(String),
}

/// Formats the position of an entry for a message, or nothing if it has none.
fn within(place: Option<&Place>) -> String {
    place.map_or_else(String::new, |place| format!(", {place},"))
}

//! Why a file or a change of a parameter is refused. Whoever wrote it can mend it.

use thiserror::Error;

/// Why a scenario, or a change of it, is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// Nothing has this name.
    #[error("there is no {what} `{name}`: choose one of {known}")]
    Unknown {
        /// `scenario`, `machine`, `card`, `medium`.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The file is no TOML.
    #[error("{file} is no scenario ({what}): see `linerate sim show sun-3-60-to-3-60` for one")]
    NotToml {
        /// The file.
        file: String,
        /// What the reader says.
        what: String,
    },
    /// A key in a file is not what it should be.
    #[error("{key} in {file} {what}")]
    Wrong {
        /// The key.
        key: String,
        /// The file.
        file: String,
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
    #[error("{key} means nothing here: leave it out, or see `linerate sim show` for the keys that there are")]
    Unread {
        /// The parameter.
        key: String,
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
    #[error("{key} = {value} {unit} cannot be: it lies between {low} and {high} {unit}")]
    OutOfRange {
        /// The parameter.
        key: String,
        /// The value.
        value: String,
        /// Its unit.
        unit: String,
        /// The least.
        low: String,
        /// The most.
        high: String,
    },
    /// The parts of a scenario do not fit together.
    #[error("{0}")]
    Topology(String),
}

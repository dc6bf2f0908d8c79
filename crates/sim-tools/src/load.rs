//! Loads scenarios by name, or from a file and the files that it refers to.

use linerate_evidence::TooManyRuns;
use linerate_sim::{ParameterError, Scenario, Settings};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The reason why a scenario could not be loaded. The user can correct each of them.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// The scenario or a change of it is invalid.
    #[error(transparent)]
    Refused(#[from] ParameterError),
    /// The file cannot be read.
    #[error("{} cannot be read ({what}): see that it is there", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        what: String,
    },
    /// Two changes of one parameter are ambiguous.
    #[error("--set changes `{0}` twice: give it one value")]
    Twice(String),
    /// A night has too many runs.
    #[error(transparent)]
    TooManyRuns(#[from] TooManyRuns),
    /// The scenario cannot be used for this purpose.
    #[error("{0}")]
    Unfit(String),
}

/// Loads the scenario with this name, or this file if the name ends in `.toml`, and applies
/// `changes`.
///
/// # Errors
/// If there is no such scenario, it or a change is invalid, or two changes have one parameter.
pub fn load(name: &str, changes: &[String]) -> Result<Scenario, ScenarioError> {
    refuse_twice(changes)?;
    let mut scenario =
        if name.ends_with(".toml") { from_file(Path::new(name))? } else { named(name)? };
    for change in changes {
        scenario.set(change)?;
    }
    Ok(scenario)
}

/// Refuses a second change of a parameter, because the first would be lost silently. Changes of all
/// NICs of a kind (`lance.transmit.start`) may precede a change of one NIC.
pub(crate) fn refuse_twice(changes: &[String]) -> Result<(), ScenarioError> {
    let mut keys = changes
        .iter()
        .filter_map(|change| Some(Settings::short_key(change.split_once('=')?.0.trim())));
    let mut changed = BTreeSet::new();
    let twice = keys.find(|&key| !changed.insert(key));
    twice.map_or(Ok(()), |key| Err(ScenarioError::Twice(key.to_owned())))
}

fn named(name: &str) -> Result<Scenario, ScenarioError> {
    match Scenario::named(name) {
        Err(_) if Path::new(name).exists() => Err(ScenarioError::Unfit(format!(
            "{name} is the name of no scenario: a file that holds one has a name that ends in .toml"
        ))),
        scenario => Ok(scenario?),
    }
}

fn from_file(path: &Path) -> Result<Scenario, ScenarioError> {
    let text = fs::read_to_string(path).map_err(|error| ScenarioError::Unreadable {
        path: path.to_owned(),
        what: error.to_string(),
    })?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let beside =
        |file: &str| fs::read_to_string(folder.join(file)).map_err(|error| error.to_string());
    Ok(Scenario::parse(&path.display().to_string(), &text, &beside)?)
}

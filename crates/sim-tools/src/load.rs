//! Scenarios by name, or from a file and the files beside it that it names.

use linerate_evidence::TooManyRuns;
use linerate_sim::{ParameterError, Scenario, Settings};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a scenario cannot be had. Whoever asked for it can mend it.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// The scenario, or a change of it, is refused.
    #[error(transparent)]
    Refused(#[from] ParameterError),
    /// The file cannot be read.
    #[error("{} cannot be read ({what}): see that it is there", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        what: String,
    },
    /// Two changes of one parameter, of which nobody knows which is meant.
    #[error("--set changes `{0}` twice: give it one value")]
    Twice(String),
    /// A night of too many runs.
    #[error(transparent)]
    TooManyRuns(#[from] TooManyRuns),
    /// Something in it cannot be made with the options of a sweep.
    #[error("{0}")]
    Unfit(String),
}

/// The scenario with this name, or in this file if the name ends in `.toml`, with `changes` made.
///
/// # Errors
/// If there is none, or it is wrong, or a change is, or two are of the same parameter.
pub fn load(name: &str, changes: &[String]) -> Result<Scenario, ScenarioError> {
    refuse_twice(changes)?;
    let mut scenario =
        if name.ends_with(".toml") { from_file(Path::new(name))? } else { named(name)? };
    for change in changes {
        scenario.set(change)?;
    }
    Ok(scenario)
}

/// Refuses a second change of a parameter: the first would be lost without a word. One of many parameters, as
/// `lance.transmit.start`, may go before one of them.
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

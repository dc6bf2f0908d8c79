//! Loads scenarios by name or from files, with the files that they name.

use linerate_evidence::TooManyRuns;
use linerate_sim::{ParameterError, Scenario, Settings};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The reason why a scenario could not be loaded. The user can correct each of these causes.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// The scenario or a change of it is invalid.
    #[error(transparent)]
    Refused(#[from] ParameterError),
    /// A file that cannot be read.
    #[error("{} cannot be read ({what}): see that it is there", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        what: String,
    },
    /// Two changes of one parameter, of which the first would have no effect.
    #[error("--set changes `{0}` twice: give it one value")]
    Twice(String),
    /// A measurement series with too many runs.
    #[error(transparent)]
    TooManyRuns(#[from] TooManyRuns),
    /// A scenario that the command cannot use, because it lacks something that the command needs.
    #[error("{0}")]
    Unfit(String),
}

/// Loads the built-in scenario `name`, or the file `name` if it ends in `.toml`, and applies
/// `changes`.
///
/// # Errors
/// If there is no such scenario, the scenario or a change is invalid, or two changes concern one
/// parameter.
pub fn load(name: &str, changes: &[String]) -> Result<Scenario, ScenarioError> {
    refuse_twice(changes)?;
    let mut scenario =
        if name.ends_with(".toml") { from_file(Path::new(name))? } else { named(name)? };
    for change in changes {
        scenario.set(change)?;
    }
    Ok(scenario)
}

/// Refuses two changes of one parameter, because the first one would silently have no effect. A
/// change for all NICs of a kind (`lance.transmit.start`) may be followed by one for a single NIC,
/// because the two have different keys.
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

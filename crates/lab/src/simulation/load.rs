//! Scenarios by name, or from a file and the files beside it that it names.

use crate::plan::{BenchKind, Draft};
use linerate_sim::{ParameterError, Scenario, Settings};
use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroU32;
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
pub(super) fn refuse_twice(changes: &[String]) -> Result<(), ScenarioError> {
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

/// The experiment of 1988 on the machines of a scenario, its packets and calls as large as the scenario says.
///
/// # Errors
/// As [`load`], or if nobody transfers anything in the scenario.
pub fn of_scenario(name: &str, changes: &[String]) -> Result<Draft, ScenarioError> {
    let blueprint = load(name, changes)?.blueprint()?;
    let transfer = blueprint.transfer().ok_or_else(|| {
        ScenarioError::Unfit(format!(
            "{name} has no bulk transfer to vary the buffers of: use `linerate sim run {name}`"
        ))
    })?;
    let mut draft = Draft::of_1988(BenchKind::Sim);
    draft.scenario = Some(name.to_owned());
    draft.set = changes.to_vec();
    draft.mtu = u16::try_from(transfer.mtu).unwrap_or(u16::MAX);
    draft.write_size = size(transfer.write_size).unwrap_or(draft.write_size);
    draft.read_size = size(transfer.read_size).unwrap_or(draft.read_size);
    Ok(draft)
}

fn size(bytes: usize) -> Option<NonZeroU32> {
    u32::try_from(bytes).ok().and_then(NonZeroU32::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_of_a_scenario_is_made_on_it_with_its_changes_and_in_its_calls() {
        let changes = ["transfer.write_size=1000", "transfer.read_size=500"].map(str::to_owned);
        let draft = of_scenario("sun-3-60-to-3-60", &changes).unwrap();
        assert_eq!(
            (draft.scenario.as_deref(), &draft.set[..]),
            (Some("sun-3-60-to-3-60"), &changes[..])
        );
        assert_eq!((draft.write_size.get(), draft.read_size.get()), (1_000, 500));
    }
}

//! The plan of Van Jacobson's experiment of 1988 on the simulated machines of a scenario.

use super::draft::Draft;
use super::kind::BenchKind;
use linerate_sim_tools::{ScenarioError, load};
use std::num::NonZeroU32;

impl Draft {
    /// Returns the plan of Van Jacobson's experiment of 1988 on the machines of the scenario
    /// `name`. `changes` (each as `KEY=VALUE`) changes parameters of the scenario. The MTU, the
    /// write size and the read size are taken from the scenario.
    ///
    /// # Errors
    /// The errors of [`load`], or the scenario has no bulk transfer.
    pub fn of_scenario(name: &str, changes: &[String]) -> Result<Self, ScenarioError> {
        let blueprint = load(name, changes)?.blueprint()?;
        let transfer = blueprint.transfer().ok_or_else(|| {
            ScenarioError::Unfit(format!(
                "{name} has no bulk transfer to vary the buffers of: use `linerate sim run {name}`"
            ))
        })?;
        let mut draft = Self::of_1988(BenchKind::Sim);
        draft.scenario = Some(name.to_owned());
        draft.set = changes.to_vec();
        draft.mtu = u16::try_from(transfer.mtu).unwrap_or(u16::MAX);
        draft.write_size = size(transfer.write_size).unwrap_or(draft.write_size);
        draft.read_size = size(transfer.read_size).unwrap_or(draft.read_size);
        Ok(draft)
    }
}

/// Converts a size in bytes to the type of a plan's fields; returns `None` for zero and for sizes
/// of 4 GiB or more.
fn size(bytes: usize) -> Option<NonZeroU32> {
    u32::try_from(bytes).ok().and_then(NonZeroU32::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_takes_sizes_and_changes_from_the_scenario() {
        let changes = ["transfer.write_size=1000", "transfer.read_size=500"].map(str::to_owned);
        let draft = Draft::of_scenario("sun-3-60-to-3-60", &changes).unwrap();
        assert_eq!(
            (draft.scenario.as_deref(), &draft.set[..]),
            (Some("sun-3-60-to-3-60"), &changes[..])
        );
        assert_eq!((draft.write_size.get(), draft.read_size.get()), (1_000, 500));
    }
}

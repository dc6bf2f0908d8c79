//! The numbers of a relay, as a scenario gives them.

use crate::machine::MachineParameters;
use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// Frames that may wait for a processor.
const MOST_WAITING: u64 = 1_000_000;

/// A router or a bridge, its cards apart.
#[derive(Clone, Debug)]
pub(crate) struct RelayParameters {
    /// Its processor and its drivers.
    pub(crate) machine: MachineParameters,
    /// What the processor takes to decide where a frame goes, and to make it ready for that.
    pub(crate) forward: Span,
    /// Frames that may wait for that.
    pub(crate) input: usize,
}

impl RelayParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        section.word("machine")?;
        Ok(Self {
            machine: MachineParameters::read(&section.below("machine"))?,
            forward: section.span("forward")?,
            input: section.size_within("input", 1..=MOST_WAITING)?,
        })
    }
}

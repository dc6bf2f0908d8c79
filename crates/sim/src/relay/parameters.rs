//! Parameters of a relay, from the scenario file.

use crate::machine::MachineParameters;
use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// Upper limit of the frames that wait for a processor.
const MOST_WAITING: u64 = 1_000_000;

/// Parameters of a router or a bridge, without its NICs.
#[derive(Clone, Debug)]
pub(crate) struct RelayParameters {
    /// The processor and the drivers of the router or bridge.
    pub(crate) machine: MachineParameters,
    /// Processor time of a forwarding decision.
    pub(crate) forward: Span,
    /// Upper limit of the frames that wait for it.
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

//! Parameters of a router or a bridge, from the scenario file.

use crate::machine::MachineParameters;
use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// Upper limit of `input`, the number of frames that may wait for the processor.
const MOST_WAITING: u64 = 1_000_000;

/// Parameters of a router or a bridge, without its NICs.
#[derive(Clone, Debug)]
pub(crate) struct RelayParameters {
    /// Processor, bus and drivers, from a machine file.
    pub(crate) machine: MachineParameters,
    /// Processor time of one forwarding decision.
    pub(crate) forward: Span,
    /// Maximum number of received frames that wait for the processor.
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

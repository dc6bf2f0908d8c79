//! The numbers of a machine, as its file gives them.

use super::cost::Costs;
use crate::nic::BusParameters;
use crate::parameter::{ParameterError, Section};
use linerate_units::Span;
use std::num::NonZeroU16;

/// A machine has no more of them, and a card no more queues.
pub(crate) const MOST_PROCESSORS: u16 = 32;

/// A machine.
#[derive(Clone, Debug)]
pub(crate) struct MachineParameters {
    pub(crate) costs: Costs,
    /// All as fast, on one bus.
    pub(crate) processors: NonZeroU16,
    /// The clock shows multiples of this.
    pub(crate) clock_grain: Span,
    /// The part of its time that the processor wants the bus that cards take from it, in 65,536ths.
    pub(crate) wants_bus: u64,
    /// Who else wants the bus.
    pub(crate) bus: BusParameters,
    /// The clock of its ISA bus, in Hz, if it has one.
    isa_clock: Option<f64>,
}

impl MachineParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        section.word("title")?;
        let relative = if section.has("relative") { section.factor("relative")? } else { 1.0 };
        let scale = section.factor("scale")? * relative;
        let isa = section.below("isa");
        let isa_clock = if isa.has("clock") { Some(isa.frequency("clock")?) } else { None };
        let wants_bus = section.below("bus").share("processor")? * 65_536.0;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share between 0 and 1, whose range was checked"
        )]
        let wants_bus = wants_bus.round() as u64;
        Ok(Self {
            costs: Costs::read(&section.below("cost"), scale)?,
            processors: section.several("processors", MOST_PROCESSORS)?,
            clock_grain: section.below("clock").span("grain")?,
            wants_bus,
            bus: BusParameters::read(&section.below("bus"))?,
            isa_clock,
        })
    }

    /// The processor copies each byte of its card's frames, in so many clocks of the bus; none if it has no ISA bus.
    pub(crate) fn with_copy(mut self, clocks_per_byte: f64) -> Option<Self> {
        let picos = clocks_per_byte * 1e12 / self.isa_clock?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a time, of numbers whose ranges were checked"
        )]
        let picos = picos.round() as u64;
        self.costs.card_copy = Span::from_picos(picos);
        Some(self)
    }
}

//! Parameters of a machine file.

use super::cost::Costs;
use crate::nic::{BusParameters, MOST_QUEUES};
use crate::parameter::{ParameterError, Section};
use linerate_units::Span;
use std::num::NonZeroU16;

/// Parameters of a machine, from its file.
#[derive(Clone, Debug)]
pub(crate) struct MachineParameters {
    pub(crate) costs: Costs,
    /// Number of processors. All are equally fast and share one bus.
    pub(crate) processors: NonZeroU16,
    /// Resolution of the clock: it shows multiples of this time.
    pub(crate) clock_grain: Span,
    /// Fraction of a processor's running time in which it accesses the bus, in 65,536ths.
    /// Processors and NICs share this bus.
    pub(crate) bus_demand: u64,
    /// Arbitration of the bus, and the load of another bus master, such as a disk controller.
    pub(crate) bus: BusParameters,
    /// Clock frequency of the ISA bus in Hz, if the machine has one.
    isa_clock: Option<f64>,
}

impl MachineParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        section.word("title")?;
        let relative = if section.has("relative") { section.factor("relative")? } else { 1.0 };
        let scale = section.factor("scale")? * relative;
        let isa = section.below("isa");
        let isa_clock = if isa.has("clock") { Some(isa.frequency("clock")?) } else { None };
        let bus_demand = section.below("bus").share("processor")? * 65_536.0;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share between 0 and 1, whose range was checked"
        )]
        let bus_demand = bus_demand.round() as u64;
        Ok(Self {
            costs: Costs::read(&section.below("cost"), scale)?,
            processors: section.several("processors", MOST_QUEUES)?,
            clock_grain: section.below("clock").span("grain")?,
            bus_demand,
            bus: BusParameters::read(&section.below("bus"))?,
            isa_clock,
        })
    }

    /// Sets the time to copy a byte between the NIC and memory to `clocks_per_byte` clock cycles of
    /// the ISA bus. Returns `None` if the machine has no ISA bus.
    pub(crate) fn with_copy(mut self, clocks_per_byte: f64) -> Option<Self> {
        let picos = clocks_per_byte * 1e12 / self.isa_clock?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a time, of numbers whose ranges were checked"
        )]
        let picos = picos.round() as u64;
        self.costs.nic_copy = Span::from_picos(picos);
        Some(self)
    }
}

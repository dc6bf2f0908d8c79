//! Parameters of buses and full-duplex cables.

use crate::parameter::{ParameterError, Section};
use linerate_units::{Rate, Span};

/// Slot time in bits: a signal must travel through the whole bus and back within it.
const SLOT_BITS: u64 = 512;

/// A bus.
#[derive(Clone, Debug)]
pub(crate) struct BusParameters {
    /// Bit rate.
    pub(crate) rate: Rate,
    /// Duration of a bit.
    pub(crate) bit: Span,
    /// Inter-frame gap.
    pub(crate) gap: Span,
    /// Propagation time of a metre.
    pub(crate) metre: Span,
    /// Whether simultaneous transmissions destroy each other. Without collisions, the medium is an
    /// experimental control that no real cable corresponds to.
    pub(crate) collisions: bool,
    /// Delay of the repeater, if this is a star, in which positions are the lengths of the arms.
    pub(crate) repeater: Option<Span>,
}

impl BusParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        let rate = section.wire_rate("rate")?;
        let bit = Span::of_bits(1, rate);
        let metre = section.span("metre")?;
        Ok(Self {
            rate,
            bit,
            gap: bit * section.count("gap")?,
            metre,
            collisions: section.switch("collisions")?,
            repeater: None,
        })
    }

    pub(crate) fn read_hub(section: &Section<'_>) -> Result<Self, ParameterError> {
        let bus = Self::read(section)?;
        Ok(Self { repeater: Some(bus.bit * section.count("repeater")?), ..bus })
    }

    /// Returns the longest propagation time, if `place` is the position furthest from the end of
    /// the cable.
    pub(crate) fn longest(&self, place: Span) -> Span {
        self.repeater.map_or(place, |repeater| place * 2 + repeater)
    }

    /// Returns whether every station senses a collision within the slot time, given the longest
    /// propagation time.
    pub(crate) fn reaches(&self, longest: Span) -> bool {
        longest * 2 < self.bit * SLOT_BITS
    }
}

/// A full-duplex cable.
#[derive(Clone, Debug)]
pub(crate) struct DuplexParameters {
    /// Bit rate.
    pub(crate) rate: Rate,
    /// Duration of a bit.
    pub(crate) bit: Span,
    /// Inter-frame gap.
    pub(crate) gap: Span,
    /// Propagation time from end to end.
    pub(crate) delay: Span,
    /// Share of frames that are lost.
    pub(crate) loss: f64,
    /// Share of frames that arrive with a wrong check sequence.
    pub(crate) corruption: f64,
    /// Share of frames that are delayed.
    pub(crate) reorder: f64,
    /// Additional delay of a delayed frame.
    pub(crate) reorder_delay: Span,
}

impl DuplexParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        let rate = section.wire_rate("rate")?;
        let bit = Span::of_bits(1, rate);
        Ok(Self {
            rate,
            bit,
            gap: bit * section.count("gap")?,
            delay: section.span("delay")?,
            loss: section.share("loss")?,
            corruption: section.share("corruption")?,
            reorder: section.share("reorder")?,
            reorder_delay: section.span("reorder_delay")?,
        })
    }
}

//! The numbers of a medium.

use crate::parameter::{ParameterError, Section};
use linerate_units::{Rate, Span};

/// Where the slot time of a bus at its ends is spent: a signal must get there and back within 512 bits.
const SLOT_BITS: u64 = 512;

/// A bus.
#[derive(Clone, Debug)]
pub(crate) struct BusParameters {
    /// Its bit rate.
    pub(crate) rate: Rate,
    /// One bit.
    pub(crate) bit: Span,
    /// Silence between frames.
    pub(crate) gap: Span,
    /// How long a signal takes for a metre.
    pub(crate) metre: Span,
    /// Do stations that send at one time destroy each other's frames? Off is a control that no cable has.
    pub(crate) collisions: bool,
    /// Is it a star, in whose middle a repeater takes so long? Positions are then the lengths of its arms.
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

    /// How long a signal takes from end to end, if that is the place furthest from the beginning of the cable.
    pub(crate) fn longest(&self, place: Span) -> Span {
        self.repeater.map_or(place, |repeater| place * 2 + repeater)
    }

    /// Can everybody on a cable of this length hear of a collision within the slot time?
    pub(crate) fn reaches(&self, longest: Span) -> bool {
        longest * 2 < self.bit * SLOT_BITS
    }
}

/// A cable with a pair for each direction.
#[derive(Clone, Debug)]
pub(crate) struct DuplexParameters {
    /// Its bit rate.
    pub(crate) rate: Rate,
    /// One bit.
    pub(crate) bit: Span,
    /// Silence between frames.
    pub(crate) gap: Span,
    /// From one end to the other.
    pub(crate) delay: Span,
    /// The part of the frames that get lost.
    pub(crate) loss: f64,
    /// The part of the frames whose check sequence is wrong on arrival.
    pub(crate) corruption: f64,
    /// The part of the frames that take longer.
    pub(crate) reorder: f64,
    /// How much longer.
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

//! Parameters of buses and full-duplex cables.

use crate::parameter::{ParameterError, Section};
use linerate_units::{Rate, Span};

/// Slot time in bit times: within it, a signal must travel through the whole bus and back.
const SLOT_BITS: u64 = 512;

/// Parameters of a bus, or of a star: cables from all stations to one repeater.
#[derive(Clone, Debug)]
pub(crate) struct BusParameters {
    /// Bit rate of the cable.
    pub(crate) rate: Rate,
    /// Duration of one bit.
    pub(crate) bit: Span,
    /// Time between two frames (inter-frame gap).
    pub(crate) gap: Span,
    /// Propagation time along one metre.
    pub(crate) metre: Span,
    /// Whether simultaneous transmissions destroy each other, as on every real shared cable.
    /// Experiments can set this to `false`.
    pub(crate) collisions: bool,
    /// Delay of the repeater, if the medium is a star; `None` for a bus. The position of a station
    /// on a star is the length of its cable to the repeater.
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

    /// Returns the longest propagation time between two stations. `place` is the longest
    /// propagation time to a station: from one end of a bus, or from the repeater of a star.
    pub(crate) fn longest(&self, place: Span) -> Span {
        self.repeater.map_or(place, |repeater| place * 2 + repeater)
    }

    /// Returns whether every station senses each collision within the slot time, if the longest
    /// propagation time between two stations is `longest`.
    pub(crate) fn reaches(&self, longest: Span) -> bool {
        longest * 2 < self.bit * SLOT_BITS
    }
}

/// Parameters of a full-duplex cable.
#[derive(Clone, Debug)]
pub(crate) struct DuplexParameters {
    /// Bit rate of each direction.
    pub(crate) rate: Rate,
    /// Duration of one bit.
    pub(crate) bit: Span,
    /// Time between two frames (inter-frame gap).
    pub(crate) gap: Span,
    /// Propagation time from one end of the cable to the other.
    pub(crate) delay: Span,
    /// Fraction of frames that are lost, from 0 to 1.
    pub(crate) loss: f64,
    /// Fraction of frames that arrive with a wrong check sequence, from 0 to 1.
    pub(crate) corruption: f64,
    /// Fraction of frames that are delayed, from 0 to 1.
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

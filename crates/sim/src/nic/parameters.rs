//! The numbers of a network card, as its file gives them.

use crate::machine::MOST_PROCESSORS;
use crate::parameter::{ParameterError, Section};
use linerate_units::Span;
use std::num::NonZeroU16;

/// Commands of a ring, and frames or pages of a receive area: what a card keeps in memory has an end.
const LONGEST_RING: u64 = 65_536;
/// Bytes of a word, and words of a burst.
const LONGEST_BURST: u64 = 65_536;
/// Bytes of an IP packet.
const LONGEST_PACKET: u64 = 65_535;

/// A card.
#[derive(Clone, Debug)]
pub(crate) struct NicParameters {
    pub(crate) transmit: TransmitParameters,
    pub(crate) receive: ReceiveParameters,
    pub(crate) dma: DmaParameters,
    pub(crate) interrupt: InterruptParameters,
    pub(crate) offload: OffloadParameters,
    /// Of each half: rings, receive areas and interrupts, over which flows are spread (RSS).
    pub(crate) queues: NonZeroU16,
    /// Bus clocks that the processor takes for a byte of a card without DMA.
    pub(crate) clocks_per_byte: Option<f64>,
}

/// The half that sends.
#[derive(Clone, Debug)]
pub(crate) struct TransmitParameters {
    /// Commands that the card works off by itself, one after the other. With one, the driver gives the next command
    /// when the card has interrupted for the last.
    pub(crate) ring: usize,
    /// From the driver's word to a card at rest until its first frame is ready to leave.
    pub(crate) start: Span,
    /// From the end of a frame until the next one of the ring is ready to leave.
    pub(crate) chained: Span,
    /// From the end of a frame until its command is done and the card interrupts.
    pub(crate) done: Span,
    /// From the end of a frame that arrives until the card can send, also what it was about to send before; zero for a
    /// card whose halves share nothing.
    pub(crate) after_receive: Span,
    /// Bytes of its FIFO; none if memory is always there in time.
    pub(crate) fifo: Option<u64>,
    /// How often the card by itself tries a frame again that was broken off because the FIFO ran empty; then it is lost.
    pub(crate) retries: u64,
    /// From the end of such a frame until the card can send again.
    pub(crate) restart: Span,
}

/// The half that receives.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveParameters {
    /// Frames that the receive area holds; pages, if it is made of pages.
    pub(crate) ring: usize,
    /// Bytes of a page: a frame takes as many as it needs; zero for a place a frame.
    pub(crate) page: usize,
    /// From the end of a frame until it is in memory, with its status, and the card interrupts.
    pub(crate) done: Span,
    /// After a frame, or one of its own, the card is deaf for so long: what begins meanwhile is lost.
    pub(crate) deaf: Span,
    /// How often a full receive area costs the card its place, so that it must be started anew by the driver.
    pub(crate) restart: Span,
    /// Bytes of its FIFO; none if memory is always there in time.
    pub(crate) fifo: Option<u64>,
}

/// The way into memory.
#[derive(Clone, Debug)]
pub(crate) struct DmaParameters {
    /// Bytes of a word on the bus.
    pub(crate) word: u64,
    /// How long the card holds the bus for a word.
    pub(crate) cycle: Span,
    /// Words that it moves when it has been given the bus.
    pub(crate) burst: u64,
}

/// When the card asks for the processor.
#[derive(Clone, Debug)]
pub(crate) struct InterruptParameters {
    /// It interrupts when this time has passed since the first thing to tell; zero for at once.
    pub(crate) delay: Span,
    /// Or when there are so many things to tell; one for at once.
    pub(crate) frames: usize,
}

/// What it does in place of the host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OffloadParameters {
    /// It makes checksums and verifies them, so that the processor does not.
    pub(crate) checksums: bool,
    /// Bytes of the largest IP packet that it cuts into TCP segments; zero if it cuts none.
    pub(crate) cuts: usize,
    /// Bytes of the largest IP packet into which it joins segments that come in; zero if it joins none.
    pub(crate) joins: usize,
}

impl OffloadParameters {
    fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        if !section.has("checksums") {
            return Ok(Self::default());
        }
        Ok(Self {
            checksums: section.switch("checksums")?,
            cuts: section.size_within("tso", 0..=LONGEST_PACKET)?,
            joins: section.size_within("lro", 0..=LONGEST_PACKET)?,
        })
    }
}

impl NicParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        let (transmit, receive) = (section.below("transmit"), section.below("receive"));
        let (dma, interrupt) = (section.below("dma"), section.below("interrupt"));
        section.word("title")?;
        let copy = section.below("copy");
        let fifo = |half: &Section<'_>| {
            if half.has("fifo") { half.count("fifo").map(Some) } else { Ok(None) }
        };
        let sends_from_fifo = transmit.has("fifo");
        Ok(Self {
            clocks_per_byte: if copy.has("clocks") { Some(copy.real("clocks")?) } else { None },
            transmit: TransmitParameters {
                ring: transmit.size_within("ring", 1..=LONGEST_RING)?,
                start: transmit.span("start")?,
                chained: transmit.span("chained")?,
                done: transmit.span("done")?,
                after_receive: transmit.span("after_receive")?,
                fifo: fifo(&transmit)?,
                retries: if sends_from_fifo { transmit.count("retries")? } else { 0 },
                restart: if sends_from_fifo { transmit.span("restart")? } else { Span::ZERO },
            },
            receive: ReceiveParameters {
                ring: receive.size_within("ring", 1..=LONGEST_RING)?,
                page: if receive.has("page") { receive.size("page")? } else { 0 },
                done: receive.span("done")?,
                deaf: receive.span("deaf")?,
                restart: receive.span("restart")?,
                fifo: fifo(&receive)?,
            },
            dma: DmaParameters {
                word: dma.count_within("word", 1..=LONGEST_BURST)?,
                cycle: dma.span("cycle")?,
                burst: if dma.has("burst") {
                    dma.count_within("burst", 1..=LONGEST_BURST)?
                } else {
                    1
                },
            },
            queues: section.several("queues", MOST_PROCESSORS)?,
            offload: OffloadParameters::read(&section.below("offload"))?,
            interrupt: InterruptParameters {
                delay: interrupt.span("delay")?,
                frames: interrupt.size("frames")?,
            },
        })
    }
}

/// Bytes that an 8390 keeps with a frame: its own header, and the check sequence.
const KEPT_WITH_FRAME: usize = 4 + 4;

impl ReceiveParameters {
    /// How much of the receive area a frame takes.
    pub(crate) const fn places(&self, length: usize) -> usize {
        match self.page {
            0 => 1,
            page => (length + KEPT_WITH_FRAME).div_ceil(page),
        }
    }
}

impl DmaParameters {
    /// The part of the bus's time that the card holds it while a frame is on the wire, where a byte takes `byte`: in
    /// 65,536ths.
    pub(crate) fn bus_share(&self, byte: Span) -> u64 {
        let wire = u128::from(byte.as_picos()) * u128::from(self.word);
        let share = (u128::from(self.cycle.as_picos()) << 16).checked_div(wire).unwrap_or(0);
        u64::try_from(share).unwrap_or(u64::MAX).min(1 << 16)
    }
}

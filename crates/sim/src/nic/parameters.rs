//! Parameters of a NIC file.

use crate::parameter::{ParameterError, Section};
use linerate_units::Span;
use std::num::NonZeroU16;

/// Upper limit of the queues of a NIC, and of the processors that serve them.
pub(crate) const MOST_QUEUES: u16 = 32;

/// Upper limit of descriptors of a transmit ring, and of frames or pages of a receive ring. Bounds
/// the memory of a NIC.
const LONGEST_RING: u64 = 65_536;
/// Upper limit of the bytes of a word and of the words of a burst.
const LONGEST_BURST: u64 = 65_536;
/// Bytes of the largest IP packet.
const LONGEST_PACKET: u64 = 65_535;

/// A NIC.
#[derive(Clone, Debug)]
pub(crate) struct NicParameters {
    pub(crate) transmit: TransmitParameters,
    pub(crate) receive: ReceiveParameters,
    pub(crate) dma: DmaParameters,
    pub(crate) interrupt: InterruptParameters,
    pub(crate) offload: OffloadParameters,
    /// Queues: each has rings and an interrupt of its own, and RSS spreads flows over them.
    pub(crate) queues: NonZeroU16,
    /// Bus clocks that the processor needs for each byte, if the NIC has no DMA.
    pub(crate) clocks_per_byte: Option<f64>,
}

/// The transmit half.
#[derive(Clone, Debug)]
pub(crate) struct TransmitParameters {
    /// Descriptors of the ring. With a single descriptor, the driver posts a frame only after the
    /// interrupt for the previous one.
    pub(crate) ring: usize,
    /// Time from the driver's request to an idle NIC until the first frame is ready.
    pub(crate) start: Span,
    /// Time from the end of a frame until the next one of the ring is ready.
    pub(crate) chained: Span,
    /// Time from the end of a frame until its descriptor is complete and the NIC interrupts.
    pub(crate) done: Span,
    /// Time from the end of a received frame until the NIC can send, even if the frame to send was
    /// ready before. Zero if the two halves share no hardware.
    pub(crate) after_receive: Span,
    /// Bytes of the FIFO; `None` if memory is always fast enough.
    pub(crate) fifo: Option<u64>,
    /// Maximum number of times that the NIC repeats a frame aborted by an underrun before it drops
    /// the frame.
    pub(crate) retries: u64,
    /// Time from the end of an aborted frame until the NIC can send again.
    pub(crate) restart: Span,
}

/// The receive half.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveParameters {
    /// Frames that the ring holds, or pages if it consists of pages.
    pub(crate) ring: usize,
    /// Bytes of a page. A frame takes as many pages as it needs. Zero if each frame takes one
    /// descriptor.
    pub(crate) page: usize,
    /// Time from the end of a frame until it is in memory with its status, and the NIC interrupts.
    pub(crate) done: Span,
    /// Dead time after each frame received or sent. A frame that begins during it is lost.
    pub(crate) deaf: Span,
    /// Dead time after an overflow of the ring, until the driver has restarted the receiver.
    pub(crate) restart: Span,
    /// Bytes of the FIFO; `None` if memory is always fast enough.
    pub(crate) fifo: Option<u64>,
}

/// Access to memory.
#[derive(Clone, Debug)]
pub(crate) struct DmaParameters {
    /// Bytes of a word on the bus.
    pub(crate) word: u64,
    /// Bus time of a word.
    pub(crate) cycle: Span,
    /// Words moved per bus tenure.
    pub(crate) burst: u64,
}

/// Interrupt moderation.
#[derive(Clone, Debug)]
pub(crate) struct InterruptParameters {
    /// Time from the first completion to the interrupt; with zero the NIC interrupts at once.
    pub(crate) delay: Span,
    /// Number of completions that cause an interrupt before `delay` has passed; with one the NIC
    /// interrupts at once.
    pub(crate) frames: usize,
}

/// Work that the NIC does in place of the host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OffloadParameters {
    /// Whether the NIC computes and verifies checksums, so that the processor need not.
    pub(crate) checksums: bool,
    /// Bytes of the largest IP packet that the NIC segments (TSO); zero without TSO.
    pub(crate) tso_max_size: usize,
    /// Bytes of the largest IP packet that the NIC merges from received segments (LRO); zero
    /// without LRO.
    pub(crate) lro_max_size: usize,
}

impl OffloadParameters {
    fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        if !section.has("checksums") {
            return Ok(Self::default());
        }
        Ok(Self {
            checksums: section.switch("checksums")?,
            tso_max_size: section.size_within("tso", 0..=LONGEST_PACKET)?,
            lro_max_size: section.size_within("lro", 0..=LONGEST_PACKET)?,
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
            queues: section.several("queues", MOST_QUEUES)?,
            offload: OffloadParameters::read(&section.below("offload"))?,
            interrupt: InterruptParameters {
                delay: interrupt.span("delay")?,
                frames: interrupt.size("frames")?,
            },
        })
    }
}

/// Bytes that an 8390 stores with each frame: its header and the check sequence.
const KEPT_WITH_FRAME: usize = 4 + 4;

impl ReceiveParameters {
    /// Returns the slots of the receive ring that a frame takes.
    pub(crate) const fn slots(&self, length: usize) -> usize {
        match self.page {
            0 => 1,
            page => (length + KEPT_WITH_FRAME).div_ceil(page),
        }
    }
}

impl DmaParameters {
    /// Returns the NIC's share of the bus while a frame is on the wire, where a byte takes `byte`,
    /// in 65,536ths.
    pub(crate) fn bus_share(&self, byte: Span) -> u64 {
        let wire = u128::from(byte.as_picos()) * u128::from(self.word);
        let share = (u128::from(self.cycle.as_picos()) << 16).checked_div(wire).unwrap_or(0);
        u64::try_from(share).unwrap_or(u64::MAX).min(1 << 16)
    }
}

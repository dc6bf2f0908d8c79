//! Parameters of a NIC, from its file.

use crate::parameter::{ParameterError, Section};
use linerate_units::Span;
use std::num::NonZeroU16;

/// Upper limit of the number of queues of a NIC, and of the processors that serve them.
pub(crate) const MOST_QUEUES: u16 = 32;

/// Upper limit of a ring's size, which bounds the memory of a simulated NIC. The size counts
/// descriptors; for the receive ring of an 8390, it counts pages.
const LONGEST_RING: u64 = 65_536;
/// Upper limit of the size of a bus word in bytes, and of the number of words in a burst.
const LONGEST_BURST: u64 = 65_536;
/// Size of the largest IP packet in bytes.
const LONGEST_PACKET: u64 = 65_535;

/// Parameters of a NIC.
#[derive(Clone, Debug)]
pub(crate) struct NicParameters {
    pub(crate) transmit: TransmitParameters,
    pub(crate) receive: ReceiveParameters,
    pub(crate) dma: DmaParameters,
    pub(crate) interrupt: InterruptParameters,
    pub(crate) offload: OffloadParameters,
    /// Number of queues. Each queue has its own rings and its own interrupt, and RSS spreads flows
    /// over the queues.
    pub(crate) queues: NonZeroU16,
    /// Number of bus clocks in which the processor copies one byte, if the NIC has no DMA.
    pub(crate) clocks_per_byte: Option<f64>,
}

/// Parameters of the transmit half of a NIC.
#[derive(Clone, Debug)]
pub(crate) struct TransmitParameters {
    /// Number of descriptors. If there is only one, the driver can post a frame only after the NIC
    /// has reported the previous frame by an interrupt.
    pub(crate) ring: usize,
    /// Time from the driver's request until an idle NIC is ready to send the first frame.
    pub(crate) start: Span,
    /// Time from the end of a frame until the NIC is ready to send the next frame of the ring.
    pub(crate) chained: Span,
    /// Time from the end of a sent frame until its descriptor is complete and the NIC can
    /// interrupt.
    pub(crate) done: Span,
    /// Time from the end of a received frame until the NIC can send its next frame, even one that
    /// was ready earlier. Zero if sending and receiving use separate hardware.
    pub(crate) after_receive: Span,
    /// Size of the FIFO in bytes; `None` if memory is always fast enough.
    pub(crate) fifo: Option<u64>,
    /// Maximum number of times that the NIC repeats a frame that an underrun has aborted. If the
    /// underruns continue after that, the NIC drops the frame.
    pub(crate) retries: u64,
    /// Time from the end of a frame aborted by an underrun until the NIC can send again.
    pub(crate) restart: Span,
}

/// Parameters of the receive half of a NIC.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveParameters {
    /// Size of the ring in descriptors, each of which takes a frame; or in pages, if `page` is not
    /// zero.
    pub(crate) ring: usize,
    /// Size of a page in bytes; a frame takes as many pages as it needs. Zero if each frame takes
    /// one descriptor.
    pub(crate) page: usize,
    /// Time from the end of a received frame until the frame and its status are in memory, and the
    /// NIC can interrupt.
    pub(crate) done: Span,
    /// Time after each received or sent frame in which the NIC cannot receive. A frame that begins
    /// during this time is lost.
    pub(crate) deaf: Span,
    /// Time that the driver takes to restart the NIC after the receive ring has overflowed. The NIC
    /// cannot receive during this time.
    pub(crate) restart: Span,
    /// Size of the FIFO in bytes; `None` if memory is always fast enough.
    pub(crate) fifo: Option<u64>,
}

/// Parameters of a NIC's access to memory.
#[derive(Clone, Debug)]
pub(crate) struct DmaParameters {
    /// Width of a bus word in bytes.
    pub(crate) word: u64,
    /// Bus time of one word.
    pub(crate) cycle: Span,
    /// Number of words moved each time the NIC gets the bus.
    pub(crate) burst: u64,
}

/// Parameters of interrupt moderation.
#[derive(Clone, Debug)]
pub(crate) struct InterruptParameters {
    /// Time from the first unread completion to the interrupt. With zero, each completion
    /// interrupts at once.
    pub(crate) delay: Span,
    /// Number of unread completions at which the NIC interrupts, even if `delay` has not passed.
    /// With one, each completion interrupts at once.
    pub(crate) frames: usize,
}

/// Parameters of the offloads, by which a NIC takes over work of the host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OffloadParameters {
    /// Whether the NIC computes and verifies checksums, so that the processor need not.
    pub(crate) checksums: bool,
    /// Size in bytes of the largest IP packet that the NIC segments (TSO); zero without TSO.
    pub(crate) tso_max_size: usize,
    /// Size in bytes of the largest IP packet into which the NIC merges received segments (LRO);
    /// zero without LRO.
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

/// Number of bytes that an 8390 stores in addition to each frame: a header of 4 bytes and the check
/// sequence.
const KEPT_WITH_FRAME: usize = 4 + 4;

impl ReceiveParameters {
    /// Returns the number of slots of the receive ring that a frame of this length takes.
    pub(crate) const fn slots(&self, length: usize) -> usize {
        match self.page {
            0 => 1,
            page => (length + KEPT_WITH_FRAME).div_ceil(page),
        }
    }
}

impl DmaParameters {
    /// Returns the fraction of the bus that the NIC uses while a frame is on the wire, in
    /// 65,536ths. The wire carries one byte in the time `byte`.
    pub(crate) fn bus_share(&self, byte: Span) -> u64 {
        let wire = u128::from(byte.as_picos()) * u128::from(self.word);
        let share = (u128::from(self.cycle.as_picos()) << 16).checked_div(wire).unwrap_or(0);
        u64::try_from(share).unwrap_or(u64::MAX).min(1 << 16)
    }
}

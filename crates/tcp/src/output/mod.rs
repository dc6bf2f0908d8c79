//! Output: choosing, building and recording segments.

pub(crate) mod batch;
mod build;
mod choose;
mod commit;
mod idle;
mod predict;
pub(crate) mod reset;
pub(crate) mod zero_copy;

use crate::Connection;
use choose::Choice;
use commit::Origin;
use core::num::NonZeroU16;
use linerate_units::Instant;
use linerate_wire::{Ecn, Sum, TcpHeader, TcpOptions};
use zero_copy::ZeroCopyRange;

/// A segment that was written into a frame.
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// Bytes of header and payload.
    pub length: usize,
    /// The checksum over these bytes, with ports and checksum field zero. The caller adds the ports
    /// and the pseudo-header.
    pub sum: Sum,
    /// The ECN codepoint of the packet (RFC 3168 §6.1).
    pub ecn: Ecn,
    /// Bytes of the header, options included.
    pub header: usize,
    /// Number of data bytes in each segment, if this is a GSO frame that the link splits into equal
    /// segments.
    pub cut: Option<NonZeroU16>,
    /// The range of the send buffer that holds the data, if the data was not written behind the
    /// header.
    pub zero_copy: Option<ZeroCopyRange>,
    /// The kind of the segment, for counters.
    pub kind: Kind,
    /// Whether the segment was predicted. If so, no other segment can follow now, and a driver need
    /// only look at the timers: no event, buffer or state has changed.
    pub is_predicted: bool,
}

/// The kind of a segment in the counters of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A segment sent for the first time.
    Ordinary,
    /// A retransmission.
    Again,
    /// A reset.
    Reset,
}

impl Transmit {
    /// Returns a segment of `header` bytes without data, with this checksum.
    #[inline]
    const fn without_data(header: usize, sum: Sum) -> Self {
        Self {
            length: header,
            sum,
            ecn: Ecn::NotEct,
            header,
            cut: None,
            zero_copy: None,
            kind: Kind::Ordinary,
            is_predicted: false,
        }
    }

    /// Returns the number of segments.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.cut.map_or(1, |size| (self.length - self.header) / usize::from(size.get()))
    }
}

/// The work that the link does for a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// No offload: [`Transmit::sum`] covers header and payload.
    None,
    /// Checksums and segmentation (GSO): [`Transmit::sum`] covers the header alone, and a burst of
    /// full segments is written as one frame behind one header, as far as it fits.
    Segmentation,
    /// Checksums, segmentation (GSO) and scatter-gather: large data may stay in the send buffer
    /// ([`Transmit::zero_copy`]).
    ScatterGather,
}

/// Header bytes of a segment with timestamps and no other option.
const HEADER: usize = TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;

impl Connection {
    #[inline(always)]
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        offload: Offload,
        bytes: &mut [u8],
    ) -> Option<Transmit> {
        if !self.output_due {
            return None;
        }
        if self.expectation.header() == 0 {
            if let Some(control) = self.send_control(now, offload, bytes) {
                return Some(control.into());
            }
        } else if let Some(rest) = self.predict_output() {
            return Some(self.send_predicted(now, rest, offload, bytes));
        }
        let (transmit, burst) = self.slow(|connection| connection.poll_chosen(now, offload, bytes));
        self.limit_burst(burst);
        let transmit = transmit?;
        // This constant lets the compiler specialize callers that test the field.
        Some(Transmit { is_predicted: false, ..transmit })
    }

    /// Chooses and writes the next segment. Also returns how many segments may continue a burst
    /// after it.
    #[inline(never)]
    fn poll_chosen(
        &mut self,
        now: Instant,
        offload: Offload,
        bytes: &mut [u8],
    ) -> (Option<Transmit>, u8) {
        if let Some(reset) = self.reset_due.take() {
            return (Some(reset.emit(bytes)), 0);
        }
        let mut burst = 0;
        if self.rare.is_some() {
            self.tidy_rare_options();
        }
        self.pace(now);
        let mut choice = self.choose();
        if let Choice::Data(piece) = &mut choice {
            if offload != Offload::None && self.is_to_grow(piece, bytes.len()) {
                self.wait_to_grow(now);
                return (None, 0);
            }
            let was_idle = self.snd.flight() == 0 || self.sender.probes > 0;
            if was_idle && !piece.probe {
                self.restart_after_idle_time(now);
            }
            burst = self.begin_burst(piece, offload, bytes.len());
        }
        if choice == Choice::Nothing {
            self.end_output(now);
            return (None, 0);
        }
        let mut transmit = self.build(now, choice, offload, bytes);
        let before = self.statistics.retransmitted_segments;
        self.commit(now, choice, Origin::Chosen);
        if self.statistics.retransmitted_segments != before {
            transmit.kind = Kind::Again;
        }
        if self.is_last_segment(choice) {
            self.end_output(now);
        }
        (Some(transmit), burst)
    }

    /// Handles the first transmission while nothing is in flight. A congestion window that was not
    /// used for one RTO is outdated (RFC 5681 §4.1).
    #[inline]
    fn restart_after_idle_time(&mut self, now: Instant) {
        self.sender.congestion.on_idle(now.since(self.sender.progressed));
        if now.since(self.sender.last_sent) > self.sender.rtt.timeout(&self.config.rto)
            && self.config.restart_after_idle
        {
            self.forget_after_idle();
        }
    }

    #[cold]
    fn forget_after_idle(&mut self) {
        self.sender.congestion.controller().forget_after_idle();
        self.begin_first_flight();
    }
}

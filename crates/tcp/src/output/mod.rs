//! Output: the choice, the construction and the recording of segments.

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
    /// The length of header and data in bytes.
    pub length: usize,
    /// The partial checksum of these bytes, or of the header only (see [`Offload`]). The ports and
    /// the checksum field are zero in it. The caller adds the ports and the pseudo-header.
    pub sum: Sum,
    /// The ECN codepoint of the packet (RFC 3168 §6.1).
    pub ecn: Ecn,
    /// The length of the header in bytes, including options.
    pub header: usize,
    /// The number of data bytes in each segment, if this is a GSO frame. The link splits such a
    /// frame into segments of this size.
    pub cut: Option<NonZeroU16>,
    /// The range of the send buffer that contains the data, if the data was not copied to the
    /// frame.
    pub zero_copy: Option<ZeroCopyRange>,
    /// The kind of the segment, for the counters of the host.
    pub kind: Kind,
    /// Whether the segment was chosen by output prediction. If so, no other segment can follow now.
    /// Sending it has changed no event, buffer or state of the connection, so the driver needs to
    /// check only the timers.
    pub is_predicted: bool,
}

/// The kind of a sent segment, for the counters of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A segment sent for the first time.
    Ordinary,
    /// A segment with retransmitted data.
    Again,
    /// A reset.
    Reset,
}

impl Transmit {
    /// Creates a segment with a header of `header` bytes and no data, with this partial checksum.
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

    /// Returns the number of segments that the link makes of the frame: one, unless it is a GSO
    /// frame.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.cut.map_or(1, |size| (self.length - self.header) / usize::from(size.get()))
    }
}

/// The work that the link can do for a sent segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// No offload: [`Transmit::sum`] covers the header and the data.
    None,
    /// The link computes checksums and segments frames (GSO). [`Transmit::sum`] covers only the
    /// header. As many full segments of a burst as fit are written as one frame, with one header.
    Segmentation,
    /// The link computes checksums, segments frames (GSO) and gathers data. Long data may stay in
    /// the send buffer ([`Transmit::zero_copy`]).
    ScatterGather,
}

/// The length of a header with timestamps and no other option, in bytes.
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
        // `is_predicted` is false already. It is set to a constant so that the compiler can
        // specialise callers that test it.
        Some(Transmit { is_predicted: false, ..transmit })
    }

    /// Chooses and writes the next segment. Returns the segment, and the number of segments that
    /// may continue a burst after it.
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

    /// Called before data is sent while nothing is in flight. Reduces the congestion window if no
    /// data was sent for one RTO, because the window is then outdated (RFC 5681 §4.1).
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

//! The check of the sequence number, which finds the new part of a segment, and the check of the
//! timestamp (RFC 9293 §3.10.7.4, first step; RFC 7323 §5.3).

use super::Refused;
use crate::Connection;
use crate::input::Refusal;
use crate::receive::{ReceiveSequence, saturated};
use linerate_units::Instant;
use linerate_wire::{Segment, SeqNum, TcpFlags, Timestamps};

/// The part of a segment that lies in the receive window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::input) struct Text<'a> {
    /// The sequence number of the first data byte; never before RCV.NXT.
    pub(in crate::input) seq: SeqNum,
    /// The data that lies in the receive window.
    pub(in crate::input) payload: &'a [u8],
    /// The number of data bytes in the largest received segment, if the link has coalesced several
    /// segments to this one.
    pub(in crate::input) piece: u32,
    /// The number of received segments that the link has coalesced to this one; one if it has
    /// coalesced none.
    pub(in crate::input) count: u32,
    /// Whether a FIN follows the data.
    pub(in crate::input) fin: bool,
    /// Whether a part of the segment lies outside the window and was removed. An acknowledgement is
    /// then sent at once, which shows our sequence numbers to the peer.
    pub(in crate::input) cut: bool,
}

impl<'a> Text<'a> {
    /// Creates the `Text` of a segment at sequence number `seq` that has neither data nor a FIN.
    pub(super) const fn empty(seq: SeqNum) -> Self {
        Self { seq, payload: &[], piece: 0, count: 1, fin: false, cut: false }
    }

    /// Whether the segment has neither data nor a FIN, and its sequence number is `seq`.
    pub(super) fn is_empty_at(&self, seq: SeqNum) -> bool {
        self.seq == seq && self.payload.is_empty() && !self.fin
    }

    /// Returns the sequence number after the data. If there is a FIN, this is its sequence number.
    pub(in crate::input) fn end(&self) -> SeqNum {
        self.seq + saturated(self.payload.len())
    }
}

/// The position of a segment relative to the receive window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// The whole segment lies before RCV.NXT, so all its data has arrived before.
    Before,
    /// This part of the segment lies in the receive window.
    InWindow(Text<'a>),
    /// The segment begins beyond the right edge of the window.
    Beyond,
}

impl<'a> Place<'a> {
    /// Returns the position of `segment` relative to the receive window `rcv`.
    ///
    /// An empty segment at the right edge of the window is accepted, although a strict reading of
    /// RFC 9293 refuses it. A peer that has filled the window sends its acknowledgements from this
    /// edge, and they must take effect. If the data of a segment ends at the edge, its FIN is
    /// accepted as well, because a FIN needs no room in the buffer.
    #[inline(always)]
    pub(super) fn of(rcv: &ReceiveSequence, segment: &Segment<'a>) -> Self {
        let flags = segment.flags();
        let mut text = Text {
            seq: segment.seq,
            payload: segment.payload,
            piece: saturated(segment.largest_piece()),
            count: segment.count(),
            fin: flags.contains(TcpFlags::FIN),
            cut: false,
        };
        if text.seq.before(rcv.nxt) {
            let end = text.end() + u32::from(text.fin);
            if !end.after(rcv.nxt) {
                return Self::Before;
            }
            let old = ((rcv.nxt - text.seq) as usize).min(text.payload.len());
            text.payload = &text.payload[old..];
            text.seq = rcv.nxt;
            text.cut = true;
        }
        if text.seq.after(rcv.edge) {
            return Self::Beyond;
        }
        let room = (rcv.edge - text.seq) as usize;
        if text.payload.len() > room {
            text.payload = &text.payload[..room];
            text.fin = false;
            text.cut = true;
        }
        Self::InWindow(text)
    }
}

impl Connection {
    /// Checks the timestamps by PAWS (RFC 7323 §5.3), and returns them if the connection uses
    /// timestamps. The timestamps of a reset are not checked. Any other segment without timestamps
    /// is refused if both endpoints have agreed to use them (§3.2).
    #[inline(always)]
    pub(super) fn check_timestamps(
        &self,
        now: Instant,
        segment: &Segment<'_>,
    ) -> Result<Option<Timestamps>, Refused> {
        if !self.timestamps.on || segment.flags().contains(TcpFlags::RST) {
            return Ok(None);
        }
        match segment.timestamps() {
            Some(timestamps) if !self.timestamps.is_old(timestamps, now) => Ok(Some(timestamps)),
            Some(_) => Err(Refused::unacceptable(Refusal::OldTimestamp, segment)),
            None => Err(Refused::silently(Refusal::OldTimestamp)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(nxt: u32, edge: u32) -> ReceiveSequence {
        let mut rcv = ReceiveSequence::new(SeqNum::new(nxt));
        rcv.edge = SeqNum::new(edge);
        rcv
    }

    fn cut(
        rcv: &ReceiveSequence,
        seq: u32,
        payload: &'static [u8],
        flags: TcpFlags,
    ) -> Option<(u32, &'static [u8], bool)> {
        let segment = Segment {
            source_port: 1,
            destination_port: 2,
            seq: SeqNum::new(seq),
            ack: SeqNum::new(0),
            offset_and_flags: 0x5000 | flags.bits(),
            window: 0,
            urgent: 0,
            options: &[],
            payload,
            joined: None,
        };
        match Place::of(rcv, &segment) {
            Place::InWindow(text) => Some((text.seq.number(), text.payload, text.fin)),
            Place::Before | Place::Beyond => None,
        }
    }

    #[test]
    fn only_the_part_inside_the_window_is_text() {
        let rcv = window(100, 104);
        assert_eq!(cut(&rcv, 100, b"ab", TcpFlags::ACK), Some((100, &b"ab"[..], false)));
        assert_eq!(cut(&rcv, 98, b"abcd", TcpFlags::ACK), Some((100, &b"cd"[..], false)));
        assert_eq!(cut(&rcv, 102, b"abcd", TcpFlags::FIN), Some((102, &b"ab"[..], false)));
        assert_eq!(cut(&rcv, 98, b"ab", TcpFlags::ACK), None);
        assert_eq!(cut(&rcv, 98, b"ab", TcpFlags::FIN), Some((100, &b""[..], true)));
        assert_eq!(cut(&rcv, 105, b"", TcpFlags::ACK), None);
    }

    #[test]
    fn an_acknowledgement_from_the_edge_of_a_full_window_counts() {
        let rcv = window(100, 104);
        assert_eq!(cut(&rcv, 104, b"", TcpFlags::ACK), Some((104, &b""[..], false)));
        assert_eq!(cut(&rcv, 100, b"abcd", TcpFlags::FIN), Some((100, &b"abcd"[..], true)));
        let closed = window(100, 100);
        assert_eq!(cut(&closed, 100, b"p", TcpFlags::ACK), Some((100, &b""[..], false)));
    }
}

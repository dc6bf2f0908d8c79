//! First step: is the segment from this connection's present, and which part of it is new (RFC 9293
//! §3.10.7.4 first, RFC 7323 §5)?

use super::Refusal;
use crate::receive::{ReceiveSequence, saturated};
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{Segment, SeqNum, TcpFlags, Timestamps};

/// The part of a segment that lies inside the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    /// Where it begins; never before `rcv.nxt`.
    pub(crate) seq: SeqNum,
    /// Data that fits the window.
    pub(crate) payload: &'a [u8],
    /// Bytes of data in the largest of the segments that the peer has sent for it.
    pub(crate) piece: u32,
    /// How many these were.
    pub(crate) count: u32,
    /// Does a FIN follow the data?
    pub(crate) fin: bool,
    /// Was something cut off, at either side? Then the peer needs to hear where we are.
    pub(crate) cut: bool,
}

impl Text<'_> {
    /// The number after the data, where the FIN lies if there is one.
    pub(crate) fn end(&self) -> SeqNum {
        self.seq + saturated(self.payload.len())
    }
}

impl Connection {
    /// PAWS (RFC 7323 §5.3). A reset is not judged by its timestamp, and a segment without one is
    /// dropped once timestamps were agreed on (§3.2). Those that are to be noted, where both ends use them.
    pub(super) fn check_timestamp(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
    ) -> Result<Option<Timestamps>, Refusal> {
        if !self.timestamps.on || segment.flags().contains(TcpFlags::RST) {
            return Ok(None);
        }
        match segment.timestamps() {
            Some(timestamps) if !self.timestamps.is_old(timestamps, now) => {
                return Ok(Some(timestamps));
            }
            Some(_) => self.answer_unacceptable(now, segment),
            None => {}
        }
        self.statistics.old_timestamps += 1;
        Err(Refusal::OldTimestamp)
    }

    /// Takes the timestamp of the segment, if it has one, for the next echo.
    pub(super) fn note_timestamps(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        timestamps: Option<Timestamps>,
    ) {
        if let Some(timestamps) = timestamps {
            self.timestamps.note(timestamps, segment.seq, self.rcv.acked, now);
        }
    }

    /// The part of the segment inside the window. What lies outside altogether is answered by an
    /// acknowledgement. Resets were judged before.
    pub(super) fn check_sequence<'a>(
        &mut self,
        now: Instant,
        segment: &Segment<'a>,
    ) -> Result<Text<'a>, Refusal> {
        if self.repeats_syn(segment) {
            return Ok(self.text_of_repeated_syn(segment));
        }
        if !segment.payload.is_empty() && self.state.is_synchronized() {
            let end = segment.seq + saturated(segment.payload.len());
            self.receiver.note_duplicate(&self.rcv, segment.seq, end);
        }
        if let Some(text) = cut_to_window(&self.rcv, segment) {
            if text.cut {
                self.owe_ack();
            }
            return Ok(text);
        }
        if !segment.payload.is_empty() {
            self.statistics.duplicate_segments += u64::from(segment.count());
        }
        // What we acknowledged last, once more: the acknowledgement was lost. The answer echoes this copy,
        // or the sender would take its own timeout for a round trip (RFC 7323 §4.3 (2); Linux, too,
        // draws the line here).
        if !(segment.seq + segment.sequence_length()).before(self.rcv.acked) {
            self.note_timestamps(now, segment, self.timestamps.of(segment));
        }
        self.answer_unacceptable(now, segment);
        self.take_late_ack(now, segment);
        // TIME-WAIT starts anew when the peer repeats its FIN (§3.10.7.4 eighth).
        if self.state == State::TimeWait && segment.flags().contains(TcpFlags::FIN) {
            self.enter_time_wait(now);
        }
        Err(Refusal::OutsideWindow)
    }

    /// In SYN-RECEIVED: the SYN once more, because our answer was lost, or with an ACK, because both
    /// ends opened at the same time (§3.5, figure 7).
    fn repeats_syn(&self, segment: &Segment<'_>) -> bool {
        self.state == State::SynReceived
            && segment.flags().contains(TcpFlags::SYN)
            && segment.seq == self.rcv.irs
    }

    fn text_of_repeated_syn<'a>(&self, segment: &Segment<'a>) -> Text<'a> {
        // Data on a SYN is left to be sent again: it is ours to refuse before the handshake ends.
        let (seq, payload) = (self.rcv.nxt, &segment.payload[..0]);
        Text { seq, payload, piece: 0, count: 1, fin: false, cut: false }
    }
}

/// What of `segment` lies in the window; `None` if nothing does.
///
/// Stricter readers of the RFC refuse an empty segment at the window's right edge; a peer that has
/// filled the window sends its acknowledgements from just there, and they must count. A FIN needs
/// no room, so it counts with data that ends at the edge.
pub(crate) fn cut_to_window<'a>(rcv: &ReceiveSequence, segment: &Segment<'a>) -> Option<Text<'a>> {
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
            return None;
        }
        let old = ((rcv.nxt - text.seq) as usize).min(text.payload.len());
        text.payload = &text.payload[old..];
        text.seq = rcv.nxt;
        text.cut = true;
    }
    if text.seq.after(rcv.edge) {
        return None;
    }
    let room = (rcv.edge - text.seq) as usize;
    if text.payload.len() > room {
        text.payload = &text.payload[..room];
        text.fin = false;
        text.cut = true;
    }
    Some(text)
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
        cut_to_window(rcv, &segment).map(|text| (text.seq.number(), text.payload, text.fin))
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

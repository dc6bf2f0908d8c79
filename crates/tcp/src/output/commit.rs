//! The recording of sent segments. For every segment that is sent, [`Connection::commit`] advances
//! SND.NXT, updates the scoreboard and counts the segment. The other files of this folder choose
//! and write segments.

use super::choose::{Choice, Piece};
use crate::receive::BLOCKS_THAT_FIT;
use crate::timers::Timer;
use crate::{Connection, State, TimeLimits};
use linerate_units::{Duration, Instant};

/// The function that has chosen a segment. If another function than [`Connection::choose`] has
/// chosen it, the segment has known properties, so some steps of the recording are unnecessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The segment was chosen by [`Connection::choose`].
    Chosen,
    /// The segment was chosen by output prediction. It has the usual options and acknowledges
    /// everything received. Its data is new and shorter than a full segment, and the peer supports
    /// SACK.
    Predicted {
        /// Whether the segment is the only one with data in flight.
        is_alone: bool,
    },
    /// The segment belongs to a batch: its header is a copy of that of the segment sent before,
    /// with another sequence or acknowledgement number.
    Batch,
}

impl Connection {
    /// Records the segment or segments of the choice `sent`.
    // This method is inlined, so that for each constant `origin` the compiler removes the steps
    // that are unnecessary for it.
    #[inline(always)]
    pub(super) fn commit(&mut self, now: Instant, sent: Choice, origin: Origin) {
        self.statistics.segments_sent += u64::from(sent.segments());
        match sent {
            Choice::Syn { length } => self.commit_syn(now, length),
            Choice::Data(piece) => self.commit_data(now, piece, origin),
            Choice::KeepAlive => {
                self.keep_alive_due = false;
                self.statistics.keep_alive_probes += 1;
            }
            Choice::BareAck => return self.commit_bare_ack(),
            Choice::Ack { count } => self.statistics.pure_acks_sent += u64::from(count),
            Choice::Nothing => {}
        }
        // The steps below record the acknowledgement number that was sent. The SYN of an active
        // open has none. An ACK without data may acknowledge only a part of the received data; all
        // other segments acknowledge everything.
        let may_be_first = origin == Origin::Chosen || matches!(sent, Choice::Syn { .. });
        if may_be_first && self.state == State::SynSent {
            return;
        }
        let told = match (sent, origin) {
            (Choice::Ack { .. }, Origin::Chosen) => self.next_ack(),
            (Choice::Ack { count }, Origin::Batch) => self.rcv.acked + self.pair() * count,
            _ => self.rcv.nxt,
        };
        self.rcv.acked = told;
        self.timers.clear(Timer::DelayedAck);
        self.ack_due = !matches!(origin, Origin::Predicted { .. }) && told != self.rcv.nxt;
        if origin == Origin::Chosen {
            // If the segment had no room to report all out-of-order data, another acknowledgement
            // remains due (RFC 5681 §4.2).
            self.ack_due |= self.receiver.has_blocks() && self.commit_report(sent);
            self.user_timeouts.due &= matches!(sent, Choice::Syn { .. });
        }
    }

    /// Records that a segment has reported out-of-order and duplicate data, as far as its options
    /// had room. Returns whether another acknowledgement must follow to report the rest.
    #[cold]
    fn commit_report(&mut self, sent: Choice) -> bool {
        if self.agreement.selective_acks {
            self.receiver.on_sack_sent(self.blocks_beside_ecn_option().unwrap_or(BLOCKS_THAT_FIT))
        } else {
            self.receiver.on_duplicate_ack_sent(matches!(sent, Choice::Ack { .. }))
        }
    }

    /// Records an ACK that carries neither data nor SACK blocks. If there is out-of-order data,
    /// another acknowledgement remains due, which reports it.
    fn commit_bare_ack(&mut self) {
        self.statistics.pure_acks_sent += 1;
        self.first_due = false;
        self.ack_due &= self.receiver.has_blocks();
        self.rcv.acked = self.rcv.nxt;
        self.timers.clear(Timer::DelayedAck);
        self.on_bare_ack_sent();
    }

    /// Records our SYN or SYN-ACK with `length` bytes of data.
    #[inline(always)]
    fn commit_syn(&mut self, now: Instant, length: u32) {
        let flags = self.flags_of_syn();
        self.ecn.on_syn_sent(flags);
        self.first_due = false;
        if self.snd.max == self.snd.iss {
            self.sender.rtt.start_timing(self.snd.iss + 1, now);
            if self.fast_open.is_some() {
                self.note_fast_open_syn(length);
            }
            self.snd.nxt = self.snd.iss + 1 + length;
            self.snd.max = self.snd.nxt;
        } else {
            self.statistics.retransmitted_segments += 1;
            self.sender.rtt.stop_timing();
        }
        self.watch(now);
    }

    /// Records a segment with data, a FIN, or both.
    #[inline(always)]
    fn commit_data(&mut self, now: Instant, piece: Piece, origin: Origin) {
        let Piece { seq, length, .. } = piece;
        let end = piece.end();
        let is_chosen = origin == Origin::Chosen;
        if length > 0 {
            self.statistics.data_segments_sent += u64::from(piece.segments);
        }
        match origin {
            Origin::Chosen => self.commit_chosen_data(now, piece),
            Origin::Predicted { is_alone: true } => self.sender.record_first_sent(now, seq, end),
            Origin::Predicted { is_alone: false } => self.sender.record_sent(now, seq, end, false),
            Origin::Batch if self.agreement.selective_acks => {
                self.sender.scoreboard.extend_burst(length);
            }
            Origin::Batch => {}
        }
        if is_chosen {
            if end.after(self.snd.max) {
                let new = u64::from(end - self.snd.max);
                self.statistics.bytes_sent += new - u64::from(piece.fin);
            }
            self.sender.probe_due = false;
            self.snd.max = self.snd.max.later(end);
        } else {
            self.statistics.bytes_sent += u64::from(length);
            self.snd.max = end;
        }
        self.acks.on_data_sent();
        if length > 0 && origin != Origin::Batch && length < self.full_segment() {
            self.sender.small_end = self.sender.small_end.later(end);
        }
        if piece.probe {
            return self.commit_window_probe(now);
        }
        self.sender.last_sent = now;
        self.sender.pacer.on_sent(length);
        // A retransmission lies before SND.NXT, so `later` does not change SND.NXT. The exception
        // is a FIN that the retransmission includes for the first time.
        self.snd.nxt = if is_chosen { self.snd.nxt.later(end) } else { end };
        self.timers.clear(Timer::Persist);
        match origin {
            Origin::Chosen | Origin::Predicted { is_alone: false } => self.watch(now),
            Origin::Predicted { is_alone: true } if !self.timers.is_set(Timer::Retransmit) => {
                self.watch_alone(now);
            }
            // The retransmission timer is already running, so it is not started here.
            Origin::Predicted { is_alone: true } | Origin::Batch => {}
        }
    }

    /// Takes the recording steps that are necessary only for data from [`Connection::choose`]. Such
    /// data can be a retransmission, a probe, the first segment of a burst, or data for a peer
    /// without SACK.
    fn commit_chosen_data(&mut self, now: Instant, piece: Piece) {
        let (end, full) = (piece.end(), self.full_segment());
        let is_burst = piece.segments > 1;
        // Of a GSO frame, only the first segment is used to time the round trip and to search the
        // path MTU.
        let first_end = if is_burst { piece.seq + full } else { end };
        if self.is_new_data(piece) {
            self.ecn.on_new_data_sent();
        }
        if piece.seq.before(self.snd.max) {
            self.statistics.retransmitted_segments += 1;
            let again = piece.length.min(self.snd.max - piece.seq);
            self.statistics.bytes_retransmitted += u64::from(again);
            self.sender.rtt.stop_timing();
            self.sender.loss.repeated_to = end;
        } else if !self.agreement.selective_acks {
            self.sender.rtt.start_timing(first_end, now);
        }
        let is_path_probe = piece.length > full && !is_burst;
        if is_path_probe {
            self.sender.scoreboard.end_burst();
        }
        if self.agreement.selective_acks && !piece.probe {
            self.note_transmission(now, piece.seq, end);
        }
        if is_path_probe {
            self.remember_path_probe(piece.seq, end);
        } else if piece.length >= full {
            self.sender.path.note_full(first_end, self.snd.una);
        }
        self.sender.loss.retransmit_due &= !piece.seq.before(self.snd.nxt);
        if !piece.probe {
            self.statistics.small_window_timeouts += u64::from(self.sender.probe_due);
            self.sender.probes = 0;
        }
    }

    /// Records a byte sent into a closed window. The next probe is triggered by the persist timer,
    /// and not by an acknowledgement.
    fn commit_window_probe(&mut self, now: Instant) {
        self.statistics.window_probes += 1;
        let interval = self.persist_interval();
        self.timers.set(Timer::Persist, now, interval);
    }

    /// Starts the retransmission timer, if it is not running (RFC 6298 (5.1)).
    fn watch(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Retransmit) {
            self.watch_with_probe(now);
        }
    }

    /// Returns the interval of the persist timer: the retransmission timeout, doubled for each
    /// probe that was sent, within the configured limits (RFC 9293 §3.8.6.1).
    pub(super) fn persist_interval(&self) -> Duration {
        let TimeLimits { min: least, max: most } = self.config.persist;
        let doubled = self.sender.rtt.timeout(&self.config.rto) * (1 << self.sender.probes.min(16));
        doubled.max(least).min(most)
    }
}

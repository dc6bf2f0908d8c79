//! The fifth step of segment processing: the acknowledgement and the window in a segment (RFC 9293
//! §3.10.7.4, RFC 5961 §5).

use super::validate::Valid;
use super::validate::sequence::Text;
use crate::congestion::Acknowledged;
use crate::event::Events;
use crate::send::loss::TimerVerdict;
use crate::timers::Timer;
use crate::{Connection, State};
use core::hint::cold_path;
use linerate_units::{Duration, Instant};
use linerate_wire::{SackBlocks, SeqNum, TcpFlags};

impl Connection {
    /// Processes the acknowledgement and the window of a valid segment that lies in the receive
    /// window. `is_news` is true if the AccECN feedback in the segment is newer than that of
    /// earlier segments ([`Connection::brings_feedback`]).
    #[inline(always)]
    pub(super) fn process_segment_ack(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        text: &Text<'_>,
        is_news: bool,
    ) {
        let half_open = self.state == State::SynReceived;
        if half_open {
            self.process_ack_of_syn(now, segment);
        }
        let ack = segment.ack;
        let marks = self.newly_reported_marks(segment, is_news, half_open);
        if marks > 0 {
            self.answer_marks(
                now,
                segment,
                marks,
                half_open && !segment.flags().contains(TcpFlags::SYN),
            );
        }
        let before = self.snd.una;
        let duplicate = self.is_duplicate_ack(segment, text);
        self.statistics.duplicate_acks += u64::from(duplicate);
        let advanced = ack.after(self.snd.una);
        // If this acknowledgement reports a CE mark (`marks` is not zero), the mark has reduced the
        // congestion window. In that case, the acknowledgement must not enlarge the window at the
        // same time (RFC 3168 §6.1.2).
        if self.agreement.selective_acks || advanced {
            self.process_ack(now, segment, 1, Some(&segment.sack_blocks()), marks == 0);
        } else if duplicate {
            self.on_duplicate_ack();
        }
        if self.sender.path.is_asking() {
            let echo = self.timestamps.of(&segment).map(|timestamps| timestamps.echo);
            self.judge_path(now, before, echo);
        }
        self.update_window(segment);
        if advanced || duplicate {
            self.judge_timeout_in_order(now, advanced);
        }
        if self.sender.is_fin_acknowledged(self.snd.una) {
            self.on_fin_acknowledged(now);
        }
    }

    /// Processes a new acknowledgement in a segment that lies before the receive window. Such
    /// segments come from a peer that probes our closed window. It keeps using the sequence number
    /// of the probe's byte, even after we have accepted the byte. If we ignored their
    /// acknowledgements, we would retransmit data that has already arrived. The window in such a
    /// segment is ignored, because it may be outdated.
    pub(super) fn process_late_ack(&mut self, now: Instant, segment: Valid<'_>) {
        let ack = segment.ack;
        if ack.after(self.snd.una) {
            self.snd.wnd = self.snd.wnd.saturating_sub(ack - self.snd.una);
            self.process_ack(now, segment, 1, None, true);
            self.judge_timeout_in_order(now, true);
            if self.sender.is_fin_acknowledged(self.snd.una) {
                self.on_fin_acknowledged(now);
            }
        }
    }

    /// Completes the handshake by the acknowledgement of our SYN.
    pub(super) fn process_ack_of_syn(&mut self, now: Instant, segment: Valid<'_>) {
        // A client also gets here, after a simultaneous open. With Fast Open, its SYN may have
        // carried data, of which `ack` may acknowledge only a part.
        if self.fast_open.is_some() {
            self.acknowledge_data_of_syn(segment.ack);
        }
        self.establish(now, segment.ack);
    }

    /// Whether this is a duplicate ACK (RFC 5681 §2): it acknowledges nothing new, has no data,
    /// does not change the window, and data is in flight.
    ///
    /// If its SACK option reports a hole, an ACK counts as a duplicate even if it changes the
    /// window (RFC 6675 §2). A peer that tunes its buffer, such as Linux, enlarges the window with
    /// every segment. Without this exception, none of its ACKs would count as a duplicate.
    fn is_duplicate_ack(&self, segment: Valid<'_>, text: &Text<'_>) -> bool {
        segment.ack == self.snd.una
            && segment.payload.is_empty()
            && !text.fin
            && (self.scaled(segment.window) == self.snd.wnd || self.reports_a_hole(segment))
            && self.snd.flight() > 0
            // While the peer's window is closed, a repeated acknowledgement answers a window probe,
            // and does not report a loss.
            && self.snd.wnd > 0
    }

    /// Whether the SACK option reports data after a hole. It does not if the first block lies below
    /// the acknowledgement number, because such a block reports duplicate data (D-SACK, RFC 2883).
    fn reports_a_hole(&self, segment: Valid<'_>) -> bool {
        let blocks = segment.sack_blocks();
        let first = blocks.as_slice().first();
        self.agreement.selective_acks && first.is_some_and(|block| block.left.after(segment.ack))
    }

    /// Processes the acknowledgement of a valid segment, and its SACK blocks if `blocks` is set.
    /// The segment represents `count` coalesced acknowledgements. The congestion window grows if
    /// `may_grow` is true and the sender was cwnd-limited. Called for every acknowledgement of the
    /// slow path, and for those of the fast path that need more than the usual processing.
    pub(crate) fn process_ack(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        count: u32,
        blocks: Option<&SackBlocks>,
        may_grow: bool,
    ) {
        let advances = segment.ack.after(self.snd.una);
        if !self.agreement.selective_acks {
            if advances {
                self.process_ack_without_sack(now, segment, count, may_grow);
            }
            return;
        }
        let blocks = blocks.filter(|blocks| !blocks.is_empty());
        if blocks.is_none()
            && self.is_outside_recovery()
            && (!advances || self.process_ack_outside_recovery(now, segment, count, may_grow))
        {
            return;
        }
        let limited = may_grow && self.is_window_used();
        let mut news = self.ack_context(segment, count, limited);
        if advances {
            self.sender.scoreboard.acknowledge(segment.ack, &mut news.delivery);
            self.advance(now, segment.ack);
        }
        match blocks {
            Some(blocks) => self.take_blocks(now, blocks, &mut news),
            None => self.judge_news(now, &news, None),
        }
    }

    /// Processes a predicted acknowledgement of new data, which represents `count` coalesced
    /// acknowledgements. Loss recovery is skipped: a connection predicts headers only while no
    /// recovery is in progress.
    #[inline(always)]
    pub(super) fn process_predicted_ack(&mut self, now: Instant, segment: Valid<'_>, count: u32) {
        if !self.agreement.selective_acks
            || !self.process_ack_in_order(now, segment.ack, count, true)
        {
            self.process_ack(now, segment, count, None, true);
        }
    }

    /// Processes an acknowledgement of new data outside loss recovery by one of two fast paths. If
    /// no header is predicted, the first path handles an acknowledgement of our SYN or FIN alone.
    /// If a header is predicted, the second path handles an acknowledgement of data that has
    /// arrived at the peer in order. Returns false, without any effect, if that fast path does not
    /// apply.
    #[inline]
    fn process_ack_outside_recovery(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        count: u32,
        may_grow: bool,
    ) -> bool {
        if self.expectation.header() == 0 {
            return self.acknowledge_control_alone(now, segment);
        }
        self.process_ack_in_order(now, segment.ack, count, may_grow)
    }

    /// Processes an acknowledgement of new data from a peer without SACK.
    fn process_ack_without_sack(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        count: u32,
        may_grow: bool,
    ) {
        let limited = may_grow && self.is_window_used();
        let round_trip = self.measure_round_trip(now, segment);
        let acknowledged = Acknowledged {
            bytes: segment.ack - self.snd.una,
            count,
            number: segment.ack,
            sent: self.snd.max,
            now,
            smoothed: self.sender.rtt.smoothed(),
            round_trip,
            lost: 0,
            in_flight: self.snd.max - segment.ack,
            sample: None,
        };
        let verdict = self.judge_new_ack(&acknowledged, limited);
        self.advance(now, segment.ack);
        self.restart_flight_timer(now, verdict);
        self.output_due |= self.sender.has_unsent(self.snd.nxt) || self.sender.loss.retransmit_due;
    }

    /// Advances SND.UNA to `ack`, and removes the acknowledged data from the send buffer.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant, ack: SeqNum) {
        let released = self.sender.buffer.release_to(ack);
        if released > 0 {
            self.statistics.bytes_acknowledged += released as u64;
            if self.sender.room_awaited {
                self.events |= Events::WRITABLE;
                self.sender.room_awaited = self.sender.buffer.len() > 0;
            }
            if self.sender.buffer.len() == 0 {
                self.note_all_acknowledged(now);
            }
        }
        self.advance_without_data(now, ack);
    }

    /// Advances SND.UNA to `ack`, which acknowledges our SYN or FIN but no data.
    #[inline(always)]
    pub(crate) fn advance_without_data(&mut self, now: Instant, ack: SeqNum) {
        self.snd.una = ack;
        self.snd.nxt = self.snd.nxt.later(ack);
        if self.sender.urgent.is_some_and(|mark| !mark.after(ack)) {
            self.sender.urgent = None;
        }
        // `small_end` must not precede SND.UNA. If it stayed behind by more than half the sequence
        // space, comparisons of sequence numbers would take it for a number after SND.UNA.
        self.sender.small_end = self.sender.small_end.later(ack);
        self.sender.silent_since = Instant::NEVER;
        self.sender.unreachable = false;
        self.sender.expiries = 0;
        self.sender.progressed = now;
    }

    /// Whether the sender was cwnd-limited. An unused congestion window must not grow (RFC 7661
    /// §4.1).
    ///
    /// If several acknowledgements arrive together, the first of them makes room in the window
    /// before the next one is processed. Therefore the window also counts as used if it was full at
    /// the most recent time when data could be sent. In slow start, a flight that has filled the
    /// window makes it count as used for all acknowledgements of this flight.
    pub(crate) fn is_window_used(&self) -> bool {
        self.sender.is_window_used(self.in_flight(), self.full_segment(), self.snd.nxt)
    }

    /// Whether the congestion window has no room for another full segment.
    pub(crate) fn is_window_full(&self) -> bool {
        let cwnd = self.sender.congestion.window().cwnd();
        self.in_flight() + self.full_segment() > cwnd
    }

    /// Returns the number of bytes in flight: with SACK, the estimate of data in the network
    /// (pipe); otherwise the unacknowledged bytes.
    pub(crate) fn in_flight(&self) -> u32 {
        if self.agreement.selective_acks {
            self.sender.scoreboard.in_flight()
        } else {
            self.snd.flight()
        }
    }

    /// Returns the number of retransmitted bytes in flight. Without SACK, all unacknowledged bytes
    /// before the end of the most recent retransmission are counted.
    pub(crate) fn repeated_in_flight(&self) -> u32 {
        if self.agreement.selective_acks {
            return self.sender.scoreboard.repeated_in_flight();
        }
        self.sender.loss.repeated_to.later(self.snd.una).earlier(self.snd.nxt.later(self.snd.una))
            - self.snd.una
    }

    /// Passes an acknowledgement to the round-trip estimator. Returns the round-trip time that the
    /// echoed timestamp of the segment shows, if it echoes one.
    fn measure_round_trip(&mut self, now: Instant, segment: Valid<'_>) -> Option<Duration> {
        let round_trip = self.timestamps.echoed_round_trip(&segment, now);
        self.sender.rtt.on_acknowledged(&self.config.rto, segment.ack, || round_trip, now);
        round_trip
    }

    /// Restarts or stops the retransmission timer after an acknowledgement (RFC 6298 (5.2), (5.3)).
    fn restart_flight_timer(&mut self, now: Instant, verdict: TimerVerdict) {
        if self.snd.flight() == 0 {
            self.timers.clear(Timer::Retransmit);
            self.watch_idle_buffers(now);
        } else if verdict == TimerVerdict::Restart {
            self.timers.set(Timer::Retransmit, now, self.sender.rtt.timeout(&self.config.rto));
        }
    }

    /// Updates the peer's window, unless the present value comes from a newer segment (SND.WL1,
    /// SND.WL2).
    #[inline(always)]
    pub(super) fn update_window(&mut self, segment: Valid<'_>) {
        if self.snd.wnd == 0 {
            cold_path();
            // A peer that answers our probes is alive, even if it keeps its window closed. The time
            // without an answer therefore ends here.
            self.sender.silent_since = Instant::NEVER;
        }
        let (seq, ack) = (segment.seq, segment.ack);
        let newer = self.snd.wl1.before(seq) || (self.snd.wl1 == seq && !self.snd.wl2.after(ack));
        if newer && !ack.before(self.snd.una) {
            self.note_window(seq, ack, self.scaled(segment.window));
        }
    }

    /// Sets SND.WND to `wnd` bytes, as announced by a segment with the sequence number `seq` and
    /// the acknowledgement number `ack`.
    #[inline(always)]
    pub(crate) fn note_window(&mut self, seq: SeqNum, ack: SeqNum, wnd: u32) {
        self.snd.wl1 = seq;
        self.snd.wl2 = ack;
        if wnd == self.snd.wnd {
            return;
        }
        self.snd.wnd = wnd;
        self.snd.max_wnd = self.snd.max_wnd.max(wnd);
        self.output_due |= self.sender.has_unsent(self.snd.nxt);
        if wnd == 0 {
            self.statistics.zero_windows_received += 1;
        }
    }

    /// Returns the window in bytes that the window field of a segment announces.
    pub(crate) fn scaled(&self, window: u16) -> u32 {
        u32::from(window) << self.agreement.send_shift
    }
}

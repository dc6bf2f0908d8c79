//! Fifth step: what the segment acknowledges, and the window it announces (RFC 9293 §3.10.7.4,
//! RFC 5961 §5).

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
    /// Takes what a valid segment in the window acknowledges, and the window that it announces. `is_news`
    /// is what [`Connection::brings_feedback`] says.
    #[inline(always)]
    pub(super) fn take_ack(
        &mut self,
        now: Instant,
        segment: Valid<'_>,
        text: &Text<'_>,
        is_news: bool,
    ) {
        let half_open = self.state == State::SynReceived;
        if half_open {
            self.take_ack_of_syn(now, segment);
        }
        let ack = segment.ack;
        let marks = self.marks_told(segment, is_news, half_open);
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
        // A window whose use was found to be too much does not grow (RFC 3168 §6.1.2).
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

    /// An old segment may bear a new acknowledgement: the peer has probed our closed window with a
    /// byte, does not know yet that we took it, and acknowledges from where it believes to be. We would
    /// send again for nothing what it has. Its window is old, so the edge of ours stays where it was.
    pub(super) fn take_late_ack(&mut self, now: Instant, segment: Valid<'_>) {
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

    /// The acknowledgement of our SYN completes the handshake.
    pub(super) fn take_ack_of_syn(&mut self, now: Instant, segment: Valid<'_>) {
        // Of an end that has opened, too, at the same time.
        if self.fast_open.is_some() {
            self.settle_data_of_syn(segment.ack);
        }
        self.establish(now, segment.ack);
    }

    /// RFC 5681 §2: nothing new acknowledged, no data, no change of window, and something in flight.
    ///
    /// Where the peer names what it has beyond a hole, the window may change (RFC 6675 §2): one that
    /// tunes its buffer, as Linux does, opens it with every segment that arrives, and would never be
    /// heard to repeat itself.
    fn is_duplicate_ack(&self, segment: Valid<'_>, text: &Text<'_>) -> bool {
        segment.ack == self.snd.una
            && segment.payload.is_empty()
            && !text.fin
            && (self.scaled(segment.window) == self.snd.wnd || self.is_told_of_a_hole(segment))
            && self.snd.flight() > 0
            // The answers to window probes say the same thing again and again.
            && self.snd.wnd > 0
    }

    /// Does the segment name data beyond what it acknowledges? A first block below that tells of data
    /// that came twice (RFC 2883).
    fn is_told_of_a_hole(&self, segment: Valid<'_>) -> bool {
        let blocks = segment.sack_blocks();
        let first = blocks.as_slice().first();
        self.agreement.selective_acks && first.is_some_and(|block| block.left.after(segment.ack))
    }

    /// Processes what a valid segment acknowledges, and the `blocks` of its selective acknowledgements if
    /// they are to be read. It stands for `count` acknowledgements. The congestion window grows if it
    /// `may_grow` and was used. Every acknowledgement is processed here, on the fast path and on the slow
    /// one.
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
            && self.is_untroubled()
            && (!advances || self.process_ack_of_untroubled(now, segment, count, may_grow))
        {
            return;
        }
        let limited = may_grow && self.is_window_used();
        let mut news = self.listen_to(segment, count, limited);
        if advances {
            self.sender.scoreboard.acknowledge(segment.ack, &mut news.delivery);
            self.advance(now, segment.ack);
        }
        match blocks {
            Some(blocks) => self.take_blocks(now, blocks, &mut news),
            None => self.judge_news(now, &news, None),
        }
    }

    /// Processes a predicted acknowledgement of something new, which stands for `count`. A connection that
    /// predicts its next header misses nothing.
    #[inline(always)]
    pub(super) fn process_predicted_ack(&mut self, now: Instant, segment: Valid<'_>, count: u32) {
        if !self.agreement.selective_acks
            || !self.process_ack_in_order(now, segment.ack, count, true)
        {
            self.process_ack(now, segment, count, None, true);
        }
    }

    /// Processes an acknowledgement of something new while nothing is missing, if that is short: of our SYN
    /// or FIN alone, or of data in order. False, and nothing has happened, if it is neither.
    #[inline]
    fn process_ack_of_untroubled(
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

    /// Processes an acknowledgement of something new from a peer that sends no selective ones.
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
        self.watch_flight(now, verdict);
        self.output_due |= self.sender.has_unsent(self.snd.nxt) || self.sender.loss.retransmit_due;
    }

    /// SND.UNA moves on to `ack`.
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
                self.end_business(now);
            }
        }
        self.advance_without_data(now, ack);
    }

    /// The same where none of the bytes before `ack` is data.
    #[inline(always)]
    pub(crate) fn advance_without_data(&mut self, now: Instant, ack: SeqNum) {
        self.snd.una = ack;
        self.snd.nxt = self.snd.nxt.later(ack);
        if self.sender.urgent.is_some_and(|mark| !mark.after(ack)) {
            self.sender.urgent = None;
        }
        // Kept beside `una`, or it would seem to lie ahead after half the circle.
        self.sender.small_end = self.sender.small_end.later(ack);
        self.sender.silent_since = Instant::NEVER;
        self.sender.unreachable = false;
        self.sender.expiries = 0;
        self.sender.progressed = now;
    }

    /// Was the congestion window, and not the application or the peer, what kept data back? A window
    /// that is not used must not grow (RFC 7661 §4.1). Of acknowledgements that come together, the
    /// first leaves the window open for as long as the others are judged: they count if data had to
    /// wait when we could last send. And of a flight that filled the window, in slow start, they all do,
    /// though nothing followed it.
    pub(crate) fn is_window_used(&self) -> bool {
        self.sender.is_window_used(self.in_flight(), self.full_segment(), self.snd.nxt)
    }

    /// Has the congestion window no room for a full segment?
    pub(crate) fn is_window_full(&self) -> bool {
        let cwnd = self.sender.congestion.window().cwnd();
        self.in_flight() + self.full_segment() > cwnd
    }

    /// What was sent and not acknowledged; with a peer that names what it has, the pipe: what is
    /// believed to be in the network.
    pub(crate) fn in_flight(&self) -> u32 {
        if self.agreement.selective_acks {
            self.sender.scoreboard.in_flight()
        } else {
            self.snd.flight()
        }
    }

    /// What of it was sent more than once. Without names for what has arrived: all up to where was last
    /// repeated.
    pub(crate) fn repeated_in_flight(&self) -> u32 {
        if self.agreement.selective_acks {
            return self.sender.scoreboard.repeated_in_flight();
        }
        self.sender.loss.repeated_to.later(self.snd.una).earlier(self.snd.nxt.later(self.snd.una))
            - self.snd.una
    }

    /// Takes the round trip into account, and returns what the timestamps say of it.
    fn measure_round_trip(&mut self, now: Instant, segment: Valid<'_>) -> Option<Duration> {
        let round_trip = self.timestamps.echoed_round_trip(&segment, now);
        self.sender.rtt.on_acknowledged(&self.config.rto, segment.ack, || round_trip, now);
        round_trip
    }

    /// RFC 6298 (5.2), (5.3).
    fn watch_flight(&mut self, now: Instant, verdict: TimerVerdict) {
        if self.snd.flight() == 0 {
            self.timers.clear(Timer::Retransmit);
            self.watch_idle_buffers(now);
        } else if verdict == TimerVerdict::Restart {
            self.timers.set(Timer::Retransmit, now, self.sender.rtt.timeout(&self.config.rto));
        }
    }

    /// Takes the announced window, unless an older segment brings it (SND.WL1, SND.WL2).
    #[inline(always)]
    pub(super) fn update_window(&mut self, segment: Valid<'_>) {
        if self.snd.wnd == 0 {
            cold_path();
            // A closed window that is spoken of is no silence, however long it lasts.
            self.sender.silent_since = Instant::NEVER;
        }
        let (seq, ack) = (segment.seq, segment.ack);
        let newer = self.snd.wl1.before(seq) || (self.snd.wl1 == seq && !self.snd.wl2.after(ack));
        if newer && !ack.before(self.snd.una) {
            self.note_window(seq, ack, self.scaled(segment.window));
        }
    }

    /// The peer allows `wnd` bytes beyond what it has acknowledged.
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

    /// SEG.WND in bytes.
    pub(crate) fn scaled(&self, window: u16) -> u32 {
        u32::from(window) << self.agreement.send_shift
    }
}

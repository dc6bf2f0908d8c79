//! Loss recovery with a peer that supports SACK. Acknowledgements are processed by the steps of RFC
//! 8985 §5 to §7. During recovery, they set the congestion window by the rules of RFC 6937.

use super::delivery::{Delivery, Newest};
use super::duplicates::DUPLICATE_THRESHOLD;
use super::frto::Frto;
use super::loss::{Loss, Phase};
use super::probe::TailProbe;
use super::prr::Prr;
use super::rack::{Rack, Tolerance};
use super::scoreboard::{Fate, InOrderArrival, SentRange, Verdict};
use crate::Connection;
use crate::congestion::{Acknowledged, FastRecovery};
use crate::input::validate::Valid;
use crate::options::before;
use crate::timers::Timer;
use linerate_units::{Duration, Instant};
use linerate_wire::{SackBlock, SackBlocks, SeqNum};

/// An acknowledgement, and the state of the sender before it was processed.
#[derive(Debug)]
pub(crate) struct News<'a> {
    pub(crate) segment: Valid<'a>,
    /// The number of coalesced acknowledgements that the segment represents.
    pub(crate) count: u32,
    /// Whether the acknowledgement advances SND.UNA.
    pub(crate) advanced: bool,
    /// Whether the sender was cwnd-limited when the acknowledgement arrived.
    pub(crate) limited: bool,
    /// FlightSize before the acknowledgement, in bytes.
    pub(crate) flight: u32,
    /// The data that the acknowledgement reports as delivered.
    pub(crate) delivery: Delivery,
}

impl Connection {
    /// Processes a predicted acknowledgement of some or all data in flight. Returns false, without
    /// any effect, if some of the acknowledged data was retransmitted or is not in the scoreboard.
    #[inline(never)]
    pub(crate) fn process_ack_in_order(
        &mut self,
        now: Instant,
        ack: SeqNum,
        count: u32,
        may_grow: bool,
    ) -> bool {
        self.process_ack_of_flight::<true>(now, ack, count, may_grow)
            || self.process_ack_of_part(now, ack, count, may_grow)
    }

    /// Processes the acknowledgement of our SYN or FIN, if nothing else was in flight and no data
    /// is missing. Returns whether it was processed. The acknowledgement gives a round-trip sample.
    /// It does not enlarge the congestion window, because a SYN or FIN is not data (RFC 5681 §3.1).
    pub(crate) fn acknowledge_control_alone(&mut self, now: Instant, segment: Valid<'_>) -> bool {
        let is_syn = self.snd.una == self.snd.iss;
        let departed = if is_syn {
            let is_alone = segment.ack == self.snd.iss + 1;
            if !is_alone {
                return false;
            }
            None
        } else {
            let is_alone = self.snd.una == self.sender.buffer.end()
                && self.sender.is_fin_acknowledged(segment.ack);
            let fin = self.sender.scoreboard.flight_until(segment.ack).filter(|_| is_alone);
            let Some(fin) = fin else { return false };
            let (sent, again) = (fin.send_record.sent, fin.send_record.again);
            self.sender.scoreboard.on_in_order_arrival();
            (!again).then_some(sent)
        };
        self.advance_without_data(now, segment.ack);
        if let Some(sent) = departed {
            let (rtt, round_trip) = (&mut self.sender.rtt, now.since(sent));
            rtt.measure(&self.config.rto, now, round_trip);
            rtt.note_shortest(now, round_trip);
        } else {
            self.measure_by_timestamp(now, segment);
        }
        if is_syn {
            self.note_progress_of_syn(now);
        }
        self.watch_what_is_left(now);
        true
    }

    /// Reports to congestion control that the handshake is complete, and schedules data that was
    /// written before.
    fn note_progress_of_syn(&mut self, now: Instant) {
        let ack = Acknowledged {
            bytes: 0,
            count: 1,
            number: self.snd.una,
            sent: self.snd.max,
            now,
            smoothed: self.sender.rtt.smoothed(),
            round_trip: None,
            lost: 0,
            in_flight: self.sender.scoreboard.in_flight(),
            sample: None,
        };
        self.sender.congestion.on_progress(&ack, false);
        self.output_due |= self.sender.has_unsent(self.snd.nxt);
    }

    /// Processes the SACK blocks of an acknowledgement.
    pub(crate) fn take_blocks(&mut self, now: Instant, blocks: &SackBlocks, news: &mut News<'_>) {
        let duplicate = duplicate_block(blocks.as_slice(), news.segment.ack);
        let beyond = &blocks.as_slice()[usize::from(duplicate.is_some())..];
        let mut beyond: [Option<SackBlock>; 4] =
            core::array::from_fn(|index| beyond.get(index).copied());
        // SACK blocks are processed in the order of sequence numbers. If a higher block were
        // processed first, the data of a lower block would count as reordered, even if it has
        // arrived first.
        beyond.sort_unstable_by_key(|block| {
            block.map_or(u32::MAX, |block| block.left - self.snd.una)
        });
        for block in beyond.into_iter().flatten() {
            self.sender.scoreboard.sack(block, &mut news.delivery);
        }
        self.judge_news(now, news, duplicate);
    }

    /// Returns `segment` together with the state of the sender at present. Must be called before
    /// `segment` is processed.
    #[inline(always)]
    pub(crate) fn ack_context<'a>(
        &self,
        segment: Valid<'a>,
        count: u32,
        limited: bool,
    ) -> News<'a> {
        News {
            segment,
            count,
            advanced: segment.ack.after(self.snd.una),
            limited,
            flight: self.flight_size(),
            delivery: Delivery::new(self.sender.rack.forward),
        }
    }

    /// Returns FlightSize (RFC 5681 §2) without the data that limited transmit has sent beyond the
    /// window. After a loss, the new window is computed from this value (RFC 6675 §5 step 4.2).
    fn flight_size(&self) -> u32 {
        self.snd.flight().min(self.sender.congestion.window().cwnd())
    }

    /// Whether no data is known to be missing and no tail loss probe is unanswered. If so, an
    /// acknowledgement without SACK blocks needs no loss detection.
    pub(crate) fn is_outside_recovery(&self) -> bool {
        let loss = &self.sender.loss;
        let is_probing = loss.tail_probe.is_some_and(|probe| !probe.is_answered());
        loss.phase == Phase::Open && self.sender.scoreboard.is_clean() && !is_probing
    }

    /// Processes an acknowledgement whose delivered data is known: measures the round-trip time,
    /// detects losses, and updates the window and the timers. `duplicate` is the data that a D-SACK
    /// block reports as received twice, if there is one.
    pub(crate) fn judge_news(
        &mut self,
        now: Instant,
        news: &News<'_>,
        duplicate: Option<SackBlock>,
    ) {
        let outside_recovery = self.is_outside_recovery() && duplicate.is_none();
        let round_trip = self.measure_delivery(now, news);
        self.observe_order(now, news);
        if let Some(block) = duplicate {
            self.note_duplicate(block);
        }
        let lost = if outside_recovery {
            0
        } else {
            self.look_for_arrival_of_reported(Some(&news.delivery));
            self.detect_losses(now)
        };
        let ack = self.summarize_ack(now, news, round_trip, lost);
        if outside_recovery {
            self.sender.congestion.on_progress(&ack, news.limited);
        } else {
            self.sender.congestion.controller().on_every_acknowledgement(&ack);
            self.process_ack_in_recovery(now, news, duplicate, &ack);
        }
        if news.advanced || news.delivery.bytes > 0 || lost > 0 {
            self.watch_what_is_left(now);
        }
        self.output_due |=
            self.sender.scoreboard.lost() > 0 || self.sender.has_unsent(self.snd.nxt);
    }

    /// Does the work of [`Self::process_ack_in_order`] for an acknowledgement that leaves data in
    /// flight, or whose data was sent in several bursts.
    #[inline(never)]
    fn process_ack_of_part(
        &mut self,
        now: Instant,
        ack: SeqNum,
        count: u32,
        may_grow: bool,
    ) -> bool {
        self.process_ack_of_flight::<false>(now, ack, count, may_grow)
    }

    /// Processes an acknowledgement of data that was sent once and has arrived in order. The caller
    /// has made sure that no data is missing. With `WHOLE`, the data in flight must be a single
    /// burst, of which all is acknowledged. In-order data cannot show reordering, so only the send
    /// records of its first and its final range are read. Returns false, without any effect, if
    /// some of the data was retransmitted or the condition of `WHOLE` does not hold.
    #[inline(always)]
    fn process_ack_of_flight<const WHOLE: bool>(
        &mut self,
        now: Instant,
        ack: SeqNum,
        count: u32,
        may_grow: bool,
    ) -> bool {
        let full = self.full_segment();
        let sender = &mut self.sender;
        let arrival = if WHOLE {
            let flight =
                sender.scoreboard.flight_until(ack).filter(|flight| !flight.send_record.again);
            flight.map(|flight| InOrderArrival { oldest: flight, newest: flight })
        } else {
            sender.scoreboard.in_order_arrival_until(ack)
        };
        let Some(InOrderArrival { oldest, newest }) = arrival else { return false };
        let bytes = ack - oldest.left;
        // No data is missing, so everything between SND.UNA and SND.NXT is in flight. With `WHOLE`,
        // `ack` covers all of it.
        let flight = if WHOLE { bytes } else { sender.scoreboard.in_flight() };
        let limited = may_grow && sender.is_window_used(flight, full, self.snd.nxt);
        sender.rtt.measure(&self.config.rto, now, now.since(oldest.send_record.sent));
        let round_trip = now.since(newest.send_record.sent);
        let shortest = sender.rtt.note_shortest(now, round_trip);
        sender.rack.on_in_order_arrival(&newest.send_record, ack, round_trip);
        let sample = sender.account.on_delivered(now, &newest.send_record, bytes, Some(shortest));
        if WHOLE {
            sender.scoreboard.on_in_order_arrival();
        } else {
            sender.scoreboard.remove_until(ack);
        }
        self.advance(now, ack);
        let news = Acknowledged {
            bytes,
            count,
            number: ack,
            sent: self.snd.max,
            now,
            smoothed: self.sender.rtt.smoothed(),
            round_trip: Some(round_trip),
            lost: 0,
            in_flight: flight - bytes,
            sample,
        };
        self.sender.congestion.on_progress(&news, limited);
        self.watch_what_is_left(now);
        self.output_due |= self.sender.has_unsent(self.snd.nxt);
        true
    }

    /// Returns this acknowledgement as input to congestion control. It has revealed the loss of
    /// `lost` bytes.
    #[inline(always)]
    fn summarize_ack(
        &mut self,
        now: Instant,
        news: &News<'_>,
        round_trip: Option<Duration>,
        lost: u32,
    ) -> Acknowledged {
        let shortest = self.sender.rtt.shortest();
        let newest = news.delivery.newest;
        let sample = newest.and_then(|Newest { send_record, .. }| {
            self.sender.account.on_delivered(now, &send_record, news.delivery.bytes, shortest)
        });
        Acknowledged {
            bytes: news.delivery.bytes,
            count: news.count,
            number: self.snd.una,
            sent: self.snd.max,
            now,
            smoothed: self.sender.rtt.smoothed(),
            round_trip,
            lost,
            in_flight: self.sender.scoreboard.in_flight(),
            sample,
        }
    }

    /// Sets the retransmission timer for the data in flight (RFC 6298 (5.2), (5.3), RFC 8985 §7.2).
    pub(super) fn watch_what_is_left(&mut self, now: Instant) {
        if self.snd.flight() == 0 {
            self.timers.clear(Timer::Retransmit);
            self.watch_idle_buffers(now);
        } else {
            self.watch_with_probe(now);
        }
    }

    /// Measures the round-trip time (RFC 6298) by the send records, and returns it for congestion
    /// control. Two of the delivered segments are measured. The retransmission timeout uses the
    /// oldest segment that was sent once, because its round-trip time includes the peer's ACK
    /// delay. Congestion control uses the newest segment. If all delivered segments were
    /// retransmitted, the echoed timestamp gives the sample, because it shows which copy was
    /// acknowledged (RFC 7323 §4.2).
    #[inline(always)]
    fn measure_delivery(&mut self, now: Instant, news: &News<'_>) -> Option<Duration> {
        if let Some(sent) = news.delivery.oldest_original {
            self.sender.rtt.measure(&self.config.rto, now, now.since(sent));
            let newest = news.delivery.newest.filter(|newest| !newest.send_record.again);
            let round_trip = now.since(newest.map_or(sent, |newest| newest.send_record.sent));
            self.sender.rtt.note_shortest(now, round_trip);
            return Some(round_trip);
        }
        if news.advanced {
            self.measure_by_timestamp(now, news.segment);
        }
        None
    }

    fn measure_by_timestamp(&mut self, now: Instant, segment: Valid<'_>) {
        let (rtt, timestamps) = (&mut self.sender.rtt, &self.timestamps);
        let echoed = || timestamps.echoed_round_trip(&segment, now);
        rtt.on_acknowledged(&self.config.rto, self.snd.una, echoed, now);
    }

    #[inline(always)]
    fn observe_order(&mut self, now: Instant, news: &News<'_>) {
        self.statistics.reorderings += u64::from(news.delivery.reordered);
        let shortest = self.sender.rtt.shortest();
        let (rack, timestamps) = (&mut self.sender.rack, &self.timestamps);
        rack.observe(now, &news.delivery, shortest, |sent| {
            timestamps
                .of(&news.segment)
                .is_some_and(|echo| before(echo.echo, timestamps.clock(sent)))
        });
    }

    /// Detects losses (RACK_detect_loss, RFC 8985 §6.2 step 5), and returns the number of lost
    /// bytes. Sets the reordering timer for data that may still arrive. If the segment that a held
    /// Packet Too Big report quotes is lost, the report is applied. The result is then zero,
    /// because the packet size and not congestion has caused the losses.
    pub(crate) fn detect_losses(&mut self, now: Instant) -> u32 {
        let is_report_open = self.is_reported(Fate::InFlight);
        let tolerance = self.tolerance();
        let mut wait = Duration::ZERO;
        let lost = self.mark_lost(|rack, range| rack.judge(now, range, &tolerance, &mut wait));
        if wait > Duration::ZERO {
            self.timers.set(Timer::Reorder, now, wait);
        } else {
            self.timers.clear(Timer::Reorder);
        }
        if is_report_open && self.is_reported(Fate::Lost) {
            self.apply_held_report(now);
            return 0;
        }
        lost
    }

    /// Marks the ranges that `judge` finds lost, and reports each of them to congestion control. A
    /// path MTU probe is not reported. Returns the number of lost bytes, without those of a probe.
    fn mark_lost(&mut self, mut judge: impl FnMut(&Rack, &SentRange) -> Verdict) -> u32 {
        let nxt = self.snd.nxt;
        let sender = &mut self.sender;
        let (rack, account, path) = (&sender.rack, &sender.account, &mut sender.path);
        // A path MTU probe that is lost outside recovery is assumed to be too large. This loss does
        // not indicate congestion, so it is not reported.
        let may_be_probe = sender.loss.phase == Phase::Open;
        let mut probed = 0;
        let controller = sender.congestion.controller();
        let mut found = 0;
        let lost = sender.scoreboard.mark_lost(|range| {
            let verdict = judge(rack, range);
            if verdict == Verdict::Lost && may_be_probe && path.is_probe(range.left, range.right) {
                path.miss_probe(nxt);
                probed += range.length();
            } else if verdict == Verdict::Lost {
                found += u64::from(range.length());
                controller.on_lost(&account.loss_of(range, found));
            }
            verdict
        });
        sender.account.note_lost(lost - probed);
        lost - probed
    }

    fn tolerance(&self) -> Tolerance {
        let recovering = self.sender.loss.phase != Phase::Open;
        let named = self.sender.scoreboard.sacked() >= DUPLICATE_THRESHOLD * self.full_segment();
        Tolerance {
            enough_evidence: recovering || named,
            shortest: self.sender.rtt.shortest().unwrap_or(Duration::ZERO),
            smoothed: self.sender.rtt.smoothed().unwrap_or(Duration::ZERO),
            resolution: self.config.rto.granularity - Duration::from_nanos(1),
        }
    }

    /// Handles the expiry of the reordering timer (RFC 8985 §6.2 step 5).
    pub(crate) fn on_reorder_timer(&mut self, now: Instant) {
        let flight = self.flight_size();
        let lost = self.detect_losses(now);
        self.output_due |= self.sender.scoreboard.lost() > 0;
        if lost > 0 {
            if self.sender.loss.phase == Phase::Open {
                self.enter_recovery(now, flight, 0);
            }
            self.follow_delivery(0, false);
            self.watch_with_probe(now);
        }
    }

    /// Handles a report that the peer has received `block` twice. Must be called before losses are
    /// detected, because it widens the reordering window (RFC 8985 §6.2 steps 4 and 5).
    #[cold]
    fn note_duplicate(&mut self, block: SackBlock) {
        self.statistics.duplicates_reported += 1;
        self.sender.rack.widen(self.snd.una, self.snd.nxt);
        self.sender.path.note_duplicate(block.left, block.right);
    }

    /// Handles an acknowledgement in four cases: data is missing, recovery is in progress, a tail
    /// loss probe is unanswered, or a D-SACK block reports a duplicate.
    fn process_ack_in_recovery(
        &mut self,
        now: Instant,
        news: &News<'_>,
        duplicate: Option<SackBlock>,
        ack: &Acknowledged,
    ) {
        let says_nothing_new =
            !news.advanced && news.delivery.bytes == 0 && news.segment.payload.is_empty();
        if self.judge_tail_probe(
            self.snd.una,
            duplicate,
            says_nothing_new,
            ack.round_trip.is_some(),
        ) {
            self.answer_repaired_loss(news.flight);
        }
        self.judge_recovery(now, news, duplicate);
        let phase = self.sender.loss.phase;
        let has_recovered = phase != Phase::Open && !self.snd.una.before(self.sender.loss.recover);
        if has_recovered {
            self.leave_recovery();
            if duplicate.is_none() {
                self.sender.rack.on_recovered();
            }
        }
        if self.sender.loss.phase == Phase::Open
            && ack.lost > 0
            && self.sender.scoreboard.lost() > 0
        {
            self.enter_recovery(now, news.flight, news.delivery.bytes);
        }
        // The acknowledgement that ends fast recovery has set the window to SSTHRESH. It must not
        // enlarge the window in addition (RFC 5681 §3.2 step 6).
        let ends_fast_recovery = has_recovered && phase == Phase::FastRecovery;
        if self.sender.loss.phase == Phase::FastRecovery {
            self.follow_delivery(news.delivery.bytes, news.advanced && ack.lost == 0);
        } else if news.advanced && !ends_fast_recovery {
            // While data is missing, only acknowledgements that advance SND.UNA enlarge the window.
            // A mere SACK, as for a reordered segment, does not.
            self.sender.congestion.controller().on_progress(ack, news.limited);
        }
    }

    /// Enters loss recovery (RFC 8985 §6.2 step 5, RFC 6675 §5 step 4). Reduces the congestion
    /// window, because it was too large when the lost data was sent.
    fn enter_recovery(&mut self, now: Instant, flight: u32, delivered: u32) {
        self.doubt_path(now);
        self.statistics.fast_retransmissions += 1;
        self.remember_for_undo();
        self.reduce_for_loss(flight, self.snd.una);
        let sacked = self.sender.scoreboard.sacked();
        self.sender.prr =
            Prr::begin((self.snd.nxt - self.snd.una - sacked).saturating_add(delivered));
        // With Tahoe, lost data is retransmitted in slow start, in the same phase as after a
        // timeout.
        let is_fast = self.sender.congestion.controller().fast_recovery() != FastRecovery::None;
        let loss = &mut self.sender.loss;
        loss.phase = if is_fast { Phase::FastRecovery } else { Phase::AfterTimeout };
        loss.retransmit_due |= !is_fast;
        loss.recover = self.snd.nxt;
        loss.tail_probe = None;
    }

    /// Reduces the congestion window for a loss of data at or after `end`. If a CE mark has already
    /// reduced the window for this data, the window is not reduced again, and the result is false
    /// (RFC 3168 §6.1.2). A controller that governs recovery is told of the loss in any case.
    pub(super) fn reduce_for_loss(&mut self, flight: u32, end: SeqNum) -> bool {
        let reduced_by_mark = self.is_reduced_by_mark(end);
        let controller = self.sender.congestion.controller();
        if !reduced_by_mark || controller.governs_recovery() {
            controller.on_loss(flight);
        }
        self.on_loss_noticed();
        !reduced_by_mark
    }

    /// Sets the congestion window during recovery by PRR (RFC 6937), unless the controller sets it.
    fn follow_delivery(&mut self, delivered: u32, safe: bool) {
        if self.sender.loss.phase != Phase::FastRecovery
            || self.sender.congestion.controller().governs_recovery()
        {
            return;
        }
        let pipe = self.sender.scoreboard.in_flight();
        let window = self.sender.congestion.window();
        let cwnd = self.sender.prr.window(delivered, pipe, window.ssthresh(), window.mss(), safe);
        self.sender.congestion.controller().window_mut().set(cwnd);
    }

    fn leave_recovery(&mut self) {
        let was_fast = self.sender.loss.phase == Phase::FastRecovery;
        let pipe = self.sender.scoreboard.in_flight();
        let controller = self.sender.congestion.controller();
        if controller.governs_recovery() {
            controller.on_recovered();
        } else if was_fast {
            controller.window_mut().end_recovery_without_burst(pipe);
        }
        self.sender.loss = Loss::new(self.sender.loss.recover);
    }

    /// Reduces the congestion window for a loss that a tail loss probe has repaired. Loss detection
    /// does not see such a loss, because the probe has arrived before it counted as lost (RFC 8985
    /// §7.4.2 case 3).
    fn answer_repaired_loss(&mut self, flight: u32) {
        // Evidence that an earlier recovery was spurious may still arrive. Undoing that recovery
        // would also cancel the reduction below, so the saved state is dropped.
        self.sender.undo = None;
        let end = self.sender.loss.tail_probe.map_or(self.snd.una, |probe| probe.end);
        let reduces = self.reduce_for_loss(flight, end);
        let controller = self.sender.congestion.controller();
        if controller.governs_recovery() {
            controller.on_recovered();
        } else if reduces {
            controller.window_mut().set_to_threshold_plus(0);
        }
    }

    /// Handles a retransmission timeout. Data in flight counts as lost, unless it was sent so
    /// recently that it may still arrive (RFC 8985 §6.3). If the peer has discarded data that it
    /// had SACKed, all SACKed data counts as not received (RFC 2018 §8).
    pub(super) fn recover_from_timeout(&mut self, now: Instant, first: bool) {
        if self.sender.scoreboard.is_reneged() {
            self.statistics.reneged += 1;
            self.sender.scoreboard.forget_sacks();
            self.sender.rack.forget_beyond(self.snd.una);
        }
        let flight = self.flight_size();
        // F-RTO is used for a timeout outside recovery, or if its own retransmission has timed out.
        // In any other recovery, segments were retransmitted already, so an acknowledgement of them
        // would not show that the timeout was spurious (RFC 5682 §3.1).
        let begins = self.sender.loss.phase == Phase::Open;
        let asks_again = self.sender.loss.frto == Frto::Retransmitted;
        if begins {
            self.remember_for_undo();
        }
        let controller = self.sender.congestion.controller();
        if first {
            controller.on_timeout(flight);
        } else {
            controller.restart();
        }
        self.mark_lost_after_timeout(now);
        self.sender.loss = Loss {
            phase: Phase::AfterTimeout,
            retransmit_due: true,
            frto: if self.config.frto && (begins || asks_again) {
                Frto::Retransmitted
            } else {
                Frto::Off
            },
            ..Loss::new(self.snd.nxt)
        };
        self.timers.clear(Timer::Reorder);
    }

    fn mark_lost_after_timeout(&mut self, now: Instant) {
        let (tolerance, una) = (self.tolerance(), self.snd.una);
        self.mark_lost(|rack, range| {
            let first = range.left == una;
            if first { Verdict::Lost } else { rack.judge_after_timeout(now, range, &tolerance) }
        });
    }

    /// Records that the range from `left` to `right` is sent now, new or retransmitted.
    pub(crate) fn note_transmission(&mut self, now: Instant, left: SeqNum, right: SeqNum) {
        let repeats = left.before(self.snd.nxt);
        let bytes = right - left;
        let probes_tail =
            core::mem::take(&mut self.sender.loss.tail_probe_due) && self.may_probe_tail();
        self.sender.record_sent(now, left, right, left.before(self.snd.max));
        if self.sender.loss.phase == Phase::FastRecovery {
            self.sender.prr.note_sent(bytes);
        }
        if repeats {
            if !probes_tail {
                self.sender.scoreboard.search_after(right);
            }
            self.note_retransmission(now, SackBlock { left, right });
        }
        if probes_tail {
            let order = self.sender.scoreboard.last_order();
            self.sender.loss.tail_probe = Some(TailProbe::new(order, right, repeats));
        }
    }
}

/// Returns the first block if it is a D-SACK block (RFC 2883 §4). Such a block lies below the
/// acknowledgement number `ack` of its segment, or within the second block. `ack` must not be
/// replaced by SND.UNA. If acknowledgements were reordered, SND.UNA may be higher, and a block of
/// this segment below it would wrongly count as a duplicate (§5).
fn duplicate_block(blocks: &[SackBlock], ack: SeqNum) -> Option<SackBlock> {
    let first = *blocks.first()?;
    let below = !first.right.after(ack);
    let inside = blocks.get(1).is_some_and(|second| {
        first.left.all_within(first.right - first.left, second.left, second.right - second.left)
    });
    (below || inside).then_some(first)
}

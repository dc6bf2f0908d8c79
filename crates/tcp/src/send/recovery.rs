//! Loss recovery with a peer that names what it has: what one acknowledgement means, in the order of RFC
//! 8985 §5 to §7, and what follows for the window (RFC 6937).

use super::delivery::{Delivery, Newest};
use super::duplicates::DUPLICATE_THRESHOLD;
use super::frto::Frto;
use super::loss::{Loss, Phase};
use super::probe::TailProbe;
use super::prr::Prr;
use super::rack::{Rack, Tolerance};
use super::scoreboard::{Fate, Landing, SentRange, Verdict};
use crate::Connection;
use crate::congestion::{Acknowledged, FastRecovery};
use crate::input::validate::Valid;
use crate::options::before;
use crate::timers::Timer;
use linerate_units::{Duration, Instant};
use linerate_wire::{SackBlock, SackBlocks, SeqNum};

/// One acknowledgement, and what was known when it came.
#[derive(Debug)]
pub(crate) struct News<'a> {
    pub(crate) segment: Valid<'a>,
    /// Acknowledgements that it stands for.
    pub(crate) count: u32,
    /// It moved SND.UNA.
    pub(crate) advanced: bool,
    /// The congestion window had held us back.
    pub(crate) limited: bool,
    /// FlightSize before it.
    pub(crate) flight: u32,
    /// What has arrived.
    pub(crate) delivery: Delivery,
}

impl Connection {
    /// Processes an acknowledgement of a part or all of the flight, in a connection that predicts its next
    /// header, if it is an acknowledgement of data that were sent once and are still in the scoreboard as
    /// they left. False, and nothing has happened, if not.
    #[inline(never)]
    pub(crate) fn process_ack_in_order(
        &mut self,
        now: Instant,
        ack: SeqNum,
        count: u32,
        may_grow: bool,
    ) -> bool {
        self.land::<true>(now, ack, count, may_grow)
            || self.take_landing_of_part(now, ack, count, may_grow)
    }

    /// Takes the acknowledgement of our SYN or of our FIN, if that alone was in flight and nothing is missing. It is no
    /// data: it tells of the round trip, and the window does not grow for it (RFC 5681 §3.1).
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

    /// The congestion control hears that the handshake is over, and what was written before may leave.
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

    pub(crate) fn take_blocks(&mut self, now: Instant, blocks: &SackBlocks, news: &mut News<'_>) {
        let duplicate = duplicate_block(blocks.as_slice(), news.segment.ack);
        let beyond = &blocks.as_slice()[usize::from(duplicate.is_some())..];
        let mut beyond: [Option<SackBlock>; 4] =
            core::array::from_fn(|index| beyond.get(index).copied());
        // In the order of their numbers, or what arrived in one batch would look reordered.
        beyond.sort_unstable_by_key(|block| {
            block.map_or(u32::MAX, |block| block.left - self.snd.una)
        });
        for block in beyond.into_iter().flatten() {
            self.sender.scoreboard.sack(block, &mut news.delivery);
        }
        self.judge_news(now, news, duplicate);
    }

    /// What was known when `segment` came.
    #[inline(always)]
    pub(crate) fn listen_to<'a>(&self, segment: Valid<'a>, count: u32, limited: bool) -> News<'a> {
        News {
            segment,
            count,
            advanced: segment.ack.after(self.snd.una),
            limited,
            flight: self.flight_size(),
            delivery: Delivery::new(self.sender.rack.forward),
        }
    }

    /// FlightSize (RFC 5681 §2), without what the pipe let go beyond the window as limited transmit: what is
    /// reduced when something is lost (RFC 6675 §5 step 4.2).
    fn flight_size(&self) -> u32 {
        self.snd.flight().min(self.sender.congestion.window().cwnd())
    }

    /// Is nothing missing, as far as is known, and no question open? Then an acknowledgement in order
    /// is all there is to it.
    pub(crate) fn is_outside_recovery(&self) -> bool {
        let loss = &self.sender.loss;
        let is_probing = loss.tail_probe.is_some_and(|probe| !probe.is_answered());
        loss.phase == Phase::Open && self.sender.scoreboard.is_clean() && !is_probing
    }

    /// What was delivered, and lost, and what it means for the window and the timers. Both paths end
    /// here.
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
        let ack = self.reckon(now, news, round_trip, lost);
        if outside_recovery {
            self.sender.congestion.on_progress(&ack, news.limited);
        } else {
            self.sender.congestion.controller().on_every_acknowledgement(&ack);
            self.judge_trouble(now, news, duplicate, &ack);
        }
        if news.advanced || news.delivery.bytes > 0 || lost > 0 {
            self.watch_what_is_left(now);
        }
        self.output_due |=
            self.sender.scoreboard.lost() > 0 || self.sender.has_unsent(self.snd.nxt);
    }

    /// [Lands](Self::land) an acknowledgement that leaves a part of the flight under way, or of a flight that
    /// left at several times.
    #[inline(never)]
    fn take_landing_of_part(
        &mut self,
        now: Instant,
        ack: SeqNum,
        count: u32,
        may_grow: bool,
    ) -> bool {
        self.land::<false>(now, ack, count, may_grow)
    }

    /// Nothing is missing, and nothing of what arrives was sent again: so nothing of it came out of order, and what it tells
    /// is read where it lies.
    #[inline(always)]
    fn land<const WHOLE: bool>(
        &mut self,
        now: Instant,
        ack: SeqNum,
        count: u32,
        may_grow: bool,
    ) -> bool {
        let full = self.full_segment();
        let sender = &mut self.sender;
        let landing = if WHOLE {
            let flight =
                sender.scoreboard.flight_until(ack).filter(|flight| !flight.send_record.again);
            flight.map(|flight| Landing { oldest: flight, newest: flight })
        } else {
            sender.scoreboard.landing_until(ack)
        };
        let Some(Landing { oldest, newest }) = landing else { return false };
        let bytes = ack - oldest.left;
        // Nothing is missing, so all of the flight is on its way.
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
            sender.scoreboard.note_landing_until(ack);
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

    /// What the congestion control is told, `lost` bytes of which were found lost.
    #[inline(always)]
    fn reckon(
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

    /// The timer of what is still in flight (RFC 6298 (5.2), (5.3), RFC 8985 §7.2).
    pub(super) fn watch_what_is_left(&mut self, now: Instant) {
        if self.snd.flight() == 0 {
            self.timers.clear(Timer::Retransmit);
            self.watch_idle_buffers(now);
        } else {
            self.watch_with_probe(now);
        }
    }

    /// RFC 6298 with the send records of segments: for the timeout the oldest that was sent once, whose
    /// round trip holds the peer's delay, for the congestion control the newest. Where all were sent twice
    /// a timestamp tells which copy is meant (RFC 7323 §4.2).
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

    /// RACK_detect_loss (RFC 8985 §6.2 step 5): how many bytes. The timer looks again at what may yet
    /// arrive. None were lost by congestion if they show that a report of a narrow path is true.
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

    /// Marks as lost what `judge` says so of, and tells the congestion control of each range: how many
    /// bytes.
    fn mark_lost(&mut self, mut judge: impl FnMut(&Rack, &SentRange) -> Verdict) -> u32 {
        let nxt = self.snd.nxt;
        let sender = &mut self.sender;
        let (rack, account, path) = (&sender.rack, &sender.account, &mut sender.path);
        // A probe of the path that is lost alone tells of the path's width and of no congestion.
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

    /// The time that reordering may take has passed.
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

    /// The peer reports that it has received `block` twice. The reordering window widens before losses are detected
    /// (RFC 8985 §6.2 steps 4 and 5).
    #[cold]
    fn note_duplicate(&mut self, block: SackBlock) {
        self.statistics.duplicates_reported += 1;
        self.sender.rack.widen(self.snd.una, self.snd.nxt);
        self.sender.path.note_duplicate(block.left, block.right);
    }

    /// Something is missing, or was, or an answer to a probe is due.
    fn judge_trouble(
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
        // The acknowledgement that ends fast recovery sets the window to SSTHRESH, and does not open it besides (RFC 5681
        // §3.2 step 6).
        let ends_fast_recovery = has_recovered && phase == Phase::FastRecovery;
        if self.sender.loss.phase == Phase::FastRecovery {
            self.follow_delivery(news.delivery.bytes, news.advanced && ack.lost == 0);
        } else if news.advanced && !ends_fast_recovery {
            // What arrives beyond a hole does not open the window, or a late segment would.
            self.sender.congestion.controller().on_progress(ack, news.limited);
        }
    }

    /// RFC 8985 §6.2 step 5, RFC 6675 §5 step 4: a loss, and the window that was in use when it
    /// happened is too large.
    fn enter_recovery(&mut self, now: Instant, flight: u32, delivered: u32) {
        self.doubt_path(now);
        self.statistics.fast_retransmissions += 1;
        self.remember_for_undo();
        self.reduce_for_loss(flight, self.snd.una);
        let sacked = self.sender.scoreboard.sacked();
        self.sender.prr =
            Prr::begin((self.snd.nxt - self.snd.una - sacked).saturating_add(delivered));
        // Tahoe fills the holes in slow start, as it would after a timeout.
        let is_fast = self.sender.congestion.controller().fast_recovery() != FastRecovery::None;
        let loss = &mut self.sender.loss;
        loss.phase = if is_fast { Phase::FastRecovery } else { Phase::AfterTimeout };
        loss.retransmit_due |= !is_fast;
        loss.recover = self.snd.nxt;
        loss.tail_probe = None;
    }

    /// What a loss behind `end`, or of what ends there, means for the window, unless a congestion mark has
    /// reduced it for the same data (RFC 3168 §6.1.2): whether it has not.
    pub(super) fn reduce_for_loss(&mut self, flight: u32, end: SeqNum) -> bool {
        let reduced_by_mark = self.is_reduced_by_mark(end);
        let controller = self.sender.congestion.controller();
        if !reduced_by_mark || controller.governs_recovery() {
            controller.on_loss(flight);
        }
        self.on_loss_noticed();
        !reduced_by_mark
    }

    /// The window during recovery, unless the controller knows better.
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

    /// A tail probe has repaired a loss that nobody else will notice (RFC 8985 §7.4.2 case 3).
    fn answer_repaired_loss(&mut self, flight: u32) {
        // What a late duplicate tells of an earlier recovery does not take this reduction back.
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

    /// The timer expired: everything counts as lost but what left so recently that it may still arrive
    /// (RFC 8985 §6.3). A peer that has thrown away what it had named is not believed any more (RFC 2018
    /// §8).
    pub(super) fn recover_from_timeout(&mut self, now: Instant, first: bool) {
        if self.sender.scoreboard.is_reneged() {
            self.statistics.reneged += 1;
            self.sender.scoreboard.forget_sacks();
            self.sender.rack.forget_beyond(self.snd.una);
        }
        let flight = self.flight_size();
        // In a recovery F-RTO could not tell late segments from lost ones (RFC 5682 §3.1).
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

    /// `left` up to `right` leaves now: the scoreboard remembers it.
    pub(crate) fn note_departure(&mut self, now: Instant, left: SeqNum, right: SeqNum) {
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

/// The block that tells of data received twice, if the first one does (RFC 2883 §4): it lies below the
/// acknowledgement beside it, or inside the second. SND.UNA may be further on, and then a block that was
/// news when it left would look like one (§5).
fn duplicate_block(blocks: &[SackBlock], ack: SeqNum) -> Option<SackBlock> {
    let first = *blocks.first()?;
    let below = !first.right.after(ack);
    let inside = blocks.get(1).is_some_and(|second| {
        first.left.all_within(first.right - first.left, second.left, second.right - second.left)
    });
    (below || inside).then_some(first)
}

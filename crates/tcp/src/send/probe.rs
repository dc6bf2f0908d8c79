//! Tail loss probe: after the last segment of a burst nothing follows that could show its loss, so one
//! more is sent before the timer would cost the whole window (RFC 8985 §7).

use super::loss::Phase;
use super::rack::Rack;
use crate::Connection;
use crate::rest::pack::packed;
use crate::timers::Timer;
use linerate_units::{Duration, Instant};
use linerate_wire::SackBlock;
use linerate_wire::SeqNum;

/// How long a peer may hold back the acknowledgement of a single segment (TLP.max_ack_delay).
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(200);

/// The least that a probe waits: below that, a thread that was not scheduled would look like a loss.
const LEAST_PROBE_TIMEOUT: Duration = Duration::from_millis(5);

/// A probe that has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailProbe {
    /// TLP.end_seq: the end of what it carried.
    pub(crate) end: SeqNum,
    /// TLP.is_retrans: it carried something old.
    pub(crate) again: bool,
    /// Its place in the order of departures.
    order: u64,
    /// What it has found out is known.
    answered: bool,
    /// A round trip was measured before that.
    measured: bool,
}

packed!(TailProbe { end, again, order, answered, measured });

impl TailProbe {
    pub(crate) const fn new(order: u64, end: SeqNum, again: bool) -> Self {
        Self { end, again, order, answered: false, measured: false }
    }

    pub(crate) const fn is_answered(&self) -> bool {
        self.answered
    }

    /// May another follow: was a round trip measured since this one left (§7.3)?
    fn allows_another(&self, rack: &Rack) -> bool {
        self.answered && (self.measured || rack.has_arrived_after(self.order, self.end))
    }
}

/// How long after the last segment a probe leaves, where the peer may hold back what acknowledges it for `delay`.
#[inline]
fn probe_after(smoothed: Duration, delay: Duration) -> Duration {
    (smoothed * 2 + delay).max(LEAST_PROBE_TIMEOUT)
}

impl Connection {
    /// Restarts the timer for what is in flight: for a probe of its tail if one is allowed and would come first, else for
    /// the timeout.
    #[inline]
    pub(crate) fn watch_with_probe(&mut self, now: Instant) {
        let timeout = self.sender.rtt.timeout(&self.config.rto);
        let probe = self.probe_timeout().filter(|&probe| probe < timeout);
        self.sender.loss.probes_tail = probe.is_some();
        self.sender.loss.probes_single = self.is_single_in_flight();
        self.timers.set(Timer::Retransmit, now, probe.unwrap_or(timeout));
    }

    /// The same for a segment that is alone in flight, of a connection that misses nothing, whose peer names what it
    /// has: only the round trip, and an earlier probe, can forbid one.
    #[inline(always)]
    pub(crate) fn watch_alone(&mut self, now: Instant) {
        let sender = &mut self.sender;
        let timeout = sender.rtt.timeout(&self.config.rto);
        // Over a short path the timeout comes first, whatever else there is.
        let may_probe = timeout > LONGEST_ACK_DELAY
            && sender.rtt.backoff() == 0
            && sender.loss.tail_probe.is_none_or(|probe| probe.allows_another(&sender.rack));
        let smoothed = sender.rtt.smoothed().filter(|_| may_probe);
        let probe =
            smoothed.map_or(Duration::MAX, |smoothed| probe_after(smoothed, LONGEST_ACK_DELAY));
        sender.loss.probes_tail = probe < timeout;
        sender.loss.probes_single = true;
        self.timers.set(Timer::Retransmit, now, probe.min(timeout));
    }

    /// Nothing more leaves for now. If new data has left since the timer was set, the probe of its tail waits from now on
    /// (§7.2). If the timer was set just now, it may have been for a single segment, whose acknowledgement may be held
    /// back.
    #[inline]
    pub(crate) fn watch_tail(&mut self, now: Instant) {
        let is_older = self.sender.progressed != now && self.sender.account.delivered_at() != now;
        if (is_older || self.is_single_no_more()) && self.sender.last_sent == now {
            self.restart_probe(now);
        }
    }

    /// When the timeout began that is in force while nothing is missing: with the last acknowledgement of new data, or
    /// with the first segment of the flight (RFC 6298 (5.1), (5.3)).
    fn timeout_began(&self) -> Instant {
        self.sender.progressed.max(self.sender.account.delivered_at())
    }

    /// Was the timer set for a single segment, and are more in flight now?
    #[inline]
    fn is_single_no_more(&self) -> bool {
        self.sender.loss.probes_single && !self.is_single_in_flight()
    }

    /// The probe's time begins anew; the timeout's does not (TCP_RTO_expiration).
    #[inline(never)]
    fn restart_probe(&mut self, now: Instant) {
        let timeout = self.timeout_began() + self.sender.rtt.timeout(&self.config.rto);
        if let Some(probe) = self.probe_timeout()
            && self.timers.is_set(Timer::Retransmit)
            && timeout > now
        {
            self.sender.loss.probes_tail = now + probe < timeout;
            self.sender.loss.probes_single = false;
            self.timers.set(Timer::Retransmit, now, probe.min(timeout.since(now)));
        }
    }

    /// TLP_calc_PTO (§7.2); `None` where a probe could tell nothing.
    #[inline]
    fn probe_timeout(&self) -> Option<Duration> {
        let loss = &self.sender.loss;
        let smoothed = self.sender.rtt.smoothed()?;
        let allowed = self.agreement.selective_acks
            && loss.phase == Phase::Open
            && loss.tail_probe.is_none_or(|probe| probe.allows_another(&self.sender.rack))
            && self.sender.scoreboard.is_clean()
            && self.sender.rtt.backoff() == 0
            && self.state.is_synchronized();
        let delay = if self.is_single_in_flight() { LONGEST_ACK_DELAY } else { Duration::ZERO };
        allowed.then(|| probe_after(smoothed, delay))
    }

    fn is_single_in_flight(&self) -> bool {
        self.sender.scoreboard.in_flight() <= self.full_segment()
    }

    /// The timer has expired for a probe: it leaves, if it may, and the timer now stands for the timeout.
    pub(super) fn probe_tail(&mut self, now: Instant) {
        self.sender.loss.probes_tail = false;
        if self.sender.scoreboard.in_flight() > 0 && self.may_probe_tail() {
            self.statistics.tail_probes += 1;
            self.sender.loss.tail_probe_due = true;
            self.output_due = true;
        }
        self.timers.set(Timer::Retransmit, now, self.sender.rtt.timeout(&self.config.rto));
    }

    /// Is nothing known to be lost? What is, perhaps by a router's report since the timer was set, goes again without a probe,
    /// and before it.
    pub(crate) fn may_probe_tail(&self) -> bool {
        self.sender.scoreboard.lost() == 0
    }

    /// TLP_process_ack (§7.4.2): what an acknowledgement says of the probe, and whether it `measured` a
    /// round trip. True if the probe itself has repaired a loss, which the congestion control must hear
    /// of.
    pub(super) fn judge_tail_probe(
        &mut self,
        ack: SeqNum,
        duplicate: Option<SackBlock>,
        says_nothing_new: bool,
        measured: bool,
    ) -> bool {
        let Some(probe) = self.sender.loss.tail_probe.as_mut().filter(|probe| !probe.answered)
        else {
            return false;
        };
        probe.measured |= measured;
        if ack.before(probe.end) {
            return false;
        }
        let both_copies_arrived = duplicate.is_some_and(|block| block.right == probe.end);
        let repaired = probe.again && !both_copies_arrived && ack.after(probe.end);
        probe.answered = !probe.again || both_copies_arrived || repaired || says_nothing_new;
        repaired
    }
}

//! Tail loss probes (TLP, RFC 8985 §7). If the final segment of a flight is lost, no segments after
//! it reveal the loss. The retransmission timeout would reduce the congestion window to one
//! segment, so a probe is sent before it.

use super::loss::Phase;
use super::rack::Rack;
use crate::Connection;
use crate::compact::pack::packed;
use crate::timers::Timer;
use linerate_units::{Duration, Instant};
use linerate_wire::SackBlock;
use linerate_wire::SeqNum;

/// The longest time for which a peer is assumed to delay the acknowledgement of a single segment
/// (TLP.max_ack_delay).
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(200);

/// The minimum probe timeout. If the thread of the receiver is scheduled late, its acknowledgement
/// is late as well. With a shorter timeout, this would look like a loss.
const LEAST_PROBE_TIMEOUT: Duration = Duration::from_millis(5);

/// A tail loss probe that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailProbe {
    /// TLP.end_seq: the end of the probe's data.
    pub(crate) end: SeqNum,
    /// TLP.is_retrans: whether the probe was a retransmission.
    pub(crate) again: bool,
    /// The number of the probe's transmission, see [`SendRecord`](super::delivery::SendRecord).
    order: u64,
    /// Whether the result of the probe is known: either it has repaired a loss, or nothing was
    /// lost.
    answered: bool,
    /// Whether a round-trip time was measured after the probe was sent and before its result was
    /// known.
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

    /// Whether another probe is allowed after this one. This requires that the result of this probe
    /// is known, and that a round-trip time was measured after it was sent (RFC 8985 §7.3).
    fn allows_another(&self, rack: &Rack) -> bool {
        self.answered && (self.measured || rack.has_arrived_after(self.order, self.end))
    }
}

/// Returns the probe timeout for the smoothed round-trip time `smoothed`. `delay` is the longest
/// time for which the peer may delay its acknowledgement.
#[inline]
fn probe_after(smoothed: Duration, delay: Duration) -> Duration {
    (smoothed * 2 + delay).max(LEAST_PROBE_TIMEOUT)
}

impl Connection {
    /// Restarts the retransmission timer for the data in flight. If a tail loss probe is allowed
    /// and its timeout is shorter than the RTO, the timer is set for the probe. Otherwise it is set
    /// for the RTO.
    #[inline]
    pub(crate) fn watch_with_probe(&mut self, now: Instant) {
        let timeout = self.sender.rtt.timeout(&self.config.rto);
        let probe = self.probe_timeout().filter(|&probe| probe < timeout);
        self.sender.loss.probes_tail = probe.is_some();
        self.sender.loss.probes_single = self.is_single_in_flight();
        self.timers.set(Timer::Retransmit, now, probe.unwrap_or(timeout));
    }

    /// Restarts the retransmission timer for a single segment in flight. The caller has made sure
    /// that SACK is used and no data is missing. Of the conditions of a tail loss probe, only three
    /// are left to check: the RTO, its backoff, and the probe before this one.
    #[inline(always)]
    pub(crate) fn watch_alone(&mut self, now: Instant) {
        let sender = &mut self.sender;
        let timeout = sender.rtt.timeout(&self.config.rto);
        // A tail loss probe is sent after more than `LONGEST_ACK_DELAY`. If the RTO is not longer
        // than this delay, it expires before the probe, so no probe is planned.
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

    /// Restarts the probe timeout when output ends, in two cases. The first is that data was sent
    /// now, and the timer was set at an earlier time (RFC 8985 §7.2). The second is that the timer
    /// was set for a single segment, and now more segments are in flight.
    #[inline]
    pub(crate) fn watch_tail(&mut self, now: Instant) {
        let is_older = self.sender.progressed != now && self.sender.account.delivered_at() != now;
        if (is_older || self.is_single_no_more()) && self.sender.last_sent == now {
            self.restart_probe(now);
        }
    }

    /// Returns the start of the current timeout, while no data is missing. This is the time of the
    /// most recent acknowledgement of new data, or the time when the first segment of the flight
    /// was sent (RFC 6298 (5.1), (5.3)).
    fn timeout_began(&self) -> Instant {
        self.sender.progressed.max(self.sender.account.delivered_at())
    }

    /// Whether the retransmission timer was set for a single segment, but more segments are in
    /// flight now.
    #[inline]
    fn is_single_no_more(&self) -> bool {
        self.sender.loss.probes_single && !self.is_single_in_flight()
    }

    /// Restarts the timer for a probe. If the RTO would expire before the probe timeout, the timer
    /// is set for the RTO, which is not postponed (TCP_RTO_expiration, RFC 8985 §7.2).
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

    /// Returns the probe timeout (TLP_calc_PTO, RFC 8985 §7.2); `None` if no probe is allowed.
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

    /// Handles the probe timeout: schedules a probe, unless data is marked lost, and sets the timer
    /// for the RTO.
    pub(super) fn probe_tail(&mut self, now: Instant) {
        self.sender.loss.probes_tail = false;
        if self.sender.scoreboard.in_flight() > 0 && self.may_probe_tail() {
            self.statistics.tail_probes += 1;
            self.sender.loss.tail_probe_due = true;
            self.output_due = true;
        }
        self.timers.set(Timer::Retransmit, now, self.sender.rtt.timeout(&self.config.rto));
    }

    /// Whether a probe is useful. It is not if data is marked lost, because that data is
    /// retransmitted without a probe. No probe is planned while data is marked lost, but an ICMP
    /// report may have marked data after the timer was set.
    pub(crate) fn may_probe_tail(&self) -> bool {
        self.sender.scoreboard.lost() == 0
    }

    /// Processes an acknowledgement while the result of a probe is unknown (TLP_process_ack, RFC
    /// 8985 §7.4.2). `measured` is true if the acknowledgement has measured a round-trip time.
    /// Returns whether the probe has repaired a loss, to which congestion control must respond.
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

//! The timers of a connection: their deadlines, and the clock ticks to which they are rounded.

use crate::compact::pack::packed;
use linerate_units::{Duration, Instant};

/// The timers, by purpose. The timers that the fast path uses are at the end of the list, so that
/// their deadlines share a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The time limit of a connection that the application has released.
    Orphan,
    /// The end of TIME-WAIT, which lasts twice the maximum segment lifetime.
    TimeWait,
    /// The keep-alive timer: a probe may be due, because no segment has arrived for a while (RFC
    /// 9293 §3.8.4).
    KeepAlive,
    /// The user timeout: written data was not acknowledged in time (RFC 5482).
    UserTimeout,
    /// The end of the reordering window: segments that are still missing then count as lost,
    /// because segments sent after them have arrived (RFC 8985 §6.2).
    Reorder,
    /// The time at which pacing permits the next burst.
    Pacing,
    /// The idle timer: after a second without segments, the memory of empty buffers can be freed,
    /// and the connection can be compacted.
    IdleBuffers,
    /// The persist timer: the peer's window is closed, or too small for a segment (RFC 9293
    /// §3.8.6).
    Persist,
    /// The retransmission timer for the oldest segment in flight (RFC 6298).
    Retransmit,
    /// The delayed-ACK timer: received data must be acknowledged now (RFC 9293 §3.8.6.3).
    DelayedAck,
}

impl Timer {
    const COUNT: usize = 10;
    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::UserTimeout,
        Self::Reorder,
        Self::Retransmit,
        Self::Pacing,
        Self::Persist,
        Self::DelayedAck,
        Self::KeepAlive,
        Self::TimeWait,
        Self::IdleBuffers,
        Self::Orphan,
    ];
}

/// The deadlines of all timers. The deadline of a timer that is not set is [`Instant::NEVER`].
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Timers {
    /// The clock tick to which delayed acknowledgements are rounded (4.3BSD: 200 ms); zero for no
    /// rounding.
    delayed_ack_tick: Duration,
    deadlines: [Instant; Timer::COUNT],
    floor: Floor,
    /// The clock tick to which all other timers except pacing are rounded (4.3BSD: 500 ms); zero
    /// for no rounding.
    slow_tick: Duration,
}

packed!(Timers {
    deadlines
} known {
    floor: |_config| Floor(Instant::ZERO),
    delayed_ack_tick: |config| config.delayed_ack_tick,
    slow_tick: |config| config.slow_tick
});

/// A lower bound of all deadlines. Nearly every segment moves some deadline to a later time, and
/// the bound stays as it is. The earliest deadline is searched only when the bound is reached,
/// which saves most searches.
#[derive(Clone, Copy, Debug)]
struct Floor(Instant);

/// All bounds compare equal: a bound is only a cache, so connections that differ only in it behave
/// alike.
impl PartialEq for Floor {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Timers {
    pub(crate) const fn new(delayed_ack_tick: Duration, slow_tick: Duration) -> Self {
        let floor = Floor(Instant::NEVER);
        Self { deadlines: [Instant::NEVER; Timer::COUNT], floor, delayed_ack_tick, slow_tick }
    }

    /// Sets `timer` to expire at `now` plus `span`, rounded up to the clock tick of this timer.
    pub(crate) fn set(&mut self, timer: Timer, now: Instant, span: Duration) {
        let tick = match timer {
            Timer::DelayedAck => self.delayed_ack_tick,
            Timer::Pacing => Duration::ZERO,
            _ => self.slow_tick,
        };
        self.set_deadline(timer, (now + span).round_up(tick));
    }

    /// Sets `timer` to expire at `deadline`.
    pub(crate) fn set_deadline(&mut self, timer: Timer, deadline: Instant) {
        self.deadlines[timer as usize] = deadline;
        self.floor.0 = self.floor.0.min(deadline);
    }

    /// Returns the time when `timer` expires, or [`Instant::NEVER`].
    pub(crate) const fn deadline(&self, timer: Timer) -> Instant {
        self.deadlines[timer as usize]
    }

    pub(crate) fn clear(&mut self, timer: Timer) {
        self.deadlines[timer as usize] = Instant::NEVER;
    }

    pub(crate) fn clear_all(&mut self) {
        self.deadlines = [Instant::NEVER; Timer::COUNT];
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.deadlines[timer as usize] != Instant::NEVER
    }

    /// Clears `timer` if its deadline has passed. Returns whether the deadline has passed.
    pub(crate) fn take_expired(&mut self, timer: Timer, now: Instant) -> bool {
        let expired = self.deadlines[timer as usize] <= now;
        if expired {
            self.clear(timer);
        }
        expired
    }

    /// Returns the earliest deadline of all timers.
    pub(crate) fn next(&self) -> Instant {
        self.deadlines.iter().copied().min().unwrap_or(Instant::NEVER)
    }

    /// Returns a lower bound of all deadlines.
    #[inline]
    pub(crate) const fn floor(&self) -> Instant {
        self.floor.0
    }

    /// Sets the lower bound to its exact value, the earliest deadline.
    pub(crate) fn find_floor(&mut self) {
        self.floor.0 = self.next();
    }

    pub(crate) fn check(&self) {
        assert!(self.floor.0 <= self.next(), "a deadline is earlier than the lower bound");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bsd_timers_expire_on_clock_ticks() {
        let mut timers = Timers::new(Duration::from_millis(200), Duration::from_millis(500));
        let now = Instant::ZERO + Duration::from_millis(1_050);
        timers.set(Timer::DelayedAck, now, Duration::ZERO);
        timers.set(Timer::Retransmit, now, Duration::from_secs(1));
        assert_eq!(timers.next(), Instant::ZERO + Duration::from_millis(1_200));
        assert_eq!(
            timers.deadlines[Timer::Retransmit as usize],
            Instant::ZERO + Duration::from_millis(2_500)
        );
        assert!(timers.take_expired(Timer::DelayedAck, timers.next()));
        assert!(!timers.is_set(Timer::DelayedAck));
    }

    #[test]
    fn a_postponed_deadline_leaves_the_lower_bound_until_it_is_recomputed() {
        let mut timers = Timers::new(Duration::ZERO, Duration::ZERO);
        let (now, second) = (Instant::ZERO, Duration::from_secs(1));
        timers.set(Timer::KeepAlive, now, second * 3);
        timers.set(Timer::Retransmit, now, second);
        timers.set(Timer::Retransmit, now, second * 2);
        timers.check();
        assert_eq!((timers.floor(), timers.next()), (now + second, now + second * 2));
        timers.find_floor();
        assert_eq!(timers.floor(), now + second * 2);
    }
}

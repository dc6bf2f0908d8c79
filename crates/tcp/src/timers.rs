//! The timers of a connection: deadlines, and the clock ticks to which they are rounded.

use crate::compact::pack::packed;
use linerate_units::{Duration, Instant};

/// The purpose of a timer. Timers that predicted segments use come last, so that their deadlines
/// share a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The application has released the connection and its timeout has passed.
    Orphan,
    /// TIME-WAIT, 2·MSL, is over.
    TimeWait,
    /// No segment has arrived for the keep-alive time (RFC 9293 §3.8.4).
    KeepAlive,
    /// Written data has not been acknowledged within the user timeout (RFC 5482).
    UserTimeout,
    /// The reordering window has passed, so overtaken segments are lost (RFC 8985 §6.2).
    Reorder,
    /// Pacing permits the next burst.
    Pacing,
    /// A buffer has been empty, or the connection idle, for a second, so that memory can be freed.
    IdleBuffers,
    /// The peer's window is closed, or too small for a segment (RFC 9293 §3.8.6).
    Persist,
    /// The retransmission timer of the oldest segment in flight (RFC 6298).
    Retransmit,
    /// The acknowledgement of received data has been delayed long enough (RFC 9293 §3.8.6.3).
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

/// The deadlines. A timer that is not set has the deadline [`Instant::NEVER`].
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Timers {
    /// Clock tick of delayed acknowledgements (4.3BSD: 200 ms); zero for no ticks.
    delayed_ack_tick: Duration,
    deadlines: [Instant; Timer::COUNT],
    floor: Floor,
    /// Clock tick of all other timers except pacing (4.3BSD: 500 ms); zero for no ticks.
    slow_tick: Duration,
}

packed!(Timers {
    deadlines
} known {
    floor: |_config| Floor(Instant::ZERO),
    delayed_ack_tick: |config| config.delayed_ack_tick,
    slow_tick: |config| config.slow_tick
});

/// A lower bound of all deadlines. Nearly every segment moves some deadline to a later time. The
/// bound is recomputed only when it is reached, which saves most searches for the minimum.
#[derive(Clone, Copy, Debug)]
struct Floor(Instant);

/// The bound is a cache, so connections with different bounds are equal.
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

    /// Sets `timer` to expire `span` from now, or at the clock tick after that.
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

    /// Returns the time when `timer` expires.
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

    /// Clears `timer` if its deadline has passed, and returns whether it has.
    pub(crate) fn take_expired(&mut self, timer: Timer, now: Instant) -> bool {
        let expired = self.deadlines[timer as usize] <= now;
        if expired {
            self.clear(timer);
        }
        expired
    }

    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Instant {
        self.deadlines.iter().copied().min().unwrap_or(Instant::NEVER)
    }

    /// Returns a time before which there is no deadline.
    #[inline]
    pub(crate) const fn floor(&self) -> Instant {
        self.floor.0
    }

    /// Sets the lower bound to the earliest deadline.
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

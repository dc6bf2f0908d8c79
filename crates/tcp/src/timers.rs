//! The timers of one connection: deadlines, and the clock ticks they fall on.

use crate::rest::pack::packed;
use linerate_units::{Duration, Instant};

/// What a timer is for. Those that predicted segments set, or ask for, come last, so that their deadlines lie
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// No application holds the connection, and its patience has a limit.
    Orphan,
    /// 2·MSL in TIME-WAIT have passed.
    TimeWait,
    /// Nothing has been heard for long (RFC 9293 §3.8.4).
    KeepAlive,
    /// What was written has not been acknowledged for as long as was asked for (RFC 5482).
    UserTimeout,
    /// What a later segment has overtaken is lost by now (RFC 8985 §6.2).
    Reorder,
    /// The next burst may leave.
    Pacing,
    /// A buffer has been empty for a while, or nothing has happened: the connection may rest.
    IdleBuffers,
    /// The peer's window is closed, or too small to be worth a segment (RFC 9293 §3.8.6).
    Persist,
    /// The oldest segment in flight is overdue (RFC 6298).
    Retransmit,
    /// Received data has waited long enough for its acknowledgement (RFC 9293 §3.8.6.3).
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
    /// Delayed acknowledgements go at ticks of this length (4.3BSD: 200 ms); zero for no ticks.
    delayed_ack_tick: Duration,
    deadlines: [Instant; Timer::COUNT],
    floor: Floor,
    /// Everything but pacing and delayed acknowledgements expires at ticks of this length (4.3BSD: 500 ms); zero for
    /// no ticks.
    slow_tick: Duration,
}

packed!(Timers {
    deadlines
} known {
    floor: |_config| Floor(Instant::ZERO), delayed_ack_tick: |config| config.delayed_ack_tick, slow_tick: |config|
    config.slow_tick
});

/// No deadline is earlier. Deadlines move later with nearly every segment; this stays, so that nobody has to
/// look over all of them, until it has come.
#[derive(Clone, Copy, Debug)]
struct Floor(Instant);

/// It says nothing of the connection: two are alike wherever their deadlines have been.
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

    /// When `timer` expires.
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

    /// Clears `timer` and says so, if its deadline has come.
    pub(crate) fn take_expired(&mut self, timer: Timer, now: Instant) -> bool {
        let expired = self.deadlines[timer as usize] <= now;
        if expired {
            self.clear(timer);
        }
        expired
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Instant {
        self.deadlines.iter().copied().min().unwrap_or(Instant::NEVER)
    }

    /// A time before which there is no deadline.
    #[inline]
    pub(crate) const fn floor(&self) -> Instant {
        self.floor.0
    }

    /// Looks over all deadlines.
    pub(crate) fn find_floor(&mut self) {
        self.floor.0 = self.next();
    }

    pub(crate) fn check(&self) {
        assert!(self.floor.0 <= self.next(), "a deadline is earlier than all of them");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bsd_clock_expires_on_its_ticks() {
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
    fn a_deadline_that_moves_later_leaves_the_floor_where_it_is_until_it_is_looked_for() {
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

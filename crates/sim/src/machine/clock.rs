//! The clock of a machine. It is coarse, and it has been running since some time before the
//! simulation.

use linerate_units::{Duration, Instant, Span, Tick};

/// The clock of a machine, which its TCP/IP stack reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineClock {
    /// Time between the start of the machine's clock and the start of the simulation.
    head_start: Duration,
    /// Resolution: the clock shows multiples of this time.
    grain: Duration,
}

impl MachineClock {
    /// Creates a clock that was started `head_start` before the simulation and shows multiples of
    /// `grain`.
    pub(crate) fn new(head_start: Span, grain: Span) -> Self {
        Self {
            head_start: head_start.into(),
            grain: Duration::from_nanos(Duration::from(grain).as_nanos().max(1)),
        }
    }

    /// Returns the clock's reading at simulated time `now`.
    pub(crate) fn show(&self, now: Tick) -> Instant {
        let nanos = (now.to_instant() + self.head_start).as_nanos();
        Instant::from_nanos(nanos - nanos % self.grain.as_nanos())
    }

    /// Returns the first simulated time at which the clock shows `instant` or more.
    pub(crate) fn when(&self, instant: Instant) -> Tick {
        if instant == Instant::NEVER {
            return Tick::NEVER;
        }
        Tick::of_instant(instant.round_up(self.grain) - self.head_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coarse_clock_shows_an_instant_from_its_next_tick_on() {
        let span = |micros| Span::from(Duration::from_micros(micros));
        let clock = MachineClock::new(span(3_000), span(10_000));
        let instant = Instant::ZERO + Duration::from_micros(12_345);
        let when = clock.when(instant);
        assert_eq!(when, Tick::ZERO + span(17_000));
        assert!(clock.show(when) >= instant);
        assert!(clock.show(Tick::from_picos(when.as_picos() - 1)) < instant);
        assert_eq!(clock.when(Instant::NEVER), Tick::NEVER);
    }
}

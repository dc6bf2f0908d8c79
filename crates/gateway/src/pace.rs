//! The pace of new flows: a limit on the time that the gateway spends on them. A new flow costs
//! about 45 µs, because the kernel creates a socket and often connects it. If the server runs on
//! the same machine, its own work is part of this time. Without a limit, a flood of new flows would
//! starve the existing flows.
//!
//! While the gateway is saturated, because its turns cannot process all frames, new flows get an
//! eighth of the time. During a flood, they get a smaller share. A flood differs from a busy client
//! in the outcome of its flows. Most of them are useless: the client completes no handshake, or the
//! destination refuses or does not answer. The smaller share applies even if the gateway is idle
//! otherwise, because new flows also take time from the kernel and from other programs.

use linerate_units::{Duration, Instant};

/// While the gateway is saturated, new flows get at most 1/`SHARE` of the thread's time.
const SHARE: u64 = 8;
/// During a flood, new flows get at most 1/`SHARE_OF_FLOOD` of the thread's time.
const SHARE_OF_FLOOD: u64 = 64;
/// Maximum time that new flows take in one turn, and maximum time that accumulates for them.
const BURST: Duration = Duration::from_millis(5);
/// Minimum of accumulated time at which a turn handles new flows while they are limited. With less,
/// new flows wait until this time has accumulated.
const LEAST: Duration = Duration::from_micros(100);
/// Number of recorded outcomes at which the counts of useful and useless flows are halved, so that
/// old outcomes count less than recent ones.
const OUTCOMES: u32 = 256;
/// Time after which the counts of useful and useless flows are halved, even if they are below
/// [`OUTCOMES`] together.
const MEMORY: Duration = Duration::from_secs(1);

/// The limit on the time for new flows, and the outcomes of recent flows, which show whether there
/// is a flood.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Accumulated time that new flows may still take. Invariant: at most [`BURST`].
    left: Duration,
    /// Time of the most recent increase of `left`.
    earned: Instant,
    /// Time at which `useful` and `useless` were most recently halved.
    halved: Instant,
    useful: u32,
    useless: u32,
}

impl Pace {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { left: BURST, earned: now, halved: now, useful: 0, useless: 0 }
    }

    /// Records a useful flow: its client has completed the handshake, or its destination has
    /// answered.
    pub(crate) const fn note_useful(&mut self) {
        self.useful += 1;
        self.limit_outcomes();
    }

    /// Records a useless flow: its client has not completed the handshake, or its destination has
    /// refused it or has not answered.
    pub(crate) const fn note_useless(&mut self) {
        self.useless += 1;
        self.limit_outcomes();
    }

    const fn limit_outcomes(&mut self) {
        if self.useful + self.useless >= OUTCOMES {
            self.halve_outcomes();
        }
    }

    const fn halve_outcomes(&mut self) {
        (self.useful, self.useless) = (self.useful / 2, self.useless / 2);
    }

    /// Do the outcomes show a flood: at least 64 useless flows, and more than four for each useful
    /// flow?
    fn is_flood(&self) -> bool {
        self.useless >= OUTCOMES / 4 && self.useless > 4 * self.useful
    }

    fn share(&self) -> u64 {
        if self.is_flood() { SHARE_OF_FLOOD } else { SHARE }
    }

    /// Returns the maximum time that new flows may take in the turn at `now`; `None` if they have
    /// to wait. They are limited only if `is_saturated` is true or the outcomes show a flood.
    pub(crate) fn begin(&mut self, now: Instant, is_saturated: bool) -> Option<Duration> {
        let earned = now.since(self.earned) / self.share();
        self.earned = now;
        self.left = (self.left + earned).min(BURST);
        if now.since(self.halved) >= MEMORY {
            self.halved = now;
            self.halve_outcomes();
        }
        if !is_saturated && !self.is_flood() {
            return Some(BURST);
        }
        (self.left >= LEAST).then_some(self.left)
    }

    /// Subtracts the time `spent` that new flows have taken from the accumulated time.
    pub(crate) fn spend(&mut self, spent: Duration) {
        self.left = self.left - spent;
    }

    /// Returns the time at which [`LEAST`] will have accumulated, so that new flows may continue.
    pub(crate) fn resumes(&self) -> Instant {
        self.earned + (LEAST - self.left) * self.share()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::ZERO;

    fn after(micros: u64) -> Instant {
        START + Duration::from_micros(micros)
    }

    /// Returns the total time that new flows take in one second, if new flows are always waiting.
    fn taken(pace: &mut Pace, is_saturated: bool) -> Duration {
        let (mut now, mut taken) = (after(2_000_000), Duration::ZERO);
        while now < after(3_000_000) {
            match pace.begin(now, is_saturated) {
                Some(limit) => {
                    pace.spend(limit);
                    (now, taken) = (now + limit, taken + limit);
                }
                None => now = pace.resumes(),
            }
        }
        taken
    }

    #[test]
    fn new_flows_get_a_share_of_a_saturated_gateway() {
        let taken = taken(&mut Pace::new(START), true);
        assert!((Duration::from_millis(120)..Duration::from_millis(132)).contains(&taken));
        assert_eq!(Pace::new(START).begin(after(1), false), Some(BURST), "or as much as they need");
    }

    #[test]
    fn flows_that_come_to_nothing_get_a_small_share() {
        let mut pace = Pace::new(after(2_000_000));
        for _ in 0..10_000 {
            pace.note_useless();
        }
        let taken = taken(&mut pace, false);
        assert!((Duration::from_millis(15)..Duration::from_millis(22)).contains(&taken), "{taken}");
    }

    #[test]
    fn a_client_with_some_refused_flows_is_no_flood() {
        let mut pace = Pace::new(START);
        for _ in 0..1_000 {
            (0..3).for_each(|_| pace.note_useless());
            pace.note_useful();
        }
        assert_eq!(pace.begin(after(1), false), Some(BURST));
        // A flood has at least `OUTCOMES / 4` useless flows. One fewer is therefore no flood.
        // `OUTCOMES` useless flows are no flood either when they are a few seconds old, because the
        // counts are halved every second.
        let mut pace = Pace::new(START);
        (0..OUTCOMES / 4 - 1).for_each(|_| pace.note_useless());
        assert_eq!(pace.begin(after(1), false), Some(BURST));
        (0..OUTCOMES).for_each(|_| pace.note_useless());
        for second in 1..4 {
            pace.begin(after(second * 1_000_000), false);
        }
        assert_eq!(pace.begin(after(4_000_000), false), Some(BURST));
    }
}

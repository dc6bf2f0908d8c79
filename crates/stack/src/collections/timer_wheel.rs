//! When each of many timers is due, at a cost that does not depend on how many there are.
//!
//! Nine levels of 64 slots: a slot of the lowest level is one tick, a slot of each further level is
//! all slots of the level below. A timer lies at the level of the highest digit (of 6 bits) in
//! which its tick differs from the present one, and moves down as that time comes near, so it is
//! touched at most nine times whatever happens. All levels together span 2^64 nanoseconds.
//!
//! Timers are armed lazily. A deadline that moves later costs nothing: the timer stays where it is,
//! comes due at the old time, and its owner arms it anew for the time that holds then. Transport
//! timers move later with nearly every segment and expire nearly never.

use crate::collections::list::{Links, List};
use alloc::vec::Vec;
use core::marker::PhantomData;
use linerate_units::Instant;

/// A tick is 2^10 ns. A timer is never early, and late by less than a tick.
const TICK_BITS: u32 = 10;
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = 9;
const LAST_TICK: u64 = u64::MAX >> TICK_BITS;

/// A timer's name: whatever stands for a small number.
pub(crate) trait TimerId: Copy {
    /// The number of this timer, no other's.
    fn number(self) -> u32;

    /// The timer with that number.
    fn numbered(number: u32) -> Self;
}

impl TimerId for u32 {
    #[inline]
    fn number(self) -> u32 {
        self
    }

    #[inline]
    fn numbered(number: u32) -> Self {
        number
    }
}

/// The timers of things that have a small number each.
#[derive(Debug)]
pub(crate) struct TimerWheel<Id = u32> {
    /// The present, in ticks. Invariant: every armed timer of a tick up to here is in `due`.
    elapsed: u64,
    /// Before that there is certainly nothing; [`Instant::NEVER`] if there is nothing at all. Asked in every
    /// turn, so it is kept.
    next: Instant,
    levels: [Level; LEVELS],
    due: List,
    links: Links,
    timers: Vec<Timer>,
    names: PhantomData<Id>,
    /// How often a timer was put in its place.
    #[cfg(test)]
    placed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    /// One bit for each slot that holds a timer.
    occupied: u64,
    slots: [List; SLOTS],
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    /// [`Instant::NEVER`] if the timer is not armed.
    deadline: Instant,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Due,
    Slot { level: u8, slot: u8 },
}

impl<Id: TimerId> TimerWheel<Id> {
    /// A wheel with no timer armed.
    pub(crate) const fn new() -> Self {
        const LEVEL: Level = Level { occupied: 0, slots: [List::EMPTY; SLOTS] };
        Self {
            elapsed: 0,
            next: Instant::NEVER,
            levels: [LEVEL; LEVELS],
            due: List::EMPTY,
            links: Links::new(),
            timers: Vec::new(),
            names: PhantomData,
            #[cfg(test)]
            placed: 0,
        }
    }

    /// Makes sure that timer `id` comes due at `deadline` or earlier. One that is armed for an
    /// earlier time stays as it is.
    #[inline]
    pub(crate) fn arm(&mut self, id: Id, deadline: Instant) {
        if deadline < self.deadline(id) {
            self.hasten(id.number(), deadline);
        }
    }

    /// What comes due earlier than it would have can only bring the first time nearer.
    #[inline(never)]
    fn hasten(&mut self, id: u32, deadline: Instant) {
        self.take_out(id);
        let start = self.place(id, deadline);
        self.next = self.next.min(Instant::from_nanos(start << TICK_BITS));
    }

    /// Has timer `id` come due at `deadline`, whatever it was armed for before.
    pub(crate) fn set(&mut self, id: Id, deadline: Instant) {
        if deadline == Instant::NEVER {
            self.disarm(id);
        } else if deadline != self.deadline(id) {
            self.rearm(id.number(), deadline);
        }
    }

    fn rearm(&mut self, id: u32, deadline: Instant) {
        self.take_out(id);
        self.place(id, deadline);
        self.find_next();
    }

    /// Takes the timer out of the wheel.
    pub(crate) fn disarm(&mut self, id: Id) {
        if self.take_out(id.number()) {
            self.find_next();
        }
    }

    /// Takes the timer out of the wheel, if it is armed; whether it was.
    #[inline(always)]
    fn take_out(&mut self, id: u32) -> bool {
        let timer = match self.timers.get_mut(id as usize) {
            Some(timer) if timer.deadline != Instant::NEVER => timer,
            _ => return false,
        };
        timer.deadline = Instant::NEVER;
        match timer.place {
            Place::Due => self.links.remove(&mut self.due, id),
            Place::Slot { level, slot } => {
                let level = &mut self.levels[usize::from(level)];
                let list = &mut level.slots[usize::from(slot)];
                self.links.remove(list, id);
                if list.is_empty() {
                    level.occupied &= !(1 << slot);
                }
            }
        }
        true
    }

    /// When timer `id` will come due; [`Instant::NEVER`] if it is not armed.
    #[inline]
    pub(crate) fn deadline(&self, id: Id) -> Instant {
        self.timers.get(id.number() as usize).map_or(Instant::NEVER, |timer| timer.deadline)
    }

    /// Takes one timer that is due at `now`, until there is no more.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Id> {
        self.advance(now.as_nanos() >> TICK_BITS);
        let id = self.links.pop_front(&mut self.due);
        self.find_next();
        let id = id?;
        self.timers[id as usize].deadline = Instant::NEVER;
        Some(Id::numbered(id))
    }

    /// The time before which [`TimerWheel::expire`] certainly has nothing. It can be earlier than
    /// the first deadline by a slot of that timer's level; calling `expire` then brings it nearer.
    #[inline]
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Brings the present to `tick`, slot by occupied slot, until timers are due.
    fn advance(&mut self, tick: u64) {
        while self.due.is_empty() {
            match self.first_slot() {
                Some((level, slot, start)) if start <= tick => {
                    self.elapsed = start;
                    self.empty_slot(level, slot, tick);
                }
                _ => {
                    self.elapsed = self.elapsed.max(tick);
                    return;
                }
            }
        }
    }

    /// The occupied slot that begins first, and the tick at which it begins. Slots of a lower level
    /// all begin before those of a higher one, because a timer lies at the level of the highest
    /// digit that is still to change.
    fn first_slot(&self) -> Option<(usize, usize, u64)> {
        let level = self.levels.iter().position(|level| level.occupied != 0)?;
        let slot = self.levels[level].occupied.trailing_zeros();
        let (shift, above) = (digit_shift(level), digit_shift(level + 1));
        let start = (self.elapsed >> above << above) | (u64::from(slot) << shift);
        Some((level, slot as usize, start))
    }

    fn find_next(&mut self) {
        let tick = if self.due.is_empty() {
            self.first_slot().map(|(_, _, start)| start)
        } else {
            Some(self.elapsed)
        };
        self.next = tick.map_or(Instant::NEVER, |tick| Instant::from_nanos(tick << TICK_BITS));
    }

    /// Moves each timer of a slot that has begun to where it belongs now. One that is alone in it comes before all others:
    /// the present passes on, at most to `tick`, and the levels below are left out.
    fn empty_slot(&mut self, level: usize, slot: usize, tick: u64) {
        let level = &mut self.levels[level];
        level.occupied &= !(1 << slot);
        let mut list = core::mem::replace(&mut level.slots[slot], List::EMPTY);
        if let Some(alone) = list.alone() {
            self.elapsed = tick_of(self.timers[alone as usize].deadline).min(tick);
        }
        while let Some(id) = self.links.pop_front(&mut list) {
            self.place(id, self.timers[id as usize].deadline);
        }
    }

    /// Puts a timer that is in no list where its deadline says, and says at which tick that place begins.
    #[inline(always)]
    fn place(&mut self, id: u32, deadline: Instant) -> u64 {
        #[cfg(test)]
        {
            self.placed += 1;
        }
        let tick = tick_of(deadline);
        let (place, start) = if tick <= self.elapsed {
            self.links.push_back(&mut self.due, id);
            (Place::Due, self.elapsed)
        } else {
            let level = (tick ^ self.elapsed).ilog2() / DIGIT_BITS;
            #[allow(clippy::cast_possible_truncation, reason = "a digit")]
            let slot = (tick >> (level * DIGIT_BITS)) as usize % SLOTS;
            let at = &mut self.levels[level as usize];
            at.occupied |= 1 << slot;
            self.links.push_back(&mut at.slots[slot], id);
            (Place::slot(level, slot), tick >> (level * DIGIT_BITS) << (level * DIGIT_BITS))
        };
        if self.timers.len() <= id as usize {
            self.timers
                .resize(id as usize + 1, Timer { deadline: Instant::NEVER, place: Place::Due });
        }
        self.timers[id as usize] = Timer { deadline, place };
        start
    }
}

impl Place {
    #[allow(clippy::cast_possible_truncation, reason = "nine levels of 64 slots")]
    const fn slot(level: u32, slot: usize) -> Self {
        Self::Slot { level: level as u8, slot: slot as u8 }
    }
}

/// The first tick that is no earlier.
fn tick_of(deadline: Instant) -> u64 {
    deadline.as_nanos().div_ceil(1 << TICK_BITS).min(LAST_TICK)
}

/// How far the digit of a level is from the bottom of a tick.
#[allow(clippy::cast_possible_truncation, reason = "nine levels")]
const fn digit_shift(level: usize) -> u32 {
    level as u32 * DIGIT_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Duration;
    use proptest::prelude::*;

    const TICK: u64 = 1 << TICK_BITS;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// Everything due at `now`, in the order of the numbers.
    fn expired(wheel: &mut TimerWheel, now: u64) -> Vec<u32> {
        let mut ids: Vec<_> = core::iter::from_fn(|| wheel.expire(at(now))).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn a_timer_is_never_early_and_less_than_a_tick_late() {
        let mut wheel = TimerWheel::new();
        wheel.arm(3, at(5_000_001));
        assert_eq!(expired(&mut wheel, 5_000_000), []);
        assert_eq!(expired(&mut wheel, 5_000_001 + TICK), [3]);
        assert_eq!(wheel.next(), Instant::NEVER);
    }

    #[test]
    fn a_deadline_that_moves_later_leaves_the_timer_where_it_is() {
        let mut wheel = TimerWheel::new();
        wheel.arm(0, at(1_000_000));
        wheel.arm(0, at(9_000_000));
        assert_eq!(wheel.deadline(0), at(1_000_000));
        wheel.arm(0, at(500_000));
        assert_eq!(expired(&mut wheel, 600_000), [0]);
    }

    #[test]
    fn the_ends_of_time_can_be_armed() {
        let mut wheel = TimerWheel::new();
        wheel.arm(0, at(0));
        wheel.arm(1, at(u64::MAX - 1));
        wheel.arm(2, Instant::NEVER);
        assert_eq!(expired(&mut wheel, 0), [0]);
        assert!(wheel.next() <= at(u64::MAX - 1));
        assert_eq!(expired(&mut wheel, u64::MAX), [1]);
    }

    #[test]
    fn waiting_for_the_next_time_reaches_a_far_deadline_in_few_steps() {
        let mut wheel = TimerWheel::new();
        wheel.arm(0, at(3_600_000_000_000));
        let steps = (0..100).take_while(|_| wheel.expire(wheel.next()).is_none()).count();
        assert!(steps < LEVELS, "{steps}");
    }

    /// Or who slept until the next time would be woken for nothing, after a long silence over and over.
    #[test]
    fn after_a_silence_what_is_near_is_known_to_the_tick() {
        let mut wheel = TimerWheel::<u32>::new();
        let silence = 3_600_000_000_000 / TICK * TICK;
        assert_eq!(expired(&mut wheel, silence), []);
        wheel.arm(0, at(silence + 3 * TICK));
        assert_eq!(wheel.next(), at(silence + 3 * TICK));
    }

    /// What O(1) means here: of a million timers each is touched at most once for each level, as one alone is.
    #[test]
    fn a_million_timers_come_due_in_their_time_and_are_each_touched_a_few_times() {
        const MANY: u32 = 1_000_000;
        // From a millisecond to a minute away, no two alike, in no order.
        let deadline =
            |id: u32| at(1_000_000 + u64::from(id.wrapping_mul(2_654_435_761) % MANY) * 60_000);
        let mut wheel = TimerWheel::new();
        (0..MANY).for_each(|id| wheel.arm(id, deadline(id)));
        let mut last = Instant::ZERO;
        for _ in 0..MANY {
            let id =
                core::iter::repeat_with(|| wheel.expire(wheel.next())).flatten().next().unwrap();
            assert!(
                deadline(id) >= last - Duration::from_nanos(TICK),
                "timers come due in their order"
            );
            last = deadline(id);
        }
        assert_eq!(wheel.next(), Instant::NEVER);
        let touched = wheel.placed / u64::from(MANY);
        assert!((1..=LEVELS as u64).contains(&touched), "{touched}");
    }

    proptest! {
        /// Against a list of deadlines: what the wheel says is due is what the list says, up to the
        /// length of a tick.
        #[test]
        fn the_wheel_agrees_with_a_list(
            steps in prop::collection::vec((0_u32..20, 0_u32..42, any::<u64>(), 0_u8..6), 1..300),
        ) {
            let mut wheel = TimerWheel::new();
            let mut list = [u64::MAX; 20];
            let mut now = 0_u64;
            for (id, magnitude, noise, step) in steps {
                let span = noise >> (63 - magnitude);
                match step {
                    0 | 1 => {
                        let deadline = now.saturating_add(span);
                        wheel.arm(id, at(deadline));
                        list[id as usize] = list[id as usize].min(deadline);
                    }
                    2 => {
                        wheel.disarm(id);
                        list[id as usize] = u64::MAX;
                    }
                    3 => {
                        let deadline = if magnitude == 0 { u64::MAX } else { now.saturating_add(span) };
                        wheel.set(id, at(deadline));
                        list[id as usize] = deadline;
                    }
                    _ => {
                        now = now.saturating_add(span);
                        for id in expired(&mut wheel, now) {
                            prop_assert!(list[id as usize] <= now, "early");
                            list[id as usize] = u64::MAX;
                        }
                        prop_assert!(list.iter().all(|&deadline| deadline > now.saturating_sub(TICK)), "late");
                    }
                }
                let first = list.iter().copied().min().unwrap_or(u64::MAX);
                prop_assert!(wheel.next().as_nanos() <= first.saturating_add(TICK));
                prop_assert_eq!(wheel.next() == Instant::NEVER, first == u64::MAX);
                let kept = wheel.next();
                wheel.find_next();
                prop_assert_eq!(wheel.next(), kept);
                for (id, &deadline) in (0..).zip(&list) {
                    prop_assert_eq!(wheel.deadline(id), at(deadline));
                }
            }
        }
    }
}

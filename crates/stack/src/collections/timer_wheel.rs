//! A hierarchical timer wheel, whose amortised cost per timer is constant.
//!
//! The wheel has nine levels of 64 slots. A slot of the lowest level is one tick, and a slot of
//! each higher level spans all slots of the level below. The number of a tick is split into nine
//! digits of 6 bits, one for each level. The level of a timer is that of the highest digit in which
//! the tick of its deadline differs from the current tick. The timer moves to lower levels as its
//! deadline approaches, so it moves at most nine times. All levels together span 2^64 nanoseconds.
//!
//! Timers are armed lazily: to postpone a deadline, the owner of a timer does not touch the wheel.
//! The timer expires at the old deadline, and then its owner arms it again for the present
//! deadline. This saves work, because nearly every segment postpones a transport timer, and hardly
//! any of these timers expires.

use crate::collections::give_back;
use crate::collections::list::{Links, List};
use alloc::vec::Vec;
use core::marker::PhantomData;
use linerate_units::Instant;

/// Binary logarithm of the length of a tick in nanoseconds: a tick is 2^10 ns. A timer expires at
/// most one tick late, and never early.
const TICK_BITS: u32 = 10;
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = 9;
const LAST_TICK: u64 = u64::MAX >> TICK_BITS;

/// A type that identifies timers by small numbers.
pub(crate) trait TimerId: Copy {
    /// Returns the number of this timer.
    fn number(self) -> u32;

    /// Returns the timer with this number.
    fn from_number(number: u32) -> Self;
}

impl TimerId for u32 {
    #[inline]
    fn number(self) -> u32 {
        self
    }

    #[inline]
    fn from_number(number: u32) -> Self {
        number
    }
}

/// A timer wheel whose timers are identified by `Id`.
#[derive(Debug)]
pub(crate) struct TimerWheel<Id = u32> {
    /// The current tick. Invariant: every armed timer whose deadline is in this or an earlier tick
    /// is in `due`.
    elapsed: u64,
    /// A time before which no timer expires; [`Instant::NEVER`] if no timer is armed. This value is
    /// cached, because every turn of the host reads it.
    next: Instant,
    levels: [Level; LEVELS],
    due: List,
    links: Links,
    timers: Vec<Timer>,
    ids: PhantomData<Id>,
    /// Number of times that a timer was put into a slot. Tests use this number to measure the cost
    /// of the wheel.
    #[cfg(test)]
    placed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    /// Bit set of the slots that contain timers.
    occupied: u64,
    slots: [List; SLOTS],
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    /// Time at which the timer expires; [`Instant::NEVER`] if it is not armed.
    deadline: Instant,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Due,
    Slot { level: u8, slot: u8 },
}

impl<Id: TimerId> TimerWheel<Id> {
    /// Creates a wheel without armed timers.
    pub(crate) const fn new() -> Self {
        const LEVEL: Level = Level { occupied: 0, slots: [List::EMPTY; SLOTS] };
        Self {
            elapsed: 0,
            next: Instant::NEVER,
            levels: [LEVEL; LEVELS],
            due: List::EMPTY,
            links: Links::new(),
            timers: Vec::new(),
            ids: PhantomData,
            #[cfg(test)]
            placed: 0,
        }
    }

    /// Arms timer `id` to expire at `deadline`. If the timer is already armed for an earlier time,
    /// it keeps that time.
    #[inline]
    pub(crate) fn arm(&mut self, id: Id, deadline: Instant) {
        if deadline < self.deadline(id) {
            self.move_earlier(id.number(), deadline);
        }
    }

    /// Moves a timer to an earlier deadline. [`TimerWheel::next`] can thus only become earlier, so
    /// it is updated without a search for the next timer.
    #[inline(never)]
    fn move_earlier(&mut self, id: u32, deadline: Instant) {
        self.take_out(id);
        let start = self.place(id, deadline);
        self.next = self.next.min(Instant::from_nanos(start << TICK_BITS));
    }

    /// Arms timer `id` to expire at `deadline`, whether its previous deadline was earlier or later.
    /// [`Instant::NEVER`] disarms the timer.
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

    /// Disarms timer `id`.
    pub(crate) fn disarm(&mut self, id: Id) {
        if self.take_out(id.number()) {
            self.find_next();
        }
    }

    /// Removes timer `id` from its slot. Returns false if the timer was not armed.
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

    /// Returns the deadline of timer `id`, or [`Instant::NEVER`] if the timer is not armed.
    #[inline]
    pub(crate) fn deadline(&self, id: Id) -> Instant {
        self.timers.get(id.number() as usize).map_or(Instant::NEVER, |timer| timer.deadline)
    }

    /// Disarms and returns a timer whose deadline has passed at `now`, or `None` if no timer has
    /// expired.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Id> {
        self.advance(now.as_nanos() >> TICK_BITS);
        let id = self.links.pop_front(&mut self.due);
        self.find_next();
        let id = id?;
        self.timers[id as usize].deadline = Instant::NEVER;
        Some(Id::from_number(id))
    }

    /// Returns a time before which no timer expires; [`Instant::NEVER`] if no timer is armed. The
    /// time is the start of the slot of the next timer, so it can be earlier than the deadline of
    /// this timer. A call of [`TimerWheel::expire`] at this time moves the timer to a lower level
    /// with shorter slots. This method then returns a time closer to the deadline.
    #[inline]
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Disarms the timers with a number of `number` or more, and frees their memory.
    #[cold]
    pub(crate) fn shrink(&mut self, number: u32) {
        let end = u32::try_from(self.timers.len()).unwrap_or(u32::MAX);
        (number..end).for_each(|id| {
            self.take_out(id);
        });
        self.find_next();
        self.timers.truncate(number as usize);
        give_back(&mut self.timers);
        self.links.shrink(number as usize);
    }

    /// Advances the current tick, from one occupied slot to the next, until a timer is due or the
    /// current tick is `tick`.
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

    /// Returns the level, the index and the first tick of the earliest occupied slot. This slot is
    /// on the lowest occupied level. Deadlines on that level differ from the current tick only in
    /// lower digits than deadlines on the levels above, so they are earlier.
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

    /// Empties a slot whose first tick has been reached, and moves its timers to lower levels. If
    /// the slot contains a single timer, no other timer expires before this timer. The current tick
    /// then advances to the deadline of this timer, but not beyond `tick`. The timer thus skips
    /// levels through which it would otherwise move one by one.
    fn empty_slot(&mut self, level: usize, slot: usize, tick: u64) {
        let level = &mut self.levels[level];
        level.occupied &= !(1 << slot);
        let mut list = core::mem::replace(&mut level.slots[slot], List::EMPTY);
        if let Some(only) = list.only() {
            self.elapsed = tick_of(self.timers[only as usize].deadline).min(tick);
        }
        while let Some(id) = self.links.pop_front(&mut list) {
            self.place(id, self.timers[id as usize].deadline);
        }
    }

    /// Puts a timer, which must be in no list, into the slot of `deadline`, and returns the first
    /// tick of this slot. If the tick of `deadline` has been reached, puts the timer into `due`,
    /// and returns the current tick.
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

/// Returns the number of the tick at which a timer with this deadline expires: the first tick that
/// does not begin before `deadline`.
fn tick_of(deadline: Instant) -> u64 {
    deadline.as_nanos().div_ceil(1 << TICK_BITS).min(LAST_TICK)
}

/// Returns the bit position, in the number of a tick, of the digit that belongs to `level`.
#[allow(clippy::cast_possible_truncation, reason = "nine levels")]
const fn digit_shift(level: usize) -> u32 {
    level as u32 * DIGIT_BITS
}

#[cfg(test)]
mod tests;

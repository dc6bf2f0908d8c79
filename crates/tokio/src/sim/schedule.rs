//! The times of the next events of numbered parts of a network: of its hosts, or of its paths.

use linerate_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The time of the next event of each part (a host or a path); `NEVER` for a part without one.
///
/// Deadlines are often postponed before they expire. To make that cheap, postponing leaves the heap
/// entry of the part unchanged, although its time is now too early. When the entry comes to the
/// top, it is replaced by one with the current time of the part.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    entries: BinaryHeap<Reverse<(Instant, usize)>>,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    at: Instant,
    /// The time in the valid heap entry of the part; `NEVER` without an entry. It may be earlier
    /// than `at`, but never later.
    entered: Instant,
}

impl Part {
    const NONE: Self = Self { at: Instant::NEVER, entered: Instant::NEVER };
}

impl Schedule {
    /// Sets the time of the next event of a part.
    pub(super) fn set(&mut self, part: usize, at: Instant) {
        if self.parts.len() <= part {
            self.parts.resize(part + 1, Part::NONE);
        }
        let known = &mut self.parts[part];
        known.at = at;
        if at < known.entered {
            known.entered = at;
            self.entries.push(Reverse((at, part)));
            self.discard_invalid();
        }
    }

    /// Returns the earliest time of all parts; `NEVER` if no part has one.
    pub(super) fn first(&mut self) -> Instant {
        while let Some(&Reverse((entered, part))) = self.entries.peek() {
            let known = &mut self.parts[part];
            if known.entered == entered && known.at == entered {
                return entered;
            }
            self.entries.pop();
            if known.entered == entered {
                known.entered = known.at;
                if known.at != Instant::NEVER {
                    self.entries.push(Reverse((known.at, part)));
                }
            }
        }
        Instant::NEVER
    }

    /// Returns a part whose time has come, and clears its time. Parts with equal times are returned
    /// in the order of their numbers.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        if self.first() > now {
            return None;
        }
        let Reverse((_, part)) = self.entries.pop()?;
        self.parts[part] = Part::NONE;
        Some(part)
    }

    /// Rebuilds the heap if most of its entries are invalid. An entry becomes invalid when its part
    /// gets an earlier time, and with it a new entry.
    fn discard_invalid(&mut self) {
        if self.entries.len() > 2 * self.parts.len() + 64 {
            let parts = self.parts.iter().enumerate();
            let valid = parts.filter(|(_, part)| part.entered != Instant::NEVER);
            self.entries = valid.map(|(number, part)| Reverse((part.entered, number))).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn parts_are_due_in_the_order_of_their_times_and_numbers() {
        let mut schedule = Schedule::default();
        for (part, time) in [(3, 20), (1, 10), (2, 10), (0, 30)] {
            schedule.set(part, at(time));
        }
        assert_eq!((schedule.first(), schedule.pop_due(at(9))), (at(10), None));
        let due: Vec<_> = std::iter::from_fn(|| schedule.pop_due(at(20))).collect();
        assert_eq!(due, [1, 2, 3]);
        assert_eq!(schedule.first(), at(30));
        schedule.set(0, Instant::NEVER);
        assert_eq!((schedule.first(), schedule.pop_due(at(99))), (Instant::NEVER, None));
    }

    #[test]
    fn the_last_time_counts_however_often_it_changes() {
        let mut schedule = Schedule::default();
        let mut expected = [Instant::NEVER; 5];
        let mut state = 1_u64;
        for now in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (part, span) = ((state >> 33) as usize % 5, (state >> 40) % 100);
            let time = if span == 0 { Instant::NEVER } else { at(now + span) };
            (expected[part], _) = (time, schedule.set(part, time));
            while let Some(due) = schedule.pop_due(at(now)) {
                assert!(expected[due] <= at(now));
                expected[due] = Instant::NEVER;
            }
            assert_eq!(schedule.first(), *expected.iter().min().unwrap());
            assert!(schedule.entries.len() <= 2 * 5 + 65);
        }
    }
}

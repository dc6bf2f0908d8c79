//! Serial-number arithmetic on TCP's 32-bit sequence space (RFC 9293 §3.4).

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A TCP sequence number. Sequence numbers wrap, so they cannot be sorted. If two different numbers
/// are less than 2^31 apart, one is *before* the other, and the other is *after* the first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SeqNum(u32);

impl SeqNum {
    /// Creates the sequence number `number`.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the sequence number as in the header of a segment.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Is this number strictly before `other`?
    #[must_use]
    pub const fn before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Is this number strictly after `other`?
    #[must_use]
    pub const fn after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// Is this number among the `length` numbers that begin with `start`?
    #[must_use]
    pub const fn within(self, start: Self, length: u32) -> bool {
        self.0.wrapping_sub(start.0) < length
    }

    /// Do the `length` numbers that begin with this one all belong to the `room` numbers that begin
    /// with `start`? Returns false if `length` is zero.
    ///
    /// It would not suffice to compare the first and last number with the ends of the range by
    /// [`before`](Self::before) and [`after`](Self::after). Numbers that are 2^31 away from the
    /// range can pass both comparisons.
    #[must_use]
    pub const fn all_within(self, length: u32, start: Self, room: u32) -> bool {
        let offset = self.0.wrapping_sub(start.0);
        length > 0 && offset < room && length <= room - offset
    }

    /// Returns the distance from `other` to this number, which is negative if this number is before
    /// `other`.
    #[must_use]
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0).cast_signed()
    }

    /// Returns the later of two sequence numbers.
    #[must_use]
    pub const fn later(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// Returns the earlier of two sequence numbers.
    #[must_use]
    pub const fn earlier(self, other: Self) -> Self {
        if self.after(other) { other } else { self }
    }
}

impl Add<u32> for SeqNum {
    type Output = Self;
    fn add(self, length: u32) -> Self {
        Self(self.0.wrapping_add(length))
    }
}

impl AddAssign<u32> for SeqNum {
    fn add_assign(&mut self, length: u32) {
        *self = *self + length;
    }
}

impl Sub<u32> for SeqNum {
    type Output = Self;
    fn sub(self, length: u32) -> Self {
        Self(self.0.wrapping_sub(length))
    }
}

/// Returns how far this number lies after `earlier`, modulo 2^32. The result is meaningful only if
/// `earlier` is before this number or equal to it; [`SeqNum::before`] compares two numbers.
impl Sub for SeqNum {
    type Output = u32;
    fn sub(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

impl fmt::Debug for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let (low, high) = (SeqNum::new(5), SeqNum::new(u32::MAX - 5));
        assert!(high.before(low) && low.after(high));
        assert_eq!(low - high, 11);
        assert_eq!(low.distance_from(high), 11);
        assert_eq!(high.distance_from(low), -11);
        assert_eq!(high + 11, low);
        assert_eq!((high.later(low), high.earlier(low)), (low, high));
    }

    #[test]
    fn numbers_half_the_circle_away_are_outside_every_range() {
        let start = SeqNum::new(u32::MAX - 10);
        for (offset, length, inside) in [
            (0, 100, true),
            (99, 1, true),
            (0, 101, false),
            (99, 2, false),
            (100, 1, false),
            (5, 0, false),
            (u32::MAX, 2, false),
            (u32::MAX / 2 - 5, 200, false),
            (50, u32::MAX, false),
        ] {
            assert_eq!(
                (start + offset).all_within(length, start, 100),
                inside,
                "{length} from {offset} on"
            );
        }
    }

    #[test]
    fn a_range_across_the_wrap_includes_its_start_and_excludes_its_end() {
        let start = SeqNum::new(u32::MAX);
        assert!(start.within(start, 2) && SeqNum::new(0).within(start, 2));
        assert!(!SeqNum::new(1).within(start, 2) && !start.within(start, 0));
    }
}

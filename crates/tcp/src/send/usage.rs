//! How much of the congestion window the application makes use of (RFC 7661 §4.2).

use crate::rest::pack::packed;
use linerate_wire::SeqNum;

/// The largest flight of late.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Usage {
    /// FlightSize, in bytes.
    largest: u32,
    /// What it ended with: when that is acknowledged, the next flight counts, however small.
    until: SeqNum,
}

packed!(Usage { largest, until });

impl Usage {
    pub(crate) const fn new(start: SeqNum) -> Self {
        Self { largest: 0, until: start }
    }

    /// Nothing more can leave now; `flight` bytes are between `una` and `nxt`.
    pub(crate) fn note(&mut self, una: SeqNum, nxt: SeqNum, flight: u32) {
        if !una.before(self.until) || flight > self.largest {
            (self.largest, self.until) = (flight, nxt);
        }
    }

    /// Was there no flight when nothing more could leave, and has nothing beyond `nxt` left since?
    pub(crate) fn is_nothing_until(&self, nxt: SeqNum) -> bool {
        self.largest == 0 && self.until == nxt
    }

    /// Is the flight more than half of `cwnd`? In slow start, which doubles the window while one flight is
    /// acknowledged, it was then the whole of it.
    pub(crate) const fn is_more_than_half_of(&self, cwnd: u32) -> bool {
        cwnd / 2 < self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_flight_counts_until_it_is_acknowledged() {
        let number = SeqNum::new;
        let mut usage = Usage::new(number(0));
        usage.note(number(0), number(10), 10);
        usage.note(number(4), number(10), 6);
        assert!(usage.is_more_than_half_of(19) && !usage.is_more_than_half_of(20));
        usage.note(number(10), number(13), 3);
        assert!(usage.is_more_than_half_of(5) && !usage.is_more_than_half_of(6));
    }
}

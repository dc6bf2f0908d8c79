//! The record of how much of the congestion window the application has used (RFC 7661 §4.2).

use crate::compact::pack::packed;
use linerate_wire::SeqNum;

/// The recent maximum of the data in flight. The data in flight is recorded whenever no more
/// segments can be sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Usage {
    /// The maximum in bytes.
    largest: u32,
    /// SND.NXT when the maximum was recorded. Once this number is acknowledged, the next recorded
    /// amount replaces the maximum, even if it is smaller.
    until: SeqNum,
}

packed!(Usage { largest, until });

impl Usage {
    pub(crate) const fn new(start: SeqNum) -> Self {
        Self { largest: 0, until: start }
    }

    /// Records that `flight` bytes, from `una` to `nxt`, are in flight. Called when no more
    /// segments can be sent.
    pub(crate) fn note(&mut self, una: SeqNum, nxt: SeqNum, flight: u32) {
        if !una.before(self.until) || flight > self.largest {
            (self.largest, self.until) = (flight, nxt);
        }
    }

    /// Whether zero bytes were recorded most recently, and no data was sent since then. `nxt` is
    /// the present value of SND.NXT.
    pub(crate) fn is_nothing_until(&self, nxt: SeqNum) -> bool {
        self.largest == 0 && self.until == nxt
    }

    /// Whether the recent maximum exceeds half of `cwnd`. Slow start doubles `cwnd` in a round
    /// trip. A flight that exceeds half of it now may thus have filled the window when it was sent,
    /// and the sender counts as cwnd-limited.
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

//! Packet-timed round trips of BBR: a round begins when a segment is sent, and ends when this
//! segment or a later one is delivered (draft-ietf-ccwg-bbr §5.5.1).

use crate::compact::pack::packed;

/// The state of the current round. Amounts are numbers of bytes delivered since the connection was
/// opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rounds {
    /// `next_round_delivered`: the round ends when a segment is delivered that was sent after at
    /// least this number of bytes had been delivered.
    end: u64,
    /// `round_count`: the number of rounds since the connection was opened.
    pub(super) count: u64,
    /// `round_start`: whether the current acknowledgement has begun a round.
    pub(super) started: bool,
}

packed!(Rounds { end, count, started });

impl Rounds {
    /// `UpdateRound`: processes the delivery of a segment. `prior` bytes had been delivered when
    /// the segment was sent, and `delivered` bytes are delivered now.
    pub(super) fn take(&mut self, prior: u64, delivered: u64) {
        self.started = prior >= self.end;
        if self.started {
            self.end = delivered;
            self.count += 1;
        }
    }

    /// `StartRound`: begins a round at the time when `delivered` bytes have been delivered.
    pub(super) const fn begin(&mut self, delivered: u64) {
        self.end = delivered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_lasts_until_something_is_delivered_that_left_in_it() {
        let mut rounds = Rounds::default();
        rounds.take(0, 10);
        assert!(rounds.started);
        rounds.take(5, 20);
        assert!(!rounds.started, "the segment was sent before the round");
        rounds.take(10, 30);
        assert_eq!((rounds.started, rounds.count), (true, 2));
    }
}

//! What must hold of a connection after every step; asked by tests, simulators and fuzzers.

use crate::send::Writes;
use crate::send::loss::Phase;
use crate::timers::Timer;
use crate::{Connection, State};

impl Connection {
    /// Checks every invariant.
    ///
    /// # Panics
    /// If one is broken; the message says which.
    pub fn check(&self) {
        if self.state != State::Closed {
            self.sender.check(&self.snd);
            self.check_scoreboard();
            self.check_frto();
            self.check_window();
            self.check_burst();
            let is_limited = !self.sender.fin() && self.unsent_low_water().is_some();
            assert_eq!(
                self.sender.writes == Writes::Limited,
                is_limited,
                "a low-water mark limits writes"
            );
        }
        if let Some(rare) = &self.rare {
            rare.check();
        }
        if self.state != State::SynSent {
            self.receiver.check(&self.rcv);
        }
        assert!(self.output_due || self.reset_due.is_none(), "a reset that nobody asks for");
        self.check_expectation();
        self.check_timers();
        self.check_rest();
        assert!(
            self.error.is_none() || self.state == State::Closed,
            "an end for a reason, in {:?}",
            self.state
        );
        if self.state == State::Closed {
            assert_eq!(
                self.timers.next(),
                linerate_units::Instant::NEVER,
                "a timer outlives the connection"
            );
        }
    }

    /// Checks that `twin`, which was given the same, has come to the same: state, what it will
    /// send, and events. Only what header prediction knows of itself may differ, which the twin is told
    /// first: a copy of it to compare with would cost as much as its buffers are large.
    ///
    /// # Panics
    /// If the two differ.
    pub fn assert_agrees_with(&self, twin: &mut Self) {
        twin.expectation.copy_prediction_from(self.expectation);
        twin.preferences.header_prediction = self.preferences.header_prediction;
        twin.statistics.prediction = self.statistics.prediction.clone();
        assert_eq!(self, twin, "the fast and the slow path have parted");
    }

    /// Checks that a refused segment has left the connection as it was `before` it came. Exempt are the
    /// counters, the budget of challenge ACKs, and what says that an answer is due.
    ///
    /// # Panics
    /// If anything else has changed.
    pub fn assert_unchanged_by_refusal(&self, before: &Self) {
        let mut expected = before.clone();
        expected.statistics = self.statistics.clone();
        expected.next_challenge = self.next_challenge;
        (expected.ack_due, expected.challenge_due) = (self.ack_due, self.challenge_due);
        (expected.reset_due, expected.output_due) = (self.reset_due.clone(), self.output_due);
        if self.reset_due.is_some() {
            // The reset leaves before anything else.
            expected.limit_burst(0);
        }
        assert_eq!(*self, expected, "a refused segment has changed its connection");
    }

    /// The same for a twin that is given no data before their checksum is found right, and whose buffers have memory of
    /// their own for good. What else lies in this one's memory lies where nothing is, and nobody reads it: the twin is
    /// told of that first, too.
    ///
    /// # Panics
    /// If the two differ.
    pub fn assert_behaves_like(&self, twin: &mut Self) {
        twin.receiver.take_leftovers_of(&self.receiver, &self.rcv);
        twin.sender.buffer.take_leftovers_of(&self.sender.buffer);
        assert_eq!(
            self, twin,
            "data that were put in place before their checksum was looked at have shown"
        );
    }

    /// If it can rest, it comes back as it was.
    fn check_rest(&self) {
        if let Some(resting) = self.rest() {
            assert_eq!(resting.look(), *self, "rest has changed the connection");
        }
    }

    /// Checks that `asked`, which was asked for its next segment where this one has gone on with a burst, has
    /// come to the same. It may go on for longer, because it has begun later.
    ///
    /// # Panics
    /// If the two differ.
    pub fn assert_went_on_like(&self, asked: &mut Self) {
        assert!(
            self.expectation.burst() <= asked.expectation.burst(),
            "the burst has become longer on its way"
        );
        asked.limit_burst(self.expectation.burst());
        assert_eq!(self, asked, "a burst and segments that were asked for one by one have parted");
    }

    fn check_window(&self) {
        let (full, cwnd) = (self.full_segment(), self.sender.congestion.window().cwnd());
        let is_known = self.state.is_synchronized();
        assert!(!is_known || full <= cwnd, "a congestion window of {cwnd} for segments of {full}");
    }

    fn check_scoreboard(&self) {
        if self.agreement.selective_acks && self.state.is_synchronized() {
            self.sender.scoreboard.check(self.snd.una, self.snd.nxt);
        }
    }

    fn check_frto(&self) {
        let loss = &self.sender.loss;
        let may_ask = loss.phase == Phase::AfterTimeout || !loss.frto.is_on();
        assert!(may_ask, "F-RTO is {:?} in {:?}", loss.frto, loss.phase);
    }

    fn check_timers(&self) {
        self.timers.check();
        let set = |timer| self.timers.is_set(timer);
        if self.state.is_synchronized() && self.snd.nxt != self.snd.una && !self.output_due {
            assert!(
                set(Timer::Retransmit),
                "{} bytes are in flight in {:?} and no timer watches them",
                self.snd.flight(),
                self.state
            );
        }
        if self.state == State::TimeWait {
            assert!(set(Timer::TimeWait), "TIME-WAIT would never end");
        }
        if self.state.sends_data()
            && !self.output_due
            && self.snd.nxt == self.snd.una
            && self.sender.has_unsent(self.snd.nxt)
        {
            assert!(
                set(Timer::Persist) || set(Timer::Retransmit) || set(Timer::Pacing),
                "data waits in {:?}, nothing is in flight, and no timer will ask again",
                self.state
            );
        }
        if self.waits_for_pacer() && !self.output_due {
            assert!(set(Timer::Pacing), "data waits for its time to come, and no timer will tell");
        }
        if self.state.takes_data() && !self.ack_due {
            let owes = self.receiver.owes_duplicates(self.agreement.selective_acks);
            assert!(!owes, "the peer would never hear of what lies beyond a hole");
        }
        if self.state.takes_data() && self.rcv.pending() > 0 && !self.ack_due {
            assert!(set(Timer::DelayedAck), "received data would never be acknowledged");
        }
    }
}

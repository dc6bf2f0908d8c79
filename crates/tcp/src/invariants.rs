//! The invariants of a connection, checked after every step by tests, simulators and fuzzers.

use crate::send::Writes;
use crate::send::loss::Phase;
use crate::timers::Timer;
use crate::{Connection, State};

impl Connection {
    /// Checks every invariant of the connection.
    ///
    /// # Panics
    /// If an invariant is broken. The message names the invariant.
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
        assert!(self.output_due || self.reset_due.is_none(), "a reset without pending output");
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

    /// Checks that `twin`, which has processed the same input without header prediction, is equal
    /// in state, output and events. Only the values of header prediction may differ. They are
    /// therefore copied from this connection to `twin` before the comparison. `twin` is changed in
    /// place, because a copy of it would include its buffers and be slow.
    ///
    /// # Panics
    /// If the connections differ.
    pub fn assert_agrees_with(&self, twin: &mut Self) {
        twin.expectation.copy_prediction_from(self.expectation);
        twin.preferences.header_prediction = self.preferences.header_prediction;
        twin.statistics.prediction = self.statistics.prediction.clone();
        assert_eq!(self, twin, "the fast and the slow path differ");
    }

    /// Checks that a refused segment has left the connection as it was in `before`. Only counters,
    /// the budget of challenge ACKs and pending answers may differ.
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
            // The refused segment has made a reset due, which is sent before all other output. A
            // burst that was in progress has therefore ended.
            expected.limit_burst(0);
        }
        assert_eq!(*self, expected, "a refused segment has changed its connection");
    }

    /// Checks that this connection equals `twin`, in which the same data was stored only after its
    /// checksum was verified. In this connection, the data was stored before the verification. Only
    /// buffer memory that contains no data may differ. It is therefore copied to `twin` before the
    /// comparison.
    ///
    /// # Panics
    /// If the connections differ.
    pub fn assert_behaves_like(&self, twin: &mut Self) {
        twin.receiver.copy_unused_memory(&self.receiver, &self.rcv);
        twin.sender.buffer.copy_unused_memory(&self.sender.buffer);
        assert_eq!(self, twin, "data stored before its checksum was verified has had an effect");
    }

    /// Checks that the connection does not change if it is compacted and restored.
    fn check_rest(&self) {
        if let Some(compact) = self.compact() {
            assert_eq!(compact.look(), *self, "compaction has changed the connection");
        }
    }

    /// Checks that this connection, which has continued a burst, equals `asked`, which has chosen
    /// each segment individually. Only the remaining length of the burst may differ: that of
    /// `asked` may be longer, because it was found later.
    ///
    /// # Panics
    /// If the connections differ otherwise.
    pub fn assert_went_on_like(&self, asked: &mut Self) {
        assert!(
            self.expectation.burst() <= asked.expectation.burst(),
            "a burst must not become longer"
        );
        asked.limit_burst(self.expectation.burst());
        assert_eq!(self, asked, "a burst and individually chosen segments differ");
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
            assert!(set(Timer::Pacing), "paced data waits without a timer");
        }
        if self.state.takes_data() && !self.ack_due {
            let owes = self.receiver.owes_duplicates(self.agreement.selective_acks);
            assert!(!owes, "the peer would never learn of data beyond a hole");
        }
        if self.state.takes_data() && self.rcv.pending() > 0 && !self.ack_due {
            assert!(set(Timer::DelayedAck), "received data would never be acknowledged");
        }
    }
}

//! State derived from a connection: the expected header of the next segment (header prediction),
//! whether any special output is due, and the number of segments that may continue a burst. A
//! common segment can be recognized by this state alone.
//!
//! Derived values become stale when their sources change. So the fields are private to this module,
//! and are written in three places only: [`Connection::slow`] and [`Connection::slow_control`]
//! derive them again whenever the slow path ends, and a segment sent or received on the fast path
//! shortens the burst. The fast path must not change any source of the derived values, which
//! [`Connection::check`] verifies by deriving them again.

use crate::compact::pack::{Pack, Packer, Unpacker};
use crate::ecn::EcnSignals;
use crate::input::validate::Valid;
use crate::input::validate::control::ControlRun;
use crate::input::validate::predict::expected_header;
use crate::{Connection, State};
use linerate_units::Instant;

/// The derived values.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Expectation {
    /// Data offset and flags of the next segment. No segment has 0, which means that nothing is
    /// predicted.
    header: u16,
    /// Number of full segments of new data that may follow the last one without being chosen by
    /// [`Connection::choose`].
    burst: u8,
    /// Is a header predicted, and is no output due but new data, the FIN, and the acknowledgement
    /// of data received in order?
    is_plain: bool,
}

impl Expectation {
    /// Predicts nothing: the state of a new connection.
    pub(crate) const NONE: Self = Self { header: 0, burst: 0, is_plain: false };

    /// Derives the expectation of `connection`, and ends a burst.
    #[inline(always)]
    fn of(connection: &Connection) -> Self {
        match connection.state {
            State::Established => Self::of_established(connection),
            _ => Self::NONE,
        }
    }

    #[inline(never)]
    fn of_established(connection: &Connection) -> Self {
        let header = expected_header(connection);
        // Without a predicted header, `has_only_plain_output` is evaluated when a segment is sent,
        // once after each slow step.
        let is_plain = header != 0 && connection.has_only_plain_output();
        Self { header, burst: 0, is_plain }
    }

    /// Returns data offset and flags of the next segment, or 0 if nothing is predicted.
    #[inline(always)]
    pub(crate) const fn header(self) -> u16 {
        self.header
    }

    /// Is a header predicted, and is no output due but new data, the FIN, and the acknowledgement
    /// of data received in order?
    #[inline(always)]
    pub(crate) const fn is_plain(self) -> bool {
        self.is_plain
    }

    /// Returns how many full segments of new data may follow the last one without being chosen
    /// individually.
    #[inline(always)]
    pub(crate) const fn burst(self) -> u8 {
        self.burst
    }

    /// Copies the predicted header from `other`, to compare two connections of which one has
    /// prediction disabled.
    pub(crate) const fn copy_prediction_from(&mut self, other: Self) {
        *self = Self { burst: self.burst, ..other };
    }
}

/// An expectation is not stored in a compact connection, but derived when the connection is
/// restored.
impl Pack for Expectation {
    fn pack(&self, _: &mut Packer<'_>) {}

    fn unpack(_: &mut Unpacker<'_>) -> Self {
        Self::NONE
    }
}

impl Connection {
    /// Runs `step`, a step of the slow path, and then derives the expectation anew. Every public
    /// method that changes a source of the expectation runs inside this one.
    #[inline(always)]
    pub(crate) fn slow<T>(&mut self, step: impl FnOnce(&mut Self) -> T) -> T {
        let result = step(self);
        self.expectation = Expectation::of(self);
        result
    }

    /// Handles a predicted control segment like [`Self::slow`], without a closure, which would not
    /// be inlined.
    #[inline(always)]
    pub(crate) fn slow_control(&mut self, now: Instant, segment: Valid<'_>, run: ControlRun) {
        self.take_predicted_control(now, segment, run);
        self.expectation = Expectation::of(self);
    }

    /// Sets the number of segments that may continue the burst.
    #[inline(always)]
    pub(crate) const fn limit_burst(&mut self, segments: u8) {
        self.expectation.burst = segments;
    }

    /// Do segments have the usual options only, and is no output due but new data, the FIN, and the
    /// acknowledgement of data received in order?
    #[inline(always)]
    pub(crate) fn has_only_plain_output(&self) -> bool {
        self.timestamps.on
            && self.agreement.selective_acks
            && self.state.is_synchronized()
            && !self.is_anything_special_due()
    }

    #[inline(always)]
    fn is_anything_special_due(&self) -> bool {
        let (sender, loss) = (&self.sender, &self.sender.loss);
        let by_timers = loss.tail_probe_due | sender.probe_due | self.keep_alive_due;
        let by_path = sender.path.is_awake() | (sender.probes > 0);
        let by_options = self.user_timeouts.due
            | self.receiver.owes_duplicate()
            | self.ecn.is_option_due(BY_ECN);
        let by_application =
            sender.urgent.is_some() | self.rare.as_ref().is_some_and(|rare| rare.shape_output());
        // The answer to an unacceptable segment may still be due after the segment of `first_due`.
        self.first_due
            | self.reset_due.is_some()
            | by_timers
            | by_path
            | by_options
            | by_application
    }

    /// Checks that the expectation is what would be derived now.
    ///
    /// # Panics
    /// If the two differ: a source of the expectation was changed outside [`Connection::slow`].
    pub(crate) fn check_expectation(&self) {
        let Expectation { header, is_plain, .. } = Expectation::of(self);
        let stored = self.expectation;
        let state = self.state;
        assert_eq!(stored.header, header, "the predicted header is stale in {state:?}");
        assert_eq!(stored.is_plain, is_plain, "the pending output is stale in {state:?}");
    }
}

/// The ECN signals that add an option or a flag to a segment.
const BY_ECN: EcnSignals = EcnSignals::OPTION_WITH_DATA.union(EcnSignals::CWR_DUE);

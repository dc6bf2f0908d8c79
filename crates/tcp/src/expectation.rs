//! Values that are derived from a connection, so that common cases are recognised fast. The first
//! is the expected header of the next received segment (header prediction). The others are whether
//! special output is due, and the number of segments that may continue a burst.
//!
//! Derived values become stale when their sources change, so only this module writes them.
//! [`Connection::slow`] and [`Connection::slow_control`] derive them again whenever the slow path
//! ends. The fast paths for sent and received segments only shorten the burst. They must not change
//! any value from which the expectation is derived. [`Connection::check`] verifies this by deriving
//! the values again.

use crate::compact::pack::{Pack, Packer, Unpacker};
use crate::ecn::EcnSignals;
use crate::input::validate::Valid;
use crate::input::validate::control::ControlRun;
use crate::input::validate::predict::expected_header;
use crate::{Connection, State};
use linerate_units::Instant;

/// Values derived from a connection, by which the fast paths recognise common segments.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Expectation {
    /// The expected data offset and flags of the next received segment. Zero, which no segment has,
    /// means that no header is predicted.
    header: u16,
    /// The number of full segments of new data that may follow the most recently sent segment
    /// without a call of [`Connection::choose`] for each of them.
    burst: u8,
    /// Whether a header is predicted and any output that is due is plain: new data, the FIN, or the
    /// acknowledgement of data received in order.
    is_plain: bool,
}

impl Expectation {
    /// The state of a new connection, in which no header is predicted.
    pub(crate) const NONE: Self = Self { header: 0, burst: 0, is_plain: false };

    /// Derives the values from `connection`. A burst in progress ends, because `burst` becomes
    /// zero.
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
        // If no header is predicted, it is not computed whether the output is plain, because this
        // would cost time after each step of the slow path. `is_plain` is then false, and output
        // calls `has_only_plain_output` itself.
        let is_plain = header != 0 && connection.has_only_plain_output();
        Self { header, burst: 0, is_plain }
    }

    /// Returns the expected data offset and flags of the next segment, or zero if none is
    /// predicted.
    #[inline(always)]
    pub(crate) const fn header(self) -> u16 {
        self.header
    }

    /// Whether a header is predicted and any output that is due is plain: new data, the FIN, or the
    /// acknowledgement of data received in order.
    #[inline(always)]
    pub(crate) const fn is_plain(self) -> bool {
        self.is_plain
    }

    /// Returns the number of full segments of new data that may follow the most recently sent
    /// segment without an individual choice.
    #[inline(always)]
    pub(crate) const fn burst(self) -> u8 {
        self.burst
    }

    /// Copies the values of header prediction from `other`, so that a connection with header
    /// prediction can be compared with one without.
    pub(crate) const fn copy_prediction_from(&mut self, other: Self) {
        *self = Self { burst: self.burst, ..other };
    }
}

/// Takes no space in a compact connection: the values are derived when the connection is restored.
impl Pack for Expectation {
    fn pack(&self, _: &mut Packer<'_>) {}

    fn unpack(_: &mut Unpacker<'_>) -> Self {
        Self::NONE
    }
}

impl Connection {
    /// Runs `step`, a part of the slow path, and then derives the expectation again. Outside of
    /// such a step, no public method may change a value from which the expectation is derived.
    #[inline(always)]
    pub(crate) fn slow<T>(&mut self, step: impl FnOnce(&mut Self) -> T) -> T {
        let result = step(self);
        self.expectation = Expectation::of(self);
        result
    }

    /// Handles a predicted control segment, and then derives the expectation again. It does not
    /// call [`Self::slow`], whose closure would prevent inlining here.
    #[inline(always)]
    pub(crate) fn slow_control(&mut self, now: Instant, segment: Valid<'_>, run: ControlRun) {
        self.take_predicted_control(now, segment, run);
        self.expectation = Expectation::of(self);
    }

    /// Sets the number of full segments that may continue the current burst.
    #[inline(always)]
    pub(crate) const fn limit_burst(&mut self, segments: u8) {
        self.expectation.burst = segments;
    }

    /// Whether any output that is due is plain: new data, the FIN, or the acknowledgement of data
    /// received in order. The segments must also have the usual options only.
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
        // `first_due` requests a SYN, a SYN-ACK, or an ACK without data and SACK blocks, which
        // precedes all other output. This is special even if an ordinary acknowledgement is due as
        // well.
        self.first_due
            | self.reset_due.is_some()
            | by_timers
            | by_path
            | by_options
            | by_application
    }

    /// Checks that the stored expectation equals the one that is derived now.
    ///
    /// # Panics
    /// If they differ, because a source of the expectation was changed outside
    /// [`Connection::slow`].
    pub(crate) fn check_expectation(&self) {
        let Expectation { header, is_plain, .. } = Expectation::of(self);
        let stored = self.expectation;
        let state = self.state;
        assert_eq!(stored.header, header, "the predicted header is stale in {state:?}");
        assert_eq!(stored.is_plain, is_plain, "the pending output is stale in {state:?}");
    }
}

/// The ECN signals that add an option or flag to the next segment, so that it is not plain.
const BY_ECN: EcnSignals = EcnSignals::OPTION_WITH_DATA.union(EcnSignals::CWR_DUE);

//! The interface between a script and the host under test.

use crate::packet::Captured;
use crate::syntax::{Call, ControlMessage, EpollEvent, Errno, LineMark, OptionValue, Setting};
use linerate_units::Duration;

/// A host under test, with its link and its clock. Times count from the start of the script.
pub(crate) trait Machine {
    /// Maximum time to wait for an event that may happen at any time (`*` in the script).
    const MAX_WAIT: Duration;
    /// Whether the host's timers may fire late by a fraction of their duration. If so, the
    /// tolerance for the time of an event grows with the time since the previous event.
    const HAS_COARSE_TIMERS: bool;

    /// Returns the present time.
    fn now(&self) -> Duration;

    /// Lets time pass until `at`.
    fn wait_until(&mut self, at: Duration) -> Result<(), MachineError>;

    /// Delivers a packet to the host. `line` requests that a serial line damages or loses the
    /// packet.
    fn inject(&mut self, packet: &[u8], line: Option<LineMark>) -> Result<(), MachineError>;

    /// Waits for the next packet of the host; returns `None` if there is none until `until`.
    fn next_packet(&mut self, until: Duration) -> Result<Option<Captured>, MachineError>;

    /// Applies a setting, such as a sysctl, to the host.
    fn set(&mut self, setting: &Setting) -> Result<(), MachineError>;

    /// Starts a system call. A socket that the call creates gets the number `name`. Returns the
    /// result, or `None` if the call has not returned yet. `may_wait` is true if the script gives
    /// the call a return time; the result can then be left to [`Machine::finish`]. Only one call
    /// can be in progress.
    fn begin(
        &mut self,
        call: &Call,
        name: i32,
        may_wait: bool,
    ) -> Result<Option<Answer>, MachineError>;

    /// Returns the time and the result of the current call, if it returns before `until`.
    fn finish(&mut self, until: Duration) -> Result<Option<(Duration, Answer)>, MachineError>;

    /// Returns a field of `struct tcp_info` of socket `name`, or `None` if it is not available. The
    /// name `field` is given without the prefix `tcpi_`.
    fn field(&self, name: i32, field: &str) -> Option<u64>;
}

/// The reason why a host could not execute a request.
#[derive(Clone, Debug)]
pub(crate) enum MachineError {
    /// The host does not support the request; the text names it.
    Refused(String),
    /// The host itself failed; the text says how.
    Broken(String),
}

/// The result of a system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) result: Result<i64, Errno>,
    pub(crate) output: Output,
}

/// The data that a system call has stored in its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Output {
    /// Nothing that a script could compare.
    #[default]
    Nothing,
    Option(OptionValue),
    Bytes(Vec<u8>),
    /// The `revents` of each socket that was polled.
    Events(Vec<i64>),
    Number(i64),
    /// Received data, and control messages.
    Message(Vec<u8>, Vec<ControlMessage>),
    /// The events that `epoll_wait` returned.
    Epoll(Vec<EpollEvent>),
}

impl Answer {
    pub(crate) const fn of(value: i64) -> Self {
        Self { result: Ok(value), output: Output::Nothing }
    }

    /// Returns the result of a call that returns the number `count` and stores `output` in its
    /// arguments.
    pub(crate) fn of_count(count: usize, output: Output) -> Self {
        Self { result: Ok(i64::try_from(count).unwrap_or(i64::MAX)), output }
    }

    pub(crate) const fn error(errno: Errno) -> Self {
        Self { result: Err(errno), output: Output::Nothing }
    }
}

//! The interface to a host under test.

use crate::packet::Captured;
use crate::syntax::{Call, ControlMessage, EpollEvent, Errno, OptionValue, Setting};
use linerate_units::Duration;

/// A host, its link and its clock. Times are relative to the start of the script.
pub(crate) trait Machine {
    /// Maximum wait for an event without a time.
    const MAX_WAIT: Duration;
    /// Are the timers of the host coarse? If so, the tolerance grows with the time since the
    /// previous event.
    const HAS_COARSE_TIMERS: bool;

    /// Returns the current time.
    fn now(&self) -> Duration;

    /// Lets time pass until `at`.
    fn wait_until(&mut self, at: Duration) -> Result<(), MachineError>;

    /// Delivers a packet to the host.
    fn inject(&mut self, packet: &[u8]) -> Result<(), MachineError>;

    /// Waits for the next segment of the host, at most until `until`.
    fn next_packet(&mut self, until: Duration) -> Result<Option<Captured>, MachineError>;

    /// Applies a setting.
    fn set(&mut self, setting: &Setting) -> Result<(), MachineError>;

    /// Starts a call. A socket that it returns gets the number `name`. Returns `None` if the call
    /// waits. There is one call at a time.
    fn begin(
        &mut self,
        call: &Call,
        name: i32,
        may_wait: bool,
    ) -> Result<Option<Answer>, MachineError>;

    /// Waits for the end of the current call, at most until `until`.
    fn finish(&mut self, until: Duration) -> Result<Option<(Duration, Answer)>, MachineError>;

    /// Returns a field of `struct tcp_info`, without its prefix, of socket `name`.
    fn field(&self, name: i32, field: &str) -> Option<u64>;
}

/// The reason why a machine could not execute a request.
#[derive(Clone, Debug)]
pub(crate) enum MachineError {
    /// The machine does not support the request.
    Refused(String),
    /// The machine failed.
    Broken(String),
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) result: Result<i64, Errno>,
    pub(crate) output: Output,
}

/// The data that a call has written to its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Output {
    /// The call has no result that a script could compare.
    #[default]
    Nothing,
    Option(OptionValue),
    Bytes(Vec<u8>),
    /// `revents` of each socket.
    Events(Vec<i64>),
    Number(i64),
    /// Data, with control messages.
    Message(Vec<u8>, Vec<ControlMessage>),
    /// The events that `epoll_wait` returned.
    Epoll(Vec<EpollEvent>),
}

impl Answer {
    pub(crate) const fn of(value: i64) -> Self {
        Self { result: Ok(value), output: Output::Nothing }
    }

    /// Returns a count, and data with it.
    pub(crate) fn of_count(count: usize, output: Output) -> Self {
        Self { result: Ok(i64::try_from(count).unwrap_or(i64::MAX)), output }
    }

    pub(crate) const fn error(errno: Errno) -> Self {
        Self { result: Err(errno), output: Output::Nothing }
    }
}

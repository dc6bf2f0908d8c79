//! What a script needs of the host that it examines.

use crate::packet::Captured;
use crate::syntax::{Call, ControlMessage, EpollEvent, Errno, OptionValue, Setting};
use linerate_units::Duration;

/// A host, its link and its clock. Moments are counted from the beginning of the script.
pub(crate) trait Machine {
    /// The longest that something without a time is waited for.
    const PATIENCE: Duration;
    /// Are its timers so coarse that a moment may be off by a share of the time since the last
    /// event?
    const COARSE: bool;

    /// The present.
    fn now(&self) -> Duration;

    /// Lets time go by until `at`.
    fn pass_until(&mut self, at: Duration) -> Result<(), Trouble>;

    /// Has a packet arrive at the host.
    fn inject(&mut self, packet: &[u8]) -> Result<(), Trouble>;

    /// The next segment that the host has sent, for which time goes by until `until` at the latest.
    fn next_packet(&mut self, until: Duration) -> Result<Option<Captured>, Trouble>;

    /// Sets the host up.
    fn set(&mut self, setting: &Setting) -> Result<(), Trouble>;

    /// Begins a call; a socket that comes of it is called `name` from then on. `None`: it waits.
    /// There is one call at a time.
    fn begin(&mut self, call: &Call, name: i32, may_wait: bool) -> Result<Option<Answer>, Trouble>;

    /// The end of the call that waits, for which time goes by until `until` at the latest.
    fn finish(&mut self, until: Duration) -> Result<Option<(Duration, Answer)>, Trouble>;

    /// A field of `struct tcp_info`, without its prefix, of the connection called `name`.
    fn field(&self, name: i32, field: &str) -> Option<u64>;
}

/// Why a machine could not do what it was asked to.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// It does not have what is asked for.
    Refused(String),
    /// It does not work.
    Broken(String),
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) result: Result<i64, Errno>,
    pub(crate) output: Output,
}

/// What a call has written into its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Output {
    /// Nothing that a script could ask for.
    #[default]
    Nothing,
    Option(OptionValue),
    Bytes(Vec<u8>),
    /// `revents` of each socket.
    Events(Vec<i64>),
    Number(i64),
    /// Bytes, and control messages beside them.
    Message(Vec<u8>, Vec<ControlMessage>),
    /// The events that `epoll_wait` returned.
    Epoll(Vec<EpollEvent>),
}

impl Answer {
    pub(crate) const fn of(value: i64) -> Self {
        Self { result: Ok(value), output: Output::Nothing }
    }

    pub(crate) const fn error(errno: Errno) -> Self {
        Self { result: Err(errno), output: Output::Nothing }
    }
}

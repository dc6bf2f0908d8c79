//! The hops of a trace.

use linerate_units::Duration;
use std::fmt;
use std::net::IpAddr;

/// The reason of a report that is not the expected one, with the marks of other implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// No route to the network.
    Network,
    /// The host does not answer.
    Host,
    /// The protocol is unknown.
    Protocol,
    /// The port is closed, reported by another host than the destination.
    Port,
    /// A filter prohibits the communication.
    Prohibited,
    /// The probe exceeds this MTU.
    TooBig(u32),
    /// Another error.
    Other,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => f.write_str("!N"),
            Self::Host => f.write_str("!H"),
            Self::Protocol => f.write_str("!P"),
            Self::Port => f.write_str("!p"),
            Self::Prohibited => f.write_str("!X"),
            Self::TooBig(mtu) => write!(f, "!F-{mtu}"),
            Self::Other => f.write_str("!?"),
        }
    }
}

/// The answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The sender of the answer.
    pub from: IpAddr,
    /// The time from the probe to the answer.
    pub round_trip: Duration,
    /// The reason, if the answer is an error other than an exceeded TTL or a closed port of the
    /// destination.
    pub note: Option<Note>,
}

/// The answers to the probes with one TTL or hop limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The TTL or hop limit.
    pub number: u8,
    /// The answer to each probe; `None` if there was none in time.
    pub answers: Vec<Option<Answer>>,
    /// Has the destination answered?
    pub is_destination: bool,
}

impl Hop {
    /// Is a further hop useless? Either the destination has answered, or all answers are errors.
    #[must_use]
    pub fn ends_trace(&self) -> bool {
        let mut answered = self.answers.iter().flatten().peekable();
        let has_any = answered.peek().is_some();
        self.is_destination || (has_any && answered.all(|answer| answer.note.is_some()))
    }
}

/// The hops of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceReport {
    /// The hops, in the order of their distance.
    pub hops: Vec<Hop>,
    /// Has the destination answered?
    pub reached: bool,
}

//! The result of a trace: its hops, and the answers to their probes.

use linerate_units::Duration;
use std::fmt;
use std::net::IpAddr;

/// The reason for an unexpected answer to a probe. It is displayed as in other implementations of
/// traceroute (`!N`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The router has no route to the network.
    Network,
    /// The router cannot reach the host.
    Host,
    /// The host does not support the protocol.
    Protocol,
    /// The port is closed. Only the destination should report this, but another host did.
    Port,
    /// A filter prohibits the packet.
    Prohibited,
    /// The probe is larger than this MTU in bytes.
    TooBig(u32),
    /// Any other error.
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
    /// The source address of the answer.
    pub from: IpAddr,
    /// Time from sending the probe to receiving the answer.
    pub round_trip: Duration,
    /// The reason for an unexpected answer. `None` for the expected ones: an exceeded TTL, and an
    /// answer of the destination.
    pub note: Option<Note>,
}

/// The answers to all probes with one TTL or hop limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The TTL or hop limit of the probes.
    pub number: u8,
    /// The answer to each probe; `None` if it was not answered in time.
    pub answers: Vec<Option<Answer>>,
    /// Has the destination answered?
    pub is_destination: bool,
}

impl Hop {
    /// Returns whether the trace ends with this hop. Hops after it are pointless if the destination
    /// has answered, or every answer of this hop reports an error.
    #[must_use]
    pub fn ends_trace(&self) -> bool {
        let mut answered = self.answers.iter().flatten().peekable();
        let has_any = answered.peek().is_some();
        self.is_destination || (has_any && answered.all(|answer| answer.note.is_some()))
    }
}

/// The result of a trace: its hops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceReport {
    /// The hops, in the order of increasing TTL or hop limit.
    pub hops: Vec<Hop>,
    /// Has the destination answered?
    pub reached: bool,
}

//! Errors of a transfer.

use crate::plan::PlanError;
use linerate_ends::control::ControlError;
use linerate_ends::iperf3::Iperf3Error;
use linerate_ends::socket::CongestionError;
use linerate_link::OpenError;
use linerate_link::kernel_interface::InterfaceError;
use linerate_link::tap::TapError;
use linerate_sim_tools::ScenarioError;
use linerate_stack::LinkError;
use std::io;
use thiserror::Error;

/// The party that can resolve an error. It determines the exit code of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request, or the machine it was made on: correct it and try again.
    Input,
    /// Something failed during the run.
    Running,
    /// The user interrupted the run.
    Interrupted,
}

/// The reason why a transfer failed. Each message ends with the remedy.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The plan uses a name that the bench does not know.
    #[error("there is no {what} `{name}`: choose one of {known}")]
    UnknownName {
        /// The kind of name: `congestion control`, `profile`.
        what: &'static str,
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The kernel does not have the congestion control, or does not allow it.
    #[error(transparent)]
    Congestion(#[from] CongestionError),
    /// The plan is for another bench.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Packets of the plan do not fit the link, or have no room for data.
    #[error("an MTU of {mtu} bytes cannot be used here: {remedy}")]
    Mtu {
        /// The MTU of the plan.
        mtu: u32,
        /// The possible values.
        remedy: String,
    },
    /// The granted buffer is smaller than requested.
    #[error(
        "a {which} buffer of {requested} bytes is not available, {granted} are granted: {remedy}"
    )]
    BufferTooLarge {
        /// `send` or `receive`.
        which: &'static str,
        /// Bytes requested.
        requested: u64,
        /// Bytes granted.
        granted: u64,
        /// The remedy.
        remedy: String,
    },
    /// Another program uses the port.
    #[error("port {port} is in use: choose another one or end the program that has it")]
    PortInUse {
        /// The port.
        port: u16,
    },
    /// The peer does not answer.
    #[error(
        "{peer} cannot be reached ({source}): check that the machine is up and runs `linerate sink`"
    )]
    Unreachable {
        /// The address of the peer.
        peer: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The peer is another program.
    #[error("{peer} is not linerate: start `linerate sink` there, or name the port it listens on")]
    NotLinerate {
        /// The address of the peer.
        peer: String,
    },
    /// The sink violated the protocol or reported an error.
    #[error("{peer} failed ({what}): see the output of its `linerate sink`")]
    PeerFailed {
        /// The address of the peer.
        peer: String,
        /// The violation or the reported error.
        what: String,
    },
    /// The iperf3 server is busy, or violated the protocol.
    #[error("{peer} cannot be used ({what}): see the output of its `iperf3 -s`")]
    Iperf3 {
        /// The address of the peer.
        peer: String,
        /// The violation or the refusal.
        what: String,
    },
    /// The connection ended before all data was transferred.
    #[error(
        "the connection ended after {bytes} bytes ({what}): run it again, with --pcap to see why"
    )]
    ConnectionLost {
        /// Bytes that the sink had read.
        bytes: u64,
        /// The reason.
        what: String,
    },
    /// The link of linerate's host failed during the run.
    #[error("the interface `{interface}` has failed: {source}")]
    LinkLost {
        /// The interface.
        interface: String,
        /// The error of the link.
        source: LinkError,
    },
    /// The MTU of the interface was changed during the night.
    #[error(
        "the MTU of `{interface}` was {was} bytes when the night began, and is {now} now: set it \
         back"
    )]
    MtuChanged {
        /// The interface.
        interface: String,
        /// MTU of the interface at the start.
        was: u64,
        /// MTU of the interface now.
        now: u64,
    },
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// No TAP device could be opened.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// The interface could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kernel's end of a link could not be configured.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The capture file could not be written.
    #[error("the capture cannot be written ({source}): make room for it, or leave --pcap out")]
    Capture {
        /// The error of the system.
        source: io::Error,
    },
    /// The operating system refused something.
    #[error("{what} failed ({source}): see `linerate doctor`")]
    Io {
        /// The operation.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The user interrupted the run.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    /// Creates the error of an operation that the system usually allows.
    pub(crate) fn io(what: &str, source: io::Error) -> Self {
        Self::Io { what: what.to_owned(), source }
    }

    /// Converts an error on the control connection to the sink at `peer`.
    pub(crate) fn of_control(error: ControlError, peer: &impl ToString) -> Self {
        let peer = peer.to_string();
        match error {
            ControlError::Unreachable(source) => Self::Unreachable { peer, source },
            ControlError::NotLinerate { .. } => Self::NotLinerate { peer },
            other => Self::PeerFailed { peer, what: other.to_string() },
        }
    }

    /// Converts an error of a test with the iperf3 server at `peer`.
    pub(crate) fn of_iperf3(error: &Iperf3Error, peer: &impl ToString) -> Self {
        Self::Iperf3 { peer: peer.to_string(), what: error.to_string() }
    }

    /// Returns the party that can resolve the error.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::UnknownName { .. }
            | Self::Plan(_)
            | Self::Mtu { .. }
            | Self::BufferTooLarge { .. }
            | Self::Congestion(_)
            | Self::PortInUse { .. }
            | Self::Unreachable { .. }
            | Self::NotLinerate { .. }
            | Self::Iperf3 { .. }
            | Self::Scenario(_)
            | Self::Tap(_)
            | Self::Open(_)
            | Self::Interface(_)
            | Self::Capture { .. } => Fault::Input,
            Self::PeerFailed { .. }
            | Self::ConnectionLost { .. }
            | Self::LinkLost { .. }
            | Self::MtuChanged { .. }
            | Self::Io { .. } => Fault::Running,
            Self::Interrupted => Fault::Interrupted,
        }
    }
}

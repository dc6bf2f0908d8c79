//! The errors of benches, and of the transfers that they execute.

use crate::plan::PlanError;
use linerate_ends::control::ControlError;
use linerate_ends::iperf3::Iperf3Error;
use linerate_ends::serve::ListenError;
use linerate_ends::socket::CongestionError;
use linerate_link::OpenError;
use linerate_link::kernel_interface::InterfaceError;
use linerate_link::tap::TapError;
use linerate_sim_tools::ScenarioError;
use linerate_stack::LinkError;
use std::io;
use thiserror::Error;

/// The kind of an error, which determines the exit code of the command. There are errors that the
/// user can resolve, failures during a run, and interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A wrong request or an unsuitable machine. The user or the administrator can change that.
    Input,
    /// A failure during a run, such as a lost connection.
    Running,
    /// An interrupt by the user.
    Interrupted,
}

/// The reason why a bench could not be created, or why a transfer failed. Most messages end with
/// the remedy.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The plan names a profile or a congestion control that the bench does not have.
    #[error("there is no {what} `{name}`: choose one of {known}")]
    UnknownName {
        /// The kind of name, such as `congestion control` or `profile`.
        what: &'static str,
        /// The unknown name.
        name: String,
        /// The valid names, separated by commas.
        known: String,
    },
    /// The kernel does not have the congestion control of the plan, or does not allow its use.
    #[error(transparent)]
    Congestion(#[from] CongestionError),
    /// The plan is not suitable for the bench.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The MTU of the plan exceeds the MTU of the link, or leaves no room for data.
    #[error("an MTU of {mtu} bytes cannot be used here: {remedy}")]
    Mtu {
        /// The MTU of the plan in bytes.
        mtu: u32,
        /// The remedy for the user, with possible MTUs.
        remedy: String,
    },
    /// The system would grant a smaller buffer than requested.
    #[error(
        "a {which} buffer of {requested} bytes is not available, {granted} are granted: {remedy}"
    )]
    BufferTooLarge {
        /// The kind of the buffer: `send` or `receive`.
        which: &'static str,
        /// Requested size of the buffer in bytes.
        requested: u64,
        /// Size of the buffer that would be granted, in bytes.
        granted: u64,
        /// The remedy, as text for the user.
        remedy: String,
    },
    /// Another program uses the TCP port.
    #[error("port {port} is in use: choose another one or end the program that has it")]
    PortInUse {
        /// The number of the port.
        port: u16,
    },
    /// The sink that this process runs for a transfer cannot listen, for another reason than a port
    /// in use.
    #[error("the sink in this process cannot be started: {0}")]
    NoSink(#[source] ListenError),
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
    /// The program at the peer's port is not a linerate sink.
    #[error("{peer} is not linerate: start `linerate sink` there, or name the port it listens on")]
    NotLinerate {
        /// The address of the peer.
        peer: String,
    },
    /// The sink violated the protocol of the control connection, or reported an error.
    #[error("{peer} failed ({what}): see the output of its `linerate sink`")]
    PeerFailed {
        /// The address of the peer.
        peer: String,
        /// A description of the violation or of the reported error.
        what: String,
    },
    /// The iperf3 server rejected the test, or violated its protocol.
    #[error("{peer} cannot be used ({what}): see the output of its `iperf3 -s`")]
    Iperf3 {
        /// The address of the peer.
        peer: String,
        /// A description of the rejection or of the violation.
        what: String,
    },
    /// The connection could not be opened, or ended before all data was transferred.
    #[error(
        "the connection ended after {bytes} bytes ({what}): run it again, with --pcap to see why"
    )]
    ConnectionLost {
        /// Number of bytes transferred before the connection ended.
        bytes: u64,
        /// The reason why the connection ended, as text for the user.
        what: String,
    },
    /// The link of linerate's host failed during the run.
    #[error("the interface `{interface}` has failed: {source}")]
    LinkLost {
        /// The name of the interface.
        interface: String,
        /// The error of the link.
        source: LinkError,
    },
    /// The MTU of the interface was changed during the sweep.
    #[error(
        "the MTU of `{interface}` was {was} bytes when the night began, and is {now} now: set it \
         back"
    )]
    MtuChanged {
        /// The name of the interface.
        interface: String,
        /// MTU of the interface in bytes when the sweep began.
        was: u64,
        /// MTU of the interface in bytes now.
        now: u64,
    },
    /// The scenario of a simulation cannot be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// No TAP or TUN device could be opened.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// The link of linerate's host could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kernel's interface at the other end of a link could not be configured.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The capture file could not be written.
    #[error("the capture cannot be written ({source}): make room for it, or leave --pcap out")]
    Capture {
        /// The error of the system.
        source: io::Error,
    },
    /// An operation of the operating system, which usually succeeds, has failed.
    #[error("{what} failed ({source}): see `linerate doctor`")]
    Io {
        /// A description of the operation.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The user interrupted the run.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    /// Creates the error of an operation that usually succeeds. `what` describes the operation.
    pub(crate) fn io(what: &str, source: io::Error) -> Self {
        Self::Io { what: what.to_owned(), source }
    }

    /// Converts an error of the control connection with the sink at `peer` to a bench error.
    pub(crate) fn of_control(error: ControlError, peer: &impl ToString) -> Self {
        let peer = peer.to_string();
        match error {
            ControlError::Unreachable(source) => Self::Unreachable { peer, source },
            ControlError::NotLinerate { .. } => Self::NotLinerate { peer },
            other => Self::PeerFailed { peer, what: other.to_string() },
        }
    }

    /// Converts an error of a test with the iperf3 server at `peer` to a bench error.
    pub(crate) fn of_iperf3(error: &Iperf3Error, peer: &impl ToString) -> Self {
        Self::Iperf3 { peer: peer.to_string(), what: error.to_string() }
    }

    /// Returns the kind of the error, from which the exit code of the command follows.
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
            | Self::NoSink(_)
            | Self::MtuChanged { .. }
            | Self::Io { .. } => Fault::Running,
            Self::Interrupted => Fault::Interrupted,
        }
    }
}

//! Why a transfer could not take place.

use linerate_ends::control::ControlError;
use linerate_ends::socket::CongestionError;
use linerate_link::OpenError;
use linerate_link::kernel_interface::InterfaceError;
use linerate_link::tap::TapError;
use linerate_sim_tools::ScenarioError;
use linerate_stack::LinkError;
use std::io;
use thiserror::Error;

/// Who can do something about it, and so how the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What was asked for, or the machine it was asked on: mend it and ask again.
    Input,
    /// Something broke while it ran.
    Running,
    /// Somebody asked to stop.
    Interrupted,
}

/// Why a transfer could not take place. Each sentence ends with what to do about it.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The bench does not know a name that the plan uses.
    #[error("there is no {what} `{name}`: choose one of {known}")]
    UnknownName {
        /// What was named: `congestion control`, `profile`.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The kernel has no such congestion control, or not for this program.
    #[error(transparent)]
    Congestion(#[from] CongestionError),
    /// The packets of the plan do not fit the link, or leave no room for data.
    #[error("an MTU of {mtu} bytes cannot be used here: {remedy}")]
    Mtu {
        /// The MTU of the plan.
        mtu: u32,
        /// What would be possible.
        remedy: String,
    },
    /// The kernel or the stack grants less than the plan asks for.
    #[error(
        "a {which} buffer of {requested} bytes is not to be had, {granted} are granted: {remedy}"
    )]
    BufferTooLarge {
        /// `send` or `receive`.
        which: &'static str,
        /// Bytes asked for.
        requested: u64,
        /// Bytes granted.
        granted: u64,
        /// How to get more, or what else to ask for.
        remedy: String,
    },
    /// Somebody else has the port.
    #[error("port {port} is in use: choose another one or end the program that has it")]
    PortInUse {
        /// The port.
        port: u16,
    },
    /// The peer does not answer.
    #[error(
        "{peer} cannot be reached ({source}): see that the machine is up and `linerate sink` runs on it"
    )]
    Unreachable {
        /// Its address.
        peer: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// Something else listens there.
    #[error("{peer} is no linerate: start `linerate sink` there, or name the port it listens on")]
    NotLinerate {
        /// Its address.
        peer: String,
    },
    /// The peer is a linerate, but did not keep to what was agreed, or says that it cannot.
    #[error("{peer} cannot go on ({what}): see what it printed")]
    PeerFailed {
        /// Its address.
        peer: String,
        /// What it said or did.
        what: String,
    },
    /// The connection ended before its bytes were through.
    #[error(
        "the connection ended after {bytes} bytes ({what}): run it again, with --pcap to see why"
    )]
    ConnectionLost {
        /// Bytes that the sink had read.
        bytes: u64,
        /// What ended it.
        what: String,
    },
    /// The link of linerate's host has ended while it was in use.
    #[error("`{interface}` carries nothing any more: {source}")]
    LinkLost {
        /// The interface.
        interface: String,
        /// What has ended it.
        source: LinkError,
    },
    /// Somebody has given the interface another MTU while it was in use.
    #[error(
        "`{interface}` took packets of {was} bytes when the night began, and takes {now} now: set it back"
    )]
    MtuChanged {
        /// The interface.
        interface: String,
        /// Its MTU at the beginning.
        was: u64,
        /// Its MTU now.
        now: u64,
    },
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// There is no TAP device.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// There is no way onto the interface.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kernel's end of a link cannot be set up.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The frames cannot be written down.
    #[error("the capture cannot be written ({source}): make room for it, or leave --pcap out")]
    Capture {
        /// What the system says.
        source: io::Error,
    },
    /// The operating system refused something.
    #[error("{what} failed ({source}): see `linerate doctor`")]
    Io {
        /// What was attempted.
        what: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    /// The operating system refused something that it usually grants.
    pub(crate) fn io(what: &str, source: io::Error) -> Self {
        Self::Io { what: what.to_owned(), source }
    }

    /// What an error on the control connection to the sink at `peer` means for a bench.
    pub(crate) fn of_control(error: ControlError, peer: &impl ToString) -> Self {
        let peer = peer.to_string();
        match error {
            ControlError::Unreachable(source) => Self::Unreachable { peer, source },
            ControlError::Stranger { .. } => Self::NotLinerate { peer },
            other => Self::PeerFailed { peer, what: other.to_string() },
        }
    }

    /// Who can do something about it.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::UnknownName { .. }
            | Self::Mtu { .. }
            | Self::BufferTooLarge { .. }
            | Self::Congestion(_)
            | Self::PortInUse { .. }
            | Self::Unreachable { .. }
            | Self::NotLinerate { .. }
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

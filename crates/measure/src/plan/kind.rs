//! The choices of a plan: its engine, the direction of the data, and the IP version.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The engine that makes the runs of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchKind {
    /// linerate's TCP at both ends of a memory link, inside this process.
    Stack,
    /// linerate's TCP at one end of a TAP device, the kernel's at the other.
    Tap,
    /// linerate's TCP at one end of a TUN device, the kernel's at the other.
    Tun,
    /// linerate's TCP at both ends of a serial line, which is a pseudo-terminal of this machine.
    Serial,
    /// The kernel's TCP at both ends, over the loopback device or to another machine.
    Kernel,
    /// linerate's TCP on an interface of this machine, which sends to a sink on another machine.
    Interface,
    /// linerate's TCP at both ends, on the machines of a scenario in virtual time.
    Sim,
}

impl BenchKind {
    /// Does this engine create a TAP or TUN device, at whose other end is the kernel's TCP?
    #[must_use]
    pub const fn is_device(self) -> bool {
        matches!(self, Self::Tap | Self::Tun)
    }
}

impl fmt::Display for BenchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stack => "stack",
            Self::Tap => "tap",
            Self::Tun => "tun",
            Self::Serial => "serial",
            Self::Kernel => "kernel",
            Self::Interface => "an interface",
            Self::Sim => "sim",
        })
    }
}

/// The IP version of the packets in a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    #[default]
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// Returns the number of bytes in an IP header without options and extension headers.
    #[must_use]
    pub const fn header_length(self) -> u16 {
        match self {
            Self::Ipv4 => 20,
            Self::Ipv6 => 40,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
        })
    }
}

/// The direction of the data between linerate's TCP and the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// linerate's TCP sends, and the kernel's receives.
    ToKernel,
    /// The kernel's TCP sends, and linerate's receives.
    FromKernel,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToKernel => "to-kernel",
            Self::FromKernel => "from-kernel",
        })
    }
}

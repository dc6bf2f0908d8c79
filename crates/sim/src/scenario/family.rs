//! The IP version of a scenario.

use crate::parameter::{ParameterError, Settings};
use linerate_stack::SMALLEST_MTU;
use linerate_wire::{Ipv4Header, Ipv6Header};
use std::fmt;

/// The key of the IP version in a scenario file.
pub(super) const KEY: &str = "family";

/// The IP version of all hosts and routers of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    #[default]
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    pub(super) fn read(settings: &Settings) -> Result<Self, ParameterError> {
        let root = settings.root();
        if !root.has(KEY) {
            return Ok(Self::default());
        }
        match root.word(KEY)? {
            "ipv4" => Ok(Self::Ipv4),
            "ipv6" => Ok(Self::Ipv6),
            name => Err(ParameterError::Unknown {
                what: "IP version",
                name: name.to_owned(),
                known: "ipv4, ipv6".to_owned(),
            }),
        }
    }

    /// Returns the length of the IP header without options and extension headers, in bytes.
    #[must_use]
    pub const fn header_length(self) -> usize {
        match self {
            Self::Ipv4 => Ipv4Header::LENGTH,
            Self::Ipv6 => Ipv6Header::LENGTH,
        }
    }

    /// Returns the smallest MTU of a host or a router (RFC 8200 §5 for IPv6).
    const fn smallest_mtu(self) -> usize {
        match self {
            Self::Ipv4 => SMALLEST_MTU,
            Self::Ipv6 => Ipv6Header::MIN_MTU,
        }
    }

    /// Refuses an MTU below the minimum of this IP version.
    ///
    /// # Errors
    /// If the MTU is too small. The error names `owner`, which has the MTU.
    pub fn check_mtu(self, owner: &str, mtu: usize) -> Result<(), ParameterError> {
        let smallest = self.smallest_mtu();
        if mtu >= smallest {
            return Ok(());
        }
        Err(ParameterError::Topology(format!(
            "{owner} has an MTU of {mtu} bytes: {self} needs {smallest} at least"
        )))
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        })
    }
}

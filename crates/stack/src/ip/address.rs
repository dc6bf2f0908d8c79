//! An address of the interface, as applications see it.

use core::fmt;
use linerate_units::{Duration, Instant};
use linerate_wire::IpCidr;

/// An address of the interface of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterfaceAddress {
    /// The address, with the length of its prefix.
    pub cidr: IpCidr,
    /// The origin of the address.
    pub origin: AddressOrigin,
    /// The state of the address, which determines its use.
    pub state: AddressState,
    /// The time at which the address becomes deprecated; [`Instant::NEVER`] if it does not.
    pub preferred_until: Instant,
    /// The time at which the address is removed; [`Instant::NEVER`] if it stays.
    pub valid_until: Instant,
}

/// The origin of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressOrigin {
    /// The configuration of the host, or a call of the application.
    Static,
    /// The link-local address that every interface with IPv6 has (RFC 4291 §2.5.6).
    LinkLocal,
    /// A prefix of a router, with a stable opaque identifier (RFC 4862, RFC 7217).
    Stable,
    /// A prefix of a router, with a temporary identifier (RFC 8981).
    Temporary,
    /// A DHCP server (RFC 2131).
    Dhcp,
}

/// The state of an address (RFC 4862 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressState {
    /// The host is still finding out whether another host has the address. It is not used.
    Tentative,
    /// The address is used without restriction.
    Preferred,
    /// The preferred lifetime has passed. The address serves existing connections, and new ones
    /// only if there is no preferred address.
    Deprecated,
    /// Another host has the address. It is not used.
    Duplicated,
}

impl AddressState {
    /// May packets be sent from the address, and received at it?
    #[must_use]
    pub const fn is_usable(self) -> bool {
        matches!(self, Self::Preferred | Self::Deprecated)
    }
}

/// The options of an address that is added. The default is a static address without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressOptions {
    /// The origin of the address.
    pub origin: AddressOrigin,
    /// The time until the address becomes deprecated; `None` if it does not.
    pub preferred_lifetime: Option<Duration>,
    /// The time until the address is removed; `None` if it stays.
    pub valid_lifetime: Option<Duration>,
}

impl AddressOptions {
    /// The options of an address from a DHCP server, which is removed after the lease.
    #[must_use]
    pub const fn lease(duration: Duration) -> Self {
        let lifetime = Some(duration);
        Self { origin: AddressOrigin::Dhcp, preferred_lifetime: lifetime, valid_lifetime: lifetime }
    }
}

impl Default for AddressOptions {
    fn default() -> Self {
        Self { origin: AddressOrigin::Static, preferred_lifetime: None, valid_lifetime: None }
    }
}

impl InterfaceAddress {
    /// Creates a preferred address without an end.
    pub(crate) const fn permanent(cidr: IpCidr, origin: AddressOrigin) -> Self {
        Self {
            cidr,
            origin,
            state: AddressState::Preferred,
            preferred_until: Instant::NEVER,
            valid_until: Instant::NEVER,
        }
    }

    /// Are other hosts with this prefix on the link? A prefix of a router that forms an address may
    /// not be (RFC 5942 §4).
    pub(crate) const fn covers_link(&self) -> bool {
        !matches!(self.origin, AddressOrigin::Stable | AddressOrigin::Temporary)
    }
}

impl fmt::Display for AddressOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Static => "static",
            Self::LinkLocal => "link-local",
            Self::Stable => "stable",
            Self::Temporary => "temporary",
            Self::Dhcp => "dhcp",
        })
    }
}

impl fmt::Display for AddressState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tentative => "tentative",
            Self::Preferred => "preferred",
            Self::Deprecated => "deprecated",
            Self::Duplicated => "duplicated",
        })
    }
}

/// Formats the address with its origin and state: `2001:db8::1/64 stable deprecated`.
impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.cidr, self.origin, self.state)
    }
}

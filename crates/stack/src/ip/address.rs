//! An address of an interface, as applications see it.

use core::fmt;
use linerate_units::{Duration, Instant};
use linerate_wire::IpCidr;

/// An address of an interface, with its state and lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterfaceAddress {
    /// The address, with the length of its prefix.
    pub cidr: IpCidr,
    /// The origin of the address.
    pub origin: AddressOrigin,
    /// The state of the address, which determines its use.
    pub state: AddressState,
    /// The time at which the address becomes deprecated; [`Instant::NEVER`] if its preferred
    /// lifetime is infinite.
    pub preferred_until: Instant,
    /// The time at which the address is removed; [`Instant::NEVER`] if its valid lifetime is
    /// infinite.
    pub valid_until: Instant,
}

/// The origin of an address: the source from which the interface got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressOrigin {
    /// The address was given by the configuration of the host, or by a call of the application.
    Static,
    /// The address is the link-local address that every IPv6 interface has (RFC 4291 §2.5.6).
    LinkLocal,
    /// The address was formed from an advertised prefix and a stable opaque identifier (RFC 4862,
    /// RFC 7217).
    Stable,
    /// The address was formed from an advertised prefix and a temporary identifier (RFC 8981).
    Temporary,
    /// The address was leased by a DHCP server (RFC 2131).
    Dhcp,
}

/// The state of an address (RFC 4862 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressState {
    /// Duplicate address detection is in progress. The address is not used yet.
    Tentative,
    /// The address can be used without restriction.
    Preferred,
    /// The preferred lifetime has ended. The address serves existing connections, and new
    /// connections only if there is no preferred address.
    Deprecated,
    /// Another host has the address, so this host does not use it.
    Duplicated,
}

impl AddressState {
    /// May the host send packets from the address, and receive packets at it?
    #[must_use]
    pub const fn is_usable(self) -> bool {
        matches!(self, Self::Preferred | Self::Deprecated)
    }
}

/// The options for adding an address to an interface. The default is a static address with infinite
/// lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressOptions {
    /// The origin of the address.
    pub origin: AddressOrigin,
    /// The time after which the address becomes deprecated; `None` for an infinite lifetime.
    pub preferred_lifetime: Option<Duration>,
    /// The time after which the address is removed; `None` for an infinite lifetime.
    pub valid_lifetime: Option<Duration>,
}

impl AddressOptions {
    /// Creates the options of an address that a DHCP server has leased for `duration`. The address
    /// is removed when the lease ends.
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
    /// Creates a preferred address with infinite lifetimes.
    pub(crate) const fn permanent(cidr: IpCidr, origin: AddressOrigin) -> Self {
        Self {
            cidr,
            origin,
            state: AddressState::Preferred,
            preferred_until: Instant::NEVER,
            valid_until: Instant::NEVER,
        }
    }

    /// Are all addresses with the prefix of this address on the link? False for autoconfigured
    /// addresses, whose prefix need not be on the link (RFC 5942 §4).
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

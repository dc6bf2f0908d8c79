//! The messages of Neighbour Discovery (RFC 4861 §4), and the checks that a receiver must make.

mod options;

pub use options::{NdOption, NdOptions, PrefixInformation};

use crate::layout::{half, octets, word};
use crate::{Ipv6Header, MacAddress, Malformed, Protocol, ipv6_multicast};
use core::net::Ipv6Addr;

/// A valid message of Neighbour Discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NdMessage<'a> {
    /// A request to routers to send an advertisement. Hosts send solicitations, but must discard
    /// received ones (RFC 4861 §6.1.1).
    RouterSolicitation {
        /// The MAC address of the sender; `None` if the message does not contain it.
        source_mac: Option<MacAddress>,
    },
    /// The parameters of a link, advertised by one of its routers.
    RouterAdvertisement(RouterAdvertisement<'a>),
    /// A request for the MAC address of the target, or a check that the target is still reachable.
    /// If its source is the unspecified address, the message has another purpose. Its sender then
    /// checks that no other host uses the target address (RFC 4862 §5.4).
    NeighborSolicitation {
        /// The address of the target, which must not be multicast.
        target: Ipv6Addr,
        /// The MAC address of the sender; `None` if the message does not contain it.
        source_mac: Option<MacAddress>,
    },
    /// The answer to a neighbour solicitation, or an unsolicited announcement.
    NeighborAdvertisement {
        /// R: the sender is a router.
        is_router: bool,
        /// S: this answers a solicitation. Must not be set in a message to a multicast address.
        is_solicited: bool,
        /// O: receivers should replace the target's MAC address in their neighbour caches.
        is_override: bool,
        /// The advertised address, which must not be multicast.
        target: Ipv6Addr,
        /// The MAC address of the target; `None` if the message does not contain it.
        target_mac: Option<MacAddress>,
    },
    /// The report of a better first hop, from the router that is the first hop now. The caller must
    /// check that the sender is that router (RFC 4861 §8.1).
    Redirect {
        /// The better first hop: the link-local address of a router, or `destination` if it is on
        /// the link.
        target: Ipv6Addr,
        /// The destination whose first hop changes, which must not be multicast.
        destination: Ipv6Addr,
        /// The MAC address of the target; `None` if the message does not contain it.
        target_mac: Option<MacAddress>,
        /// The beginning of the packet that caused the redirect; `None` if the message does not
        /// quote it.
        redirected: Option<&'a [u8]>,
    },
}

/// A router advertisement (RFC 4861 §4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterAdvertisement<'a> {
    /// The hop limit that hosts should send with; zero if the router does not specify it.
    pub hop_limit: u8,
    /// M: hosts can obtain addresses by DHCPv6.
    pub is_managed: bool,
    /// O: hosts can obtain other parameters by DHCPv6.
    pub has_other_configuration: bool,
    /// Prf: the preference of the sender among default routers (RFC 4191 §2.2).
    pub preference: RouterPreference,
    /// The time in seconds for which the sender is a default router; zero if it is not a default
    /// router.
    pub lifetime: u16,
    /// The time in milliseconds for which a neighbour is assumed to be reachable; zero if the
    /// router does not specify it.
    pub reachable_time: u32,
    /// The time between two solicitations of a neighbour, in milliseconds; zero if the router does
    /// not specify it.
    pub retransmission_timer: u32,
    /// The options, such as prefixes, the MTU, and the MAC address of the router.
    pub options: NdOptions<'a>,
}

/// The preference of a default router over others (RFC 4191 §2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouterPreference {
    /// The router is used only if there is no router of a higher preference.
    Low,
    /// The preference of routers that do not state a preference.
    #[default]
    Medium,
    /// The router is used before routers of a lower preference.
    High,
}

impl RouterPreference {
    /// Reads the two bits of the preference in `flags`. The reserved value means medium.
    const fn read(flags: u8) -> Self {
        match (flags >> 3) & 3 {
            1 => Self::High,
            3 => Self::Low,
            _ => Self::Medium,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::High => 1 << 3,
            Self::Low => 3 << 3,
            Self::Medium => 0,
        }
    }
}

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOR_SOLICITATION: u8 = 135;
const NEIGHBOR_ADVERTISEMENT: u8 = 136;
const REDIRECT: u8 = 137;

const MANAGED: u8 = 0x80;
const OTHER_CONFIGURATION: u8 = 0x40;
const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

impl<'a> NdMessage<'a> {
    /// The required hop limit of all messages. Routers decrease the hop limit. A received message
    /// with a smaller one was therefore forwarded, and comes from outside the link.
    pub const HOP_LIMIT: u8 = 255;

    /// Creates the IP header for a message of Neighbour Discovery.
    #[must_use]
    pub fn header(source: Ipv6Addr, destination: Ipv6Addr) -> Ipv6Header {
        Ipv6Header {
            hop_limit: Self::HOP_LIMIT,
            ..Ipv6Header::new(source, destination, Protocol::ICMPV6)
        }
    }

    /// Is `kind` the ICMPv6 type of a message of Neighbour Discovery?
    #[must_use]
    pub const fn is_kind(kind: u8) -> bool {
        ROUTER_SOLICITATION <= kind && kind <= REDIRECT
    }

    /// Parses an ICMPv6 message of type `kind`. `body` are the bytes after the checksum. Returns
    /// `None` if it is not a message of Neighbour Discovery.
    pub(crate) fn parse(
        header: &Ipv6Header,
        kind: u8,
        code: u8,
        body: &'a [u8],
    ) -> Result<Option<Self>, Malformed> {
        if !(ROUTER_SOLICITATION..=REDIRECT).contains(&kind) {
            return Ok(None);
        }
        check(header.hop_limit == Self::HOP_LIMIT, "hop limit", header.hop_limit)?;
        check(code == 0, "code", code)?;
        Ok(Some(match kind {
            ROUTER_SOLICITATION => {
                let (_, options) = split::<4>(body)?;
                check_unspecified_source(header, &options)?;
                Self::RouterSolicitation { source_mac: options.source_mac() }
            }
            ROUTER_ADVERTISEMENT => {
                check_router(header)?;
                Self::RouterAdvertisement(RouterAdvertisement::parse(body)?)
            }
            NEIGHBOR_SOLICITATION => {
                let (fixed, options) = split::<20>(body)?;
                let target = target(fixed)?;
                check_unspecified_source(header, &options)?;
                let is_probe = header.source.is_unspecified();
                check(
                    !is_probe || ipv6_multicast::is_solicited_node(header.destination),
                    "destination of a probe",
                    header.destination.octets()[0],
                )?;
                Self::NeighborSolicitation { target, source_mac: options.source_mac() }
            }
            NEIGHBOR_ADVERTISEMENT => {
                let (fixed, options) = split::<20>(body)?;
                let flags = fixed[0];
                let is_solicited = flags & SOLICITED != 0;
                check(!(is_solicited && header.destination.is_multicast()), "flags", flags)?;
                Self::NeighborAdvertisement {
                    is_router: flags & ROUTER != 0,
                    is_solicited,
                    is_override: flags & OVERRIDE != 0,
                    target: target(fixed)?,
                    target_mac: options.target_mac(),
                }
            }
            _ => {
                check_router(header)?;
                let (fixed, options) = split::<36>(body)?;
                let target: Ipv6Addr = octets::<16, _>(fixed, 4).into();
                let destination: Ipv6Addr = octets::<16, _>(fixed, 20).into();
                let first = |address: Ipv6Addr| address.octets()[0];
                check(!destination.is_multicast(), "destination", first(destination))?;
                let is_first_hop = target.is_unicast_link_local() || target == destination;
                check(is_first_hop, "target", first(target))?;
                let redirected = options.iter().find_map(|option| match option {
                    NdOption::RedirectedHeader(packet) => Some(packet),
                    _ => None,
                });
                Self::Redirect { target, destination, target_mac: options.target_mac(), redirected }
            }
        }))
    }

    /// Returns the length of the message after its checksum, in bytes.
    pub(crate) const fn length(&self) -> usize {
        const fn mac_length(mac: Option<MacAddress>) -> usize {
            if mac.is_some() { 8 } else { 0 }
        }
        match *self {
            Self::RouterSolicitation { source_mac } => 4 + mac_length(source_mac),
            Self::RouterAdvertisement(ref advertisement) => {
                RouterAdvertisement::LENGTH + advertisement.options.bytes().len()
            }
            Self::NeighborSolicitation { source_mac: mac, .. }
            | Self::NeighborAdvertisement { target_mac: mac, .. } => 20 + mac_length(mac),
            Self::Redirect { target_mac, redirected, .. } => {
                let redirected = match redirected {
                    Some(packet) => NdOption::RedirectedHeader(packet).length(),
                    None => 0,
                };
                36 + mac_length(target_mac) + redirected
            }
        }
    }

    /// Writes the part of the message after its checksum into `bytes`, which must have the length
    /// of that part. Returns the ICMPv6 type.
    pub(crate) fn emit(&self, bytes: &mut [u8]) -> u8 {
        let source = |mac: Option<MacAddress>| mac.map(NdOption::SourceMac);
        let destination = |mac: Option<MacAddress>| mac.map(NdOption::TargetMac);
        let (kind, fixed_length, options) = match *self {
            Self::RouterSolicitation { source_mac } => {
                bytes[..4].fill(0);
                (ROUTER_SOLICITATION, 4, [source(source_mac), None])
            }
            Self::RouterAdvertisement(ref advertisement) => {
                advertisement.emit(bytes);
                (ROUTER_ADVERTISEMENT, bytes.len(), [None, None])
            }
            Self::NeighborSolicitation { target, source_mac } => {
                bytes[..4].fill(0);
                bytes[4..20].copy_from_slice(&target.octets());
                (NEIGHBOR_SOLICITATION, 20, [source(source_mac), None])
            }
            Self::NeighborAdvertisement {
                is_router,
                is_solicited,
                is_override,
                target,
                target_mac,
            } => {
                let flags =
                    [(is_router, ROUTER), (is_solicited, SOLICITED), (is_override, OVERRIDE)];
                bytes[..4].fill(0);
                bytes[0] =
                    flags.into_iter().map(|(is_set, bit)| if is_set { bit } else { 0 }).sum();
                bytes[4..20].copy_from_slice(&target.octets());
                (NEIGHBOR_ADVERTISEMENT, 20, [destination(target_mac), None])
            }
            Self::Redirect { target, destination: to, target_mac, redirected } => {
                bytes[..4].fill(0);
                bytes[4..20].copy_from_slice(&target.octets());
                bytes[20..36].copy_from_slice(&to.octets());
                let options = [destination(target_mac), redirected.map(NdOption::RedirectedHeader)];
                (REDIRECT, 36, options)
            }
        };
        let mut at = fixed_length;
        for option in options.into_iter().flatten() {
            at += option.emit(&mut bytes[at..]);
        }
        kind
    }
}

impl<'a> RouterAdvertisement<'a> {
    /// The length of the fixed fields after the checksum, in bytes.
    const LENGTH: usize = 12;

    fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, options) = split::<{ RouterAdvertisement::LENGTH }>(body)?;
        Ok(Self {
            hop_limit: fixed[0],
            is_managed: fixed[1] & MANAGED != 0,
            has_other_configuration: fixed[1] & OTHER_CONFIGURATION != 0,
            preference: RouterPreference::read(fixed[1]),
            lifetime: half(fixed, 2),
            reachable_time: word(fixed, 4),
            retransmission_timer: word(fixed, 8),
            options,
        })
    }

    fn emit(&self, bytes: &mut [u8]) {
        let managed = if self.is_managed { MANAGED } else { 0 };
        let other = if self.has_other_configuration { OTHER_CONFIGURATION } else { 0 };
        let flags = managed | other | self.preference.bits();
        bytes[..2].copy_from_slice(&[self.hop_limit, flags]);
        bytes[2..4].copy_from_slice(&self.lifetime.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.reachable_time.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.retransmission_timer.to_be_bytes());
        bytes[12..].copy_from_slice(self.options.bytes());
    }
}

/// Splits `body`, the part of a message after the checksum, into the fixed fields and the options.
/// Checks the options.
fn split<const LENGTH: usize>(body: &[u8]) -> Result<(&[u8; LENGTH], NdOptions<'_>), Malformed> {
    let (fixed, rest) = crate::layout::split_fixed("Neighbour Discovery message", body)?;
    Ok((fixed, NdOptions::parse(rest)?))
}

/// Returns the target address of a neighbour solicitation or advertisement. A multicast address is
/// an error.
fn target(fixed: &[u8; 20]) -> Result<Ipv6Addr, Malformed> {
    let target = Ipv6Addr::from(octets::<16, _>(fixed, 4));
    check(!target.is_multicast(), "target", target.octets()[0])?;
    Ok(target)
}

/// Checks that a router can have sent the message: its source must be a link-local address.
fn check_router(header: &Ipv6Header) -> Result<(), Malformed> {
    let is_link_local = header.source.is_unicast_link_local();
    check(is_link_local, "source", header.source.octets()[0])
}

/// Checks that a message from the unspecified address contains no source MAC address.
fn check_unspecified_source(header: &Ipv6Header, options: &NdOptions<'_>) -> Result<(), Malformed> {
    let is_valid = !header.source.is_unspecified() || !options.has(options::SOURCE_MAC);
    check(is_valid, "source link-layer address without a source", options::SOURCE_MAC)
}

fn check(is_valid: bool, field: &'static str, value: u8) -> Result<(), Malformed> {
    let value = value.into();
    if is_valid {
        return Ok(());
    }
    Err(Malformed::Field { what: "Neighbour Discovery message", field, value })
}

#[cfg(test)]
mod tests;

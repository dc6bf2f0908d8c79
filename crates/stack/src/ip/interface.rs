//! An interface of the host: its link, its addresses, and the state of the protocols on the link.

use crate::collections::packet_queue::PacketQueue;
use crate::config::{InterfaceConfig, Limits};
use crate::dhcp::DhcpService;
use crate::dhcp::client::DhcpClient;
use crate::ethernet::neighbor::Neighbors;
use crate::ip::address::{AddressOrigin, InterfaceAddress};
use crate::ip::addresses::Addresses;
use crate::ip::detection::Detections;
use crate::ip::discovery::Discovery;
use crate::ip::fragmentation::Fragmenter;
use crate::ip::groups::{GroupLimits, Groups};
use crate::ip::ipv4_link_local::LinkLocalCandidates;
use crate::ip::redirects::Redirects;
use crate::ip::routers::Routers;
use crate::ip::selection::best_source;
use crate::keys::{Draws, Keys};
use crate::link::{Capabilities, Medium, SMALLEST_MTU};
use crate::ready::{Ready, Sender};
use crate::rx::flow_cache::FlowCache;
use crate::services::{Deadlines, Service};
use crate::tx::Reply;
use alloc::collections::BTreeSet;
use core::net::{IpAddr, Ipv6Addr};
use linerate_units::Instant;
use linerate_wire::ipv6_multicast::solicited_node;
use linerate_wire::{IpCidr, MacAddress};

/// Number of low bits of a neighbour cache's generation number that count its changes. The bits
/// above contain the number of the interface. Caches of different interfaces thus never have equal
/// generations, so a MAC address resolved on one interface is never used on another.
const GENERATIONS: u32 = 48;

/// The assumed capabilities of the link until a link is attached.
const UNATTACHED: Capabilities = Capabilities::new(Medium::Ethernet, 1_500);

/// A network interface of a host: the state of everything that belongs to one link.
#[derive(Debug)]
pub(crate) struct Interface {
    /// The number of the interface, which is also the zone of its link-local addresses.
    pub(crate) number: u16,
    pub(crate) mac: MacAddress,
    /// The addresses of the interface, including its link-local IPv6 address.
    pub(crate) addresses: Addresses,
    /// The multicast groups that the host and its sockets have joined.
    pub(crate) groups: Groups,
    pub(crate) capabilities: Capabilities,
    /// The length of the link header and the sizes of frame buffers, computed from `capabilities`.
    pub(crate) frames: Frames,
    pub(crate) flow_cache: FlowCache,
    /// The detection of duplicate addresses.
    pub(crate) detections: Detections,
    /// The state of router discovery: routers, prefixes, and the addresses formed from these
    /// prefixes.
    pub(crate) discovery: Discovery,
    /// Candidates for the IPv4 link-local address.
    pub(crate) ipv4_link_local: LinkLocalCandidates,
    /// The time at which the host most recently defended an IPv4 address against another host, by
    /// an announcement (RFC 5227 §2.4).
    pub(crate) defended: Option<Instant>,
    pub(crate) neighbors: Neighbors,
    /// The DHCP client, if it is enabled.
    pub(crate) dhcp: Option<DhcpService>,
    /// The ring of sockets and other senders that have something to send on the link.
    pub(crate) ready: Ready,
    /// Whether the most recent turn left frames unsent because the link had no room. Set by
    /// [`Stack::turn_on_links`](crate::Stack::turn_on_links).
    pub(crate) is_blocked: bool,
    /// The reply queue: packets of the host itself that wait to be sent on the link, such as ARP,
    /// ICMP and resets.
    pub(crate) replies: PacketQueue<Reply>,
    /// The packet that is being sent in fragments, if any. Invariant: while there is such a packet,
    /// [`Sender::Replies`] is in `ready`.
    pub(crate) fragmenter: Fragmenter,
    /// The deadlines of the services on the link.
    pub(crate) deadlines: Deadlines,
}

/// The frame sizes of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    /// Length of the link header in bytes.
    pub(crate) header: usize,
    /// The minimum size, in bytes, of the empty frames that the link offers to the host.
    pub(crate) least: usize,
    /// The number of bytes that the host may fill in each frame that the link offers.
    pub(crate) room: usize,
}

impl Frames {
    pub(crate) const fn of(link: &Capabilities) -> Self {
        let header = link.medium.header_length();
        let least =
            header.saturating_add(if link.mtu > SMALLEST_MTU { link.mtu } else { SMALLEST_MTU });
        Self { header, least, room: link.room() }
    }
}

/// The kind of a destination address, as seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The address belongs to this host.
    Us,
    /// The address is a broadcast address of one of our networks, or a multicast group that this
    /// host has joined.
    Broadcast,
    /// The address belongs to another host, or to a multicast group that this host has not joined.
    Others,
}

impl Interface {
    /// Creates an interface with its configured addresses. Every IPv6 interface needs a link-local
    /// address (RFC 4291 §2.1). If none is configured, and the interface has an IPv6 address or
    /// takes addresses from routers, the link-local address is formed from the MAC address.
    pub(crate) fn new(
        number: u16,
        config: &InterfaceConfig,
        limits: &Limits,
        frame_prediction: bool,
        keys: &Keys,
    ) -> Self {
        let mac = config.mac;
        let autoconfiguration = config.ipv6_autoconfiguration;
        let dhcp = config.dhcp.clone();
        let keys = &keys.of_interface(number);
        let mut interface = Self {
            number,
            mac,
            addresses: Addresses::default(),
            groups: groups(limits, keys),
            capabilities: UNATTACHED,
            frames: Frames::of(&UNATTACHED),
            flow_cache: FlowCache::new(frame_prediction),
            detections: Detections::new(config.dad_transmits, Draws::new(keys, "detection")),
            discovery: Discovery::new(
                autoconfiguration,
                mac,
                Routers::new(limits.routers, limits.prefixes),
                Redirects::new(limits.redirects),
                keys,
            ),
            ipv4_link_local: LinkLocalCandidates::new(Draws::new(keys, "IPv4 link-local")),
            defended: None,
            neighbors: Neighbors::new(
                limits.neighbors,
                keys.table("neighbours"),
                Draws::new(keys, "reachable times"),
                u64::from(number) << GENERATIONS,
            ),
            dhcp: dhcp.map(|dhcp| DhcpService::new(DhcpClient::new(dhcp, mac, keys))),
            ready: Ready::new(),
            is_blocked: false,
            replies: PacketQueue::new(limits.reply_bytes),
            fragmenter: Fragmenter::new(),
            deadlines: Deadlines::new(),
        };
        interface.add_configured(&config.addresses, autoconfiguration.is_some());
        let begin = interface.dhcp.as_ref().map_or(Instant::NEVER, |it| it.client.poll_timeout());
        interface.deadlines.set(Service::Dhcp, begin);
        interface.deadlines.set(Service::Groups, interface.groups.poll_timeout());
        interface
    }

    /// Adds the configured addresses. If the interface uses IPv6 and no link-local address is
    /// configured, also adds the link-local address that is formed from the MAC address.
    fn add_configured(&mut self, configured: &[IpCidr], has_ipv6: bool) {
        let mut add = |cidr, origin| {
            self.addresses.insert(InterfaceAddress::permanent(cidr, origin));
        };
        configured.iter().for_each(|&own| add(own, AddressOrigin::Static));
        let has_ipv6 = has_ipv6 || configured.iter().any(|own| own.address().is_ipv6());
        if has_ipv6 && !configured.iter().any(|own| is_link_local(own.address())) {
            add(link_local_cidr(self.mac), AddressOrigin::LinkLocal);
        }
        self.join_solicited_nodes(Instant::ZERO);
    }

    /// Returns a time before which no timer of the interface expires.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.neighbors.poll_timeout().min(self.deadlines.next())
    }

    /// Does the interface have a link-local IPv6 address?
    pub(crate) fn has_link_local(&self) -> bool {
        self.addresses.all().iter().any(|own| is_link_local(own.cidr.address()))
    }

    /// Joins the solicited-node groups of the present addresses, and leaves the groups of removed
    /// addresses (RFC 4291 §2.8). Must be called after a change of the addresses.
    pub(crate) fn join_solicited_nodes(&mut self, now: Instant) {
        let group = |own: &InterfaceAddress| match own.cidr.address() {
            IpAddr::V4(_) => None,
            IpAddr::V6(own) => Some(solicited_node(own).into()),
        };
        let groups: BTreeSet<IpAddr> = self.addresses.all().iter().filter_map(group).collect();
        self.groups.set_host_groups(now, &groups);
    }

    /// Attaches the interface to a link.
    pub(crate) const fn attach(&mut self, capabilities: Capabilities) {
        self.capabilities = capabilities;
        self.frames = Frames::of(&capabilities);
    }

    /// Does the host itself have a packet to send on the link, in addition to the packets of its
    /// sockets?
    pub(crate) fn has_replies(&self) -> bool {
        !self.replies.is_empty() || self.neighbors.wants_transmit() || self.fragmenter.is_busy()
    }

    /// Checks the invariants of the interface.
    pub(crate) fn check(&self) {
        self.addresses.check();
        self.discovery.check();
        self.neighbors.check();
        self.replies.check();
        let is_scheduled = self.ready.contains(Sender::Replies);
        assert!(is_scheduled || !self.has_replies(), "replies are in the ring of senders");
    }

    /// Is this an address of this interface? `::1` and 127.0.0.0/8 count as its addresses (RFC 1122
    /// §3.2.1.3).
    pub(crate) fn is_ours(&self, address: IpAddr) -> bool {
        self.addresses.in_use().iter().any(|own| own.address() == address) || address.is_loopback()
    }

    /// Is this an address of the interface that is in use? In contrast to [`Interface::is_ours`],
    /// loopback addresses do not count.
    pub(crate) fn is_configured(&self, address: IpAddr) -> bool {
        self.addresses.in_use().iter().any(|own| own.address() == address)
    }

    /// Classifies a destination address, without regard to other interfaces.
    pub(crate) fn audience(&self, address: IpAddr) -> Audience {
        if self.is_ours(address) {
            return Audience::Us;
        }
        let is_group = match address {
            group if group.is_multicast() => self.groups.contains(group),
            IpAddr::V4(address) => {
                let is_all = |own: &IpCidr| own.broadcast() == Some(address);
                address.is_broadcast() || self.addresses.in_use().iter().any(is_all)
            }
            IpAddr::V6(_) => false,
        };
        if is_group { Audience::Broadcast } else { Audience::Others }
    }

    /// Is this a valid source of a received packet? Multicast, unspecified, broadcast and our own
    /// addresses are invalid (RFC 1122 §3.2.1.3), and so are IPv4-mapped IPv6 addresses.
    ///
    /// Contrary to RFC 1122 §3.2.1.3, the lowest address of a network is accepted as a host
    /// address. The RFC reserves it because 4.2BSD, which is no longer in use, used it as a
    /// broadcast address. Linux has accepted this address since version 5.14, and a host that
    /// refuses it could not reach a neighbour with this address. [`audience`](Self::audience)
    /// treats this address as a host address, too.
    pub(crate) fn is_possible_source(&self, address: IpAddr) -> bool {
        !address.is_multicast()
            && !address.is_unspecified()
            && address.to_canonical() == address
            && self.audience(address) == Audience::Others
    }

    /// Is `address` on the link, because it is in the network of one of our addresses? The networks
    /// of autoconfigured addresses do not count. They need not be on the link.
    pub(crate) fn is_on_link(&self, address: IpAddr) -> bool {
        let covers = |own: &InterfaceAddress| own.covers_link() && own.cidr.contains(address);
        self.addresses.all().iter().any(covers)
    }

    /// Returns the source address for packets to `destination` by way of `next_hop`. For IPv4, this
    /// is our address in the network of the next hop, or else our first address that is not
    /// link-local.
    pub(crate) fn source_towards(&self, next_hop: IpAddr, destination: IpAddr) -> Option<IpAddr> {
        match (next_hop, destination) {
            (_, IpAddr::V6(_)) => self.ipv6_source_towards(destination),
            (next_hop, _) if self.is_ours(next_hop) => Some(next_hop),
            (next_hop, _) => {
                let in_use = self.addresses.in_use();
                let nearest = in_use.iter().find(|own| own.contains(next_hop));
                // If no own address is in the network of `next_hop`, the first other address is the
                // source. Link-local addresses are excluded, because their packets must not reach a
                // router (RFC 3927 §2.6.2).
                let may_leave = |own: &&IpCidr| match own.address() {
                    IpAddr::V4(own) => !own.is_link_local(),
                    IpAddr::V6(_) => false,
                };
                let first = || in_use.iter().find(may_leave);
                nearest.or_else(first).map(|own| own.address())
            }
        }
    }

    /// Returns the IPv6 source address for packets to `destination`: `destination` itself if it is
    /// our address, else the best source address by RFC 6724 §5.
    fn ipv6_source_towards(&self, destination: IpAddr) -> Option<IpAddr> {
        if self.is_ours(destination) {
            return Some(destination);
        }
        best_source(self.addresses.all(), destination).map(|own| own.cidr.address())
    }
}

/// Creates the multicast group memberships of an interface.
fn groups(limits: &Limits, keys: &Keys) -> Groups {
    Groups::new(GroupLimits { groups: limits.groups, sources: limits.group_sources }, keys)
}

/// Is this a link-local unicast address of IPv6?
pub(crate) const fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Returns the link-local address that is formed from a MAC address, with its prefix length.
pub(crate) fn link_local_cidr(mac: MacAddress) -> IpCidr {
    let address = IpAddr::from(link_local(mac));
    IpCidr::new(address, 64).unwrap_or_else(|| IpCidr::single(address))
}

/// Returns the link-local address that is formed from a MAC address (RFC 4291 appendix A, RFC 2464
/// §5).
fn link_local(mac: MacAddress) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.octets();
    let identifier = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(identifier))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn with(mac: [u8; 6], addresses: Vec<IpCidr>) -> Interface {
        let mac = MacAddress::new(mac);
        let config = InterfaceConfig { addresses, ..InterfaceConfig::unconfigured(mac) };
        Interface::new(1, &config, &Limits::default(), true, &Keys::new([1; 32]))
    }

    fn interface() -> Interface {
        let addresses = ["192.0.2.1/24", "10.1.0.1/16"].map(|own| own.parse().unwrap());
        with([2, 0, 0, 0, 0, 1], addresses.to_vec())
    }

    #[test]
    fn addresses_are_classified_as_ours_broadcast_or_others() {
        let interface = interface();
        for (address, audience) in [
            ([192, 0, 2, 1], Audience::Us),
            ([127, 3, 2, 1], Audience::Us),
            ([192, 0, 2, 255], Audience::Broadcast),
            ([10, 1, 255, 255], Audience::Broadcast),
            ([255, 255, 255, 255], Audience::Broadcast),
            ([192, 0, 2, 2], Audience::Others),
            ([224, 0, 0, 1], Audience::Broadcast),
            ([224, 0, 0, 2], Audience::Others),
        ] {
            assert_eq!(interface.audience(address.into()), audience, "{address:?}");
        }
    }

    #[test]
    fn a_source_must_be_a_unicast_address_of_another_host() {
        let interface = interface();
        assert!(interface.is_possible_source([198, 51, 100, 7].into()));
        for source in
            [[0, 0, 0, 0], [224, 0, 0, 1], [192, 0, 2, 255], [192, 0, 2, 1], [127, 0, 0, 1]]
        {
            assert!(!interface.is_possible_source(source.into()), "{source:?}");
        }
    }

    #[test]
    fn the_lowest_address_of_a_network_is_a_host_address() {
        let interface = interface();
        for lowest in [[192, 0, 2, 0], [10, 1, 0, 0]] {
            assert!(interface.is_possible_source(lowest.into()));
            assert_eq!(interface.audience(lowest.into()), Audience::Others);
        }
    }

    #[test]
    fn the_source_is_in_the_network_of_the_next_hop() {
        let interface = interface();
        assert_eq!(
            interface.source_towards([10, 1, 9, 9].into(), [10, 1, 9, 9].into()),
            Some([10, 1, 0, 1].into())
        );
        assert_eq!(
            interface.source_towards([198, 51, 100, 7].into(), [198, 51, 100, 7].into()),
            Some([192, 0, 2, 1].into())
        );
        assert_eq!(
            interface.source_towards([127, 0, 0, 1].into(), [127, 0, 0, 1].into()),
            Some([127, 0, 0, 1].into())
        );
    }

    fn ipv6(addresses: &[&str]) -> Interface {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        with([2, 0, 0x5e, 0, 0x53, 1], addresses)
    }

    #[test]
    fn an_ipv6_host_has_the_link_local_address_of_its_mac_address() {
        let own = "fe80::5eff:fe00:5301".parse().unwrap();
        assert!(ipv6(&["2001:db8::1/64"]).is_ours(own));
        assert!(!ipv6(&["192.0.2.1/24"]).is_ours(own));
        assert!(!ipv6(&["fe80::1/64"]).is_ours(own), "it has one already");
    }

    #[test]
    fn ipv6_groups_are_those_of_all_nodes_and_of_our_addresses() {
        let interface = ipv6(&["2001:db8::1:2:3/64"]);
        for (address, audience) in [
            ("2001:db8::1:2:3", Audience::Us),
            ("::1", Audience::Us),
            ("ff02::1", Audience::Broadcast),
            ("ff02::1:ff02:3", Audience::Broadcast),
            ("ff02::1:ff00:5301", Audience::Broadcast),
            ("ff02::1:ff02:4", Audience::Others),
            ("ff02::2", Audience::Others),
            ("2001:db8::4", Audience::Others),
        ] {
            assert_eq!(interface.audience(address.parse().unwrap()), audience, "{address}");
        }
        for source in ["::", "ff02::1", "::1", "::ffff:10.0.0.1", "2001:db8::1:2:3"] {
            assert!(!interface.is_possible_source(source.parse().unwrap()), "{source}");
        }
        assert!(interface.is_possible_source("fe80::9".parse().unwrap()));
    }

    #[test]
    fn the_ipv6_source_has_the_scope_and_the_longest_common_prefix() {
        let interface = ipv6(&["192.0.2.1/24", "2001:db8:1::1/64", "2001:db8:2::1/64"]);
        for (destination, source) in [
            ("2001:db8:2::9", "2001:db8:2::1"),
            ("2001:db8:1::9", "2001:db8:1::1"),
            ("2a00::1", "2001:db8:1::1"),
            ("fe80::7", "fe80::5eff:fe00:5301"),
            ("ff02::fb", "fe80::5eff:fe00:5301"),
            ("2001:db8:2::1", "2001:db8:2::1"),
        ] {
            let destination = destination.parse().unwrap();
            let router = "fe80::7".parse().unwrap();
            let found = interface.source_towards(router, destination);
            assert_eq!(found, Some(source.parse().unwrap()), "{destination}");
        }
        let only_ipv4 = ipv6(&["192.0.2.1/24"]);
        let destination = "2001:db8::1".parse().unwrap();
        assert_eq!(only_ipv4.source_towards(destination, destination), None);
        let only_ipv6 = ipv6(&["2001:db8::1/64"]);
        let destination = [192, 0, 2, 9].into();
        assert_eq!(only_ipv6.source_towards(destination, destination), None);
    }
}

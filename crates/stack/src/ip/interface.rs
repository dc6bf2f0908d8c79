//! The interface of the host: its MAC address, IP addresses, and the capabilities of its link.

use crate::error::Error;
use crate::link::{Capabilities, Medium, SMALLEST_MTU};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use linerate_wire::{Ipv4Cidr, MacAddress};

/// The assumed capabilities until a link is attached.
const UNATTACHED: Capabilities = Capabilities::new(Medium::Ethernet, 1_500);

/// The network interface of a host.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) mac: MacAddress,
    pub(crate) addresses: Vec<Ipv4Cidr>,
    pub(crate) capabilities: Capabilities,
    /// The frame sizes derived from the capabilities.
    pub(crate) frames: Frames,
}

/// The frame sizes of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    /// Bytes of the link header.
    pub(crate) header: usize,
    /// The smallest size of an offered frame, in bytes.
    pub(crate) least: usize,
    /// The usable bytes of an offered frame.
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

/// The destination of a packet, relative to this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// This host.
    Us,
    /// All hosts of one of our networks.
    Broadcast,
    /// Another host, or a multicast group that this host has not joined.
    Others,
}

impl Interface {
    pub(crate) const fn new(mac: MacAddress, addresses: Vec<Ipv4Cidr>) -> Self {
        Self { mac, addresses, capabilities: UNATTACHED, frames: Frames::of(&UNATTACHED) }
    }

    /// Attaches the interface to a link.
    pub(crate) const fn attach(&mut self, capabilities: Capabilities) {
        self.capabilities = capabilities;
        self.frames = Frames::of(&capabilities);
    }

    /// Is this an address of this host? All of 127.0.0.0/8 is (RFC 1122 §3.2.1.3).
    pub(crate) fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.addresses.iter().any(|own| own.address() == address) || address.is_loopback()
    }

    /// Checks that an application may send from `own` to `destination`. The source must be an
    /// address of this host, and a loopback address must not leave it (RFC 1122 §3.2.1.3).
    #[inline(never)]
    pub(crate) fn check_source(&self, own: Ipv4Addr, destination: Ipv4Addr) -> Result<(), Error> {
        if !self.is_ours(own) {
            return Err(Error::AddressNotOurs(own));
        }
        let leaves = !self.is_ours(destination);
        if own.is_loopback() && leaves { Err(Error::Loopback(own)) } else { Ok(()) }
    }

    /// Classifies a destination address.
    pub(crate) fn audience(&self, address: Ipv4Addr) -> Audience {
        if self.is_ours(address) {
            return Audience::Us;
        }
        let is_all = |own: &Ipv4Cidr| own.broadcast() == Some(address);
        if address.is_broadcast() || self.addresses.iter().any(is_all) {
            return Audience::Broadcast;
        }
        Audience::Others
    }

    /// Is this a valid source of a received packet? Multicast, unspecified, broadcast and our own
    /// addresses are not (RFC 1122 §3.2.1.3).
    ///
    /// The lowest address of a network is accepted as a host address, contrary to that section. It
    /// was reserved for 4.2BSD, which used it as a broadcast address and is no longer in use. Linux
    /// accepts it since version 5.14; a host that refuses it could not reach such a neighbour.
    /// [`audience`](Self::audience) treats it as a host address, too.
    pub(crate) fn is_possible_source(&self, address: Ipv4Addr) -> bool {
        !address.is_multicast()
            && !address.is_unspecified()
            && self.audience(address) == Audience::Others
    }

    /// Is `address` in the network of one of our addresses?
    pub(crate) fn is_on_link(&self, address: Ipv4Addr) -> bool {
        self.addresses.iter().any(|own| own.contains(address))
    }

    /// Returns the source address for packets to `next_hop`: our address in its network, or else
    /// our first one.
    pub(crate) fn source_towards(&self, next_hop: Ipv4Addr) -> Option<Ipv4Addr> {
        if self.is_ours(next_hop) {
            return Some(next_hop);
        }
        let nearest = self.addresses.iter().find(|own| own.contains(next_hop));
        nearest.or_else(|| self.addresses.first()).map(|own| own.address())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn interface() -> Interface {
        let addresses = vec!["192.0.2.1/24".parse().unwrap(), "10.1.0.1/16".parse().unwrap()];
        Interface::new(MacAddress::new([2, 0, 0, 0, 0, 1]), addresses)
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
            ([224, 0, 0, 1], Audience::Others),
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
        assert_eq!(interface.source_towards([10, 1, 9, 9].into()), Some([10, 1, 0, 1].into()));
        assert_eq!(interface.source_towards([198, 51, 100, 7].into()), Some([192, 0, 2, 1].into()));
        assert_eq!(interface.source_towards([127, 0, 0, 1].into()), Some([127, 0, 0, 1].into()));
    }
}

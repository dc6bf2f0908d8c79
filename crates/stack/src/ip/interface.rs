//! Who this host is on its link: its station, its addresses, and what the link can do.

use crate::error::Error;
use crate::link::{Capabilities, Medium, SMALLEST_MTU};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use linerate_wire::{Ipv4Cidr, MacAddress};

/// What a link is taken for until it is attached.
const UNATTACHED: Capabilities = Capabilities::new(Medium::Ethernet, 1_500);

/// The interface of a host.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) mac: MacAddress,
    pub(crate) addresses: Vec<Ipv4Cidr>,
    pub(crate) capabilities: Capabilities,
    /// What follows from them for each frame.
    pub(crate) frames: Frames,
}

/// What the frames of a link are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    /// Bytes of the medium's header.
    pub(crate) header: usize,
    /// Bytes that an offered frame has at least.
    pub(crate) least: usize,
    /// Bytes of it that may be filled.
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

/// Whom an address means, as seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// This host alone.
    Us,
    /// Every host of a network that this one belongs to.
    Everyone,
    /// Somebody else, or a group that this host is not in.
    Others,
}

impl Interface {
    pub(crate) const fn new(mac: MacAddress, addresses: Vec<Ipv4Cidr>) -> Self {
        Self { mac, addresses, capabilities: UNATTACHED, frames: Frames::of(&UNATTACHED) }
    }

    /// The interface is on a link that can do this.
    pub(crate) const fn attach(&mut self, capabilities: Capabilities) {
        self.capabilities = capabilities;
        self.frames = Frames::of(&capabilities);
    }

    /// Is it an address of this host? 127.0.0.0/8 always is (RFC 1122 §3.2.1.3).
    pub(crate) fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.addresses.iter().any(|own| own.address() == address) || address.is_loopback()
    }

    /// May an application that has chosen `own` send from it to `destination`? It must be an address of this host, and
    /// one of the loopback network must not appear outside (RFC 1122 §3.2.1.3).
    #[inline(never)]
    pub(crate) fn judge_source(&self, own: Ipv4Addr, destination: Ipv4Addr) -> Result<(), Error> {
        if !self.is_ours(own) {
            return Err(Error::AddressNotOurs(own));
        }
        let leaves = !self.is_ours(destination);
        if own.is_loopback() && leaves { Err(Error::Loopback(own)) } else { Ok(()) }
    }

    /// Whom a packet to `address` is for.
    pub(crate) fn audience(&self, address: Ipv4Addr) -> Audience {
        if self.is_ours(address) {
            return Audience::Us;
        }
        let is_all = |own: &Ipv4Cidr| own.broadcast() == Some(address);
        if address.is_broadcast() || self.addresses.iter().any(is_all) {
            return Audience::Everyone;
        }
        Audience::Others
    }

    /// Can a packet come from this address? Not from a group, from nobody in particular, or from
    /// ourselves (RFC 1122 §3.2.1.3).
    ///
    /// The lowest address of a network is a host's like any other, although that section lets no host have it: it was
    /// kept free for 4.2BSD, which meant all hosts by it, and nobody does any more. Linux treats it so since 5.14, and
    /// whoever refused it would not hear a neighbour that has it. In [`audience`](Self::audience) it is one host, too.
    pub(crate) fn is_possible_source(&self, address: Ipv4Addr) -> bool {
        !address.is_multicast()
            && !address.is_unspecified()
            && self.audience(address) == Audience::Others
    }

    /// Is `address` on the link, next to one of ours?
    pub(crate) fn is_on_link(&self, address: Ipv4Addr) -> bool {
        self.addresses.iter().any(|own| own.contains(address))
    }

    /// The address of ours to speak from when the next hop is `next_hop`: the one in its network,
    /// else the first.
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
    fn an_address_means_us_everyone_or_others() {
        let interface = interface();
        for (address, audience) in [
            ([192, 0, 2, 1], Audience::Us),
            ([127, 3, 2, 1], Audience::Us),
            ([192, 0, 2, 255], Audience::Everyone),
            ([10, 1, 255, 255], Audience::Everyone),
            ([255, 255, 255, 255], Audience::Everyone),
            ([192, 0, 2, 2], Audience::Others),
            ([224, 0, 0, 1], Audience::Others),
        ] {
            assert_eq!(interface.audience(address.into()), audience, "{address:?}");
        }
    }

    #[test]
    fn a_packet_comes_from_one_other_host() {
        let interface = interface();
        assert!(interface.is_possible_source([198, 51, 100, 7].into()));
        for source in
            [[0, 0, 0, 0], [224, 0, 0, 1], [192, 0, 2, 255], [192, 0, 2, 1], [127, 0, 0, 1]]
        {
            assert!(!interface.is_possible_source(source.into()), "{source:?}");
        }
    }

    #[test]
    fn the_lowest_address_of_a_network_is_another_hosts() {
        let interface = interface();
        for lowest in [[192, 0, 2, 0], [10, 1, 0, 0]] {
            assert!(interface.is_possible_source(lowest.into()));
            assert_eq!(interface.audience(lowest.into()), Audience::Others);
        }
    }

    #[test]
    fn the_source_is_the_neighbour_of_the_next_hop() {
        let interface = interface();
        assert_eq!(interface.source_towards([10, 1, 9, 9].into()), Some([10, 1, 0, 1].into()));
        assert_eq!(interface.source_towards([198, 51, 100, 7].into()), Some([192, 0, 2, 1].into()));
        assert_eq!(interface.source_towards([127, 0, 0, 1].into()), Some([127, 0, 0, 1].into()));
    }
}

//! A host on an Ethernet link in virtual time. The test plays all other hosts and routers of the
//! link.

#![allow(dead_code, reason = "each test file uses a part")]

use linerate_stack::{AddressState, Capabilities, Medium, RxFrame, Stack, StackConfig};
use linerate_units::{Duration, Instant};
use linerate_wire::{
    ArpOperation, ArpPacket, EtherType, EthernetFrame, EthernetHeader, Icmpv6Message, Ipv6Header,
    Ipv6Packet, MacAddress, NdMessage, NdOption, NdOptions, PrefixInformation, RouterAdvertisement,
    RouterPreference, VlanTags, ipv6_multicast, mld,
};
use std::net::{IpAddr, Ipv6Addr};

pub(crate) const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);
pub(crate) const LINK_LOCAL: &str = "fe80::ff:fe00:1";
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A frame that the host has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) to: MacAddress,
    pub(crate) ether_type: EtherType,
    pub(crate) payload: Vec<u8>,
}

impl Sent {
    /// Returns the IPv6 header and the Neighbour Discovery message in the frame; `None` if the
    /// frame holds no such message.
    pub(crate) fn discovery(&self) -> Option<(Ipv6Header, NdMessage<'_>)> {
        let packet = Ipv6Packet::parse(&self.payload).ok()?;
        match Icmpv6Message::parse(&packet.header, packet.payload).ok()? {
            Icmpv6Message::NeighborDiscovery(message) => Some((packet.header, message)),
            _ => None,
        }
    }

    /// Returns the target and the source address of the neighbour solicitation in the frame; `None`
    /// if the frame holds none.
    pub(crate) fn solicitation(&self) -> Option<(Ipv6Addr, Ipv6Addr)> {
        match self.discovery()? {
            (header, NdMessage::NeighborSolicitation { target, .. }) => {
                Some((target, header.source))
            }
            _ => None,
        }
    }

    pub(crate) fn is_router_solicitation(&self) -> bool {
        matches!(self.discovery(), Some((_, NdMessage::RouterSolicitation { .. })))
    }

    pub(crate) fn arp(&self) -> Option<ArpPacket> {
        (self.ether_type == EtherType::ARP).then(|| ArpPacket::parse(&self.payload).unwrap())
    }
}

/// The host under test, and the current virtual time.
pub(crate) struct Peer {
    pub(crate) stack: Stack,
    pub(crate) now: Instant,
}

impl Peer {
    /// Creates a host with these addresses.
    pub(crate) fn new(addresses: &[&str], configure: impl FnOnce(&mut StackConfig)) -> Self {
        let mut config = StackConfig::new(MAC, "192.0.2.1/24".parse().unwrap());
        config.addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        configure(&mut config);
        let mut stack = Stack::new(config, [1; 32]);
        stack.attach(Capabilities::new(Medium::Ethernet, 1_500));
        // The clock does not start at zero, so that tests detect an uninitialised time.
        Self { stack, now: Instant::ZERO + Duration::from_secs(1_000) }
    }

    /// Returns the frames that the host sends now, except multicast reports.
    pub(crate) fn transmit(&mut self) -> Vec<Sent> {
        let mut frame = vec![0; 1_514];
        let mut sent = Vec::new();
        while let Some(written) = self.stack.poll_transmit(self.now, &mut frame) {
            let parsed = EthernetFrame::parse(&frame[..written.length]).unwrap();
            // Membership reports of multicast groups are left out here, because other test files
            // check them.
            if parsed.header.destination == MacAddress::of_ipv6_multicast(mld::REPORT_RECEIVERS) {
                continue;
            }
            sent.push(Sent {
                at: self.now,
                to: parsed.header.destination,
                ether_type: parsed.header.ether_type,
                payload: parsed.payload.to_vec(),
            });
        }
        self.stack.check();
        sent
    }

    /// Runs the host for the time `span`, and returns the frames that it sends.
    pub(crate) fn run(&mut self, span: Duration) -> Vec<Sent> {
        let end = self.now + span;
        let mut sent = self.transmit();
        loop {
            let next = self.stack.poll_timeout().max(self.now);
            if next > end {
                break;
            }
            self.now = next;
            self.stack.handle_timeout(self.now, 1_000);
            sent.extend(self.transmit());
        }
        self.now = end;
        sent
    }

    fn receive(&mut self, header: EthernetHeader, payload: &[u8]) {
        let mut frame = vec![0; 14];
        header.emit(&mut frame);
        frame.extend_from_slice(payload);
        self.stack.handle_frame(self.now, RxFrame::plain(&frame, self.now));
        self.stack.check();
    }

    /// Delivers to the host an IPv6 packet from a neighbour with this MAC address.
    pub(crate) fn receive_packet(&mut self, from: MacAddress, packet: &[u8]) {
        let destination: [u8; 16] = packet[24..40].try_into().unwrap();
        let destination = Ipv6Addr::from(destination);
        let to = if destination.is_multicast() {
            MacAddress::of_ipv6_multicast(destination)
        } else {
            MAC
        };
        let header = EthernetHeader {
            destination: to,
            source: from,
            tags: VlanTags::NONE,
            ether_type: EtherType::IPV6,
        };
        self.receive(header, packet);
    }

    /// Delivers an ICMPv6 message to the host. The packet has the hop limit 255, without which the
    /// host would ignore messages of Neighbour Discovery.
    pub(crate) fn receive_message(
        &mut self,
        from: MacAddress,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        message: &Icmpv6Message<'_>,
    ) {
        let header = NdMessage::header(source, destination);
        let mut packet = vec![0; Ipv6Header::LENGTH + message.length()];
        header.emit(message.length(), &mut packet);
        message.emit(&header, &mut packet[Ipv6Header::LENGTH..]);
        self.receive_packet(from, &packet);
    }

    /// Delivers to the host a neighbour advertisement.
    pub(crate) fn receive_advertisement(&mut self, destination: Ipv6Addr, message: NdMessage<'_>) {
        let NdMessage::NeighborAdvertisement { target_mac, .. } = message else {
            panic!("{message:?}");
        };
        let from = target_mac.unwrap_or(MacAddress::new([2, 0, 0, 0, 0, 99]));
        let message = Icmpv6Message::NeighborDiscovery(message);
        let source = "fe80::99".parse().unwrap();
        self.receive_message(from, source, destination, &message);
    }

    /// Delivers to the host an advertisement of this router.
    pub(crate) fn receive_router(&mut self, router: &Router, options: &[NdOption<'_>]) {
        let mut bytes = vec![0; options.iter().map(NdOption::length).sum()];
        let mut at = 0;
        for option in options {
            at += option.emit(&mut bytes[at..]);
        }
        let message = RouterAdvertisement {
            lifetime: router.lifetime,
            preference: router.preference,
            reachable_time: router.reachable_time,
            retransmission_timer: router.retransmission_timer,
            options: NdOptions::parse(&bytes).unwrap(),
            ..RouterAdvertisement::default()
        };
        let message = Icmpv6Message::NeighborDiscovery(NdMessage::RouterAdvertisement(message));
        self.receive_message(router.mac, router.address, ipv6_multicast::ALL_NODES, &message);
    }

    /// Delivers to the host a broadcast ARP packet.
    pub(crate) fn receive_arp(&mut self, packet: &ArpPacket) {
        let header = EthernetHeader {
            destination: MacAddress::BROADCAST,
            source: packet.sender_mac,
            tags: VlanTags::NONE,
            ether_type: EtherType::ARP,
        };
        let mut bytes = vec![0; ArpPacket::LENGTH];
        packet.emit(&mut bytes);
        self.receive(header, &bytes);
    }

    /// Returns the state of an address of the host; `None` if the host does not have this address.
    pub(crate) fn state(&self, address: &str) -> Option<AddressState> {
        let address: IpAddr = address.parse().unwrap();
        let own = self.stack.addresses().iter().find(|own| own.cidr.address() == address)?;
        Some(own.state)
    }

    /// Makes the host send an echo request. Returns the frames that the host then sends, which may
    /// be those of address resolution.
    pub(crate) fn ping(&mut self, destination: &str) -> Vec<Sent> {
        let destination: IpAddr = destination.parse().unwrap();
        self.stack.echo_send(self.now, destination, 1, 1, b"").unwrap();
        self.transmit()
    }
}

/// A router on the link: its addresses, and the values that it announces in its advertisements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Router {
    pub(crate) address: Ipv6Addr,
    pub(crate) mac: MacAddress,
    pub(crate) lifetime: u16,
    pub(crate) preference: RouterPreference,
    pub(crate) reachable_time: u32,
    pub(crate) retransmission_timer: u32,
}

impl Router {
    pub(crate) const fn new(number: u8) -> Self {
        Self {
            address: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, number as u16),
            mac: MacAddress::new([2, 0, 0, 0, 1, number]),
            lifetime: 1_800,
            preference: RouterPreference::Medium,
            reachable_time: 0,
            retransmission_timer: 0,
        }
    }

    pub(crate) const fn source_option(&self) -> NdOption<'static> {
        NdOption::SourceMac(self.mac)
    }
}

/// Returns a Prefix Information option for a prefix of 64 bits, with the on-link and the autonomous
/// flag. The lifetimes are in seconds.
pub(crate) fn prefix(text: &str, valid: u32, preferred: u32) -> NdOption<'static> {
    NdOption::Prefix(PrefixInformation {
        prefix: text.parse().unwrap(),
        length: 64,
        is_on_link: true,
        is_autonomous: true,
        valid_lifetime: valid,
        preferred_lifetime: preferred,
    })
}

/// Returns an ARP packet of a host with this MAC address.
pub(crate) fn arp(operation: ArpOperation, mac: MacAddress, from: &str, to: &str) -> ArpPacket {
    ArpPacket { operation, ..ArpPacket::request(mac, from.parse().unwrap(), to.parse().unwrap()) }
}

/// Returns the destination of an IPv6 packet.
pub(crate) fn destination(packet: &[u8]) -> Ipv6Addr {
    Ipv6Packet::parse(packet).unwrap().header.destination
}

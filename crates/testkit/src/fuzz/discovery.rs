//! Fuzz target: a host that configures addresses and routes from router advertisements receives
//! messages of Neighbour Discovery and ARP packets. Solicitations, advertisements and redirects
//! have any options and come in any order.

use super::choices::Choices;
use linerate_stack::{
    AddressOptions, Autoconfiguration, Capabilities, Medium, RxFrame, Stack, StackConfig,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{
    ArpOperation, ArpPacket, EtherType, EthernetHeader, Icmpv6Message, IpCidr, Ipv6Header,
    MacAddress, NdMessage, NdOption, NdOptions, PrefixInformation, RouterAdvertisement,
    RouterPreference, VlanTags, ipv6_multicast,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);
const MTU: usize = 1_500;

/// Runs the test case that `bytes` encode.
///
/// # Panics
/// If an invariant of the host is violated.
pub fn neighbor_discovery_into_a_host(bytes: &[u8]) {
    let mut case = TestCase::begin(Choices::new(bytes));
    while !case.choices.is_empty() {
        case.step();
        case.stack.check();
    }
}

struct TestCase<'a> {
    choices: Choices<'a>,
    now: Instant,
    stack: Stack,
}

impl<'a> TestCase<'a> {
    fn begin(mut choices: Choices<'a>) -> Self {
        let mut config = StackConfig::new(MAC, single([192, 0, 2, 1].into()));
        config.addresses.push(cidr(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(), 64));
        config.dad_transmits = choices.byte() % 3;
        let temporary = Autoconfiguration::STABLE.with_temporary_addresses();
        config.ipv6_autoconfiguration =
            choices.of(&[None, Some(Autoconfiguration::STABLE), Some(temporary), Some(temporary)]);
        config.limits.neighbors.entries = 6;
        config.limits.neighbors.unresolved = 3;
        config.limits.routers = 2;
        config.limits.prefixes = 2;
        config.limits.redirects = 2;
        config.limits.addresses = 8;
        let mut stack = Stack::new(config, [choices.byte(); 32]);
        stack.attach(Capabilities::new(Medium::Ethernet, MTU));
        Self { choices, now: Instant::ZERO + Duration::from_secs(1_000), stack }
    }

    fn step(&mut self) {
        match self.choices.byte() % 12 {
            0 => self.advance(),
            1 => self.send_echo(),
            2 => self.change_addresses(),
            3 => self.receive_arp(),
            4 | 5 => self.receive_router_advertisement(),
            6 => self.receive_bytes(),
            7 => self.receive_redirect(),
            8 | 9 => self.receive_neighbor_advertisement(),
            10 => self.receive_solicitation(),
            _ => self.transmit(),
        }
    }

    fn advance(&mut self) {
        let end = self.now + self.choices.span();
        // Handles at most 100 timeouts, so that a test case ends.
        for _ in 0..100 {
            let next = self.stack.poll_timeout();
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            self.stack.handle_timeout(self.now, 10);
            self.transmit();
        }
        self.now = end;
    }

    fn transmit(&mut self) {
        let mut frame = vec![0; 14 + MTU];
        for _ in 0..100 {
            if self.stack.poll_transmit(self.now, &mut frame).is_none() {
                break;
            }
        }
    }

    fn send_echo(&mut self) {
        let destination = self.address();
        // The result is ignored, because the call may fail: the host may have no address, no route,
        // or a full queue.
        let _ = self.stack.echo_send(self.now, destination, 1, 1, b"");
        self.transmit();
    }

    fn change_addresses(&mut self) {
        let address = IpAddr::V6(self.address());
        if self.choices.yes() {
            self.stack.remove_address(self.now, address);
            return;
        }
        let options = if self.choices.yes() {
            AddressOptions::lease(self.choices.span())
        } else {
            AddressOptions::default()
        };
        // The result is ignored, because the call may fail: the address may be invalid, or the host
        // may already have its maximum number of addresses.
        let _ = self.stack.add_address(self.now, cidr(address, 64), &options);
        while self.stack.poll_event().is_some() {}
    }

    /// Chooses an IPv6 address: that of the host, of a neighbour, of a router, of a node in another
    /// network, or of a multicast group.
    fn address(&mut self) -> Ipv6Addr {
        let number = u16::from(self.choices.byte() % 8);
        match self.choices.byte() % 8 {
            0 => self.own_address(),
            1 | 2 => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, number),
            3 => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number),
            4 => Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 9),
            5 => Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, number),
            6 => ipv6_multicast::ALL_NODES,
            _ => Ipv6Addr::UNSPECIFIED,
        }
    }

    fn own_address(&mut self) -> Ipv6Addr {
        let own = self.stack.addresses().iter().filter_map(|own| match own.cidr.address() {
            IpAddr::V6(own) => Some(own),
            IpAddr::V4(_) => None,
        });
        let own: Vec<_> = own.collect();
        if own.is_empty() { Ipv6Addr::LOCALHOST } else { self.choices.of(&own) }
    }

    fn mac(&mut self) -> MacAddress {
        MacAddress::new([2, 0, 0, 0, 1, self.choices.byte() % 16])
    }

    fn optional_mac(&mut self) -> Option<MacAddress> {
        self.choices.yes().then(|| self.mac())
    }

    fn receive_solicitation(&mut self) {
        let target = self.own_address();
        let source = self.address();
        let source_mac = self.optional_mac();
        let group = ipv6_multicast::solicited_node(target);
        let to = if self.choices.yes() { group } else { target };
        self.receive(source, to, NdMessage::NeighborSolicitation { target, source_mac });
    }

    fn receive_neighbor_advertisement(&mut self) {
        let (source, target, to) = (self.address(), self.address(), self.own_address());
        let flags = self.choices.byte();
        let message = NdMessage::NeighborAdvertisement {
            is_router: flags & 1 != 0,
            is_solicited: flags & 2 != 0,
            is_override: flags & 4 != 0,
            target,
            target_mac: self.optional_mac(),
        };
        self.receive(source, to, message);
    }

    fn receive_redirect(&mut self) {
        let (source, target, destination) = (self.address(), self.address(), self.address());
        let target = if self.choices.yes() { destination } else { target };
        let (to, target_mac) = (self.own_address(), self.optional_mac());
        let message = NdMessage::Redirect { target, destination, target_mac, redirected: None };
        self.receive(source, to, message);
    }

    fn receive_router_advertisement(&mut self) {
        let mut options = Vec::new();
        for _ in 0..self.choices.byte() % 5 {
            let option = self.option();
            let at = options.len();
            options.resize(at + option.length(), 0);
            option.emit(&mut options[at..]);
        }
        let source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, u16::from(self.choices.byte() % 8));
        let preferences = [RouterPreference::Low, RouterPreference::Medium, RouterPreference::High];
        let message = RouterAdvertisement {
            hop_limit: self.choices.byte(),
            is_managed: self.choices.yes(),
            has_other_configuration: self.choices.yes(),
            preference: self.choices.of(&preferences),
            lifetime: self.choices.half(),
            reachable_time: self.choices.near(0),
            retransmission_timer: self.choices.near(0),
            options: NdOptions::parse(&options).unwrap_or_default(),
        };
        self.receive(source, ipv6_multicast::ALL_NODES, NdMessage::RouterAdvertisement(message));
    }

    fn option(&mut self) -> NdOption<'a> {
        match self.choices.byte() % 6 {
            0 => NdOption::SourceMac(self.mac()),
            1 => NdOption::Mtu(self.choices.near(1_400)),
            2 => NdOption::Other { kind: self.choices.byte(), data: self.choices.bytes() },
            _ => {
                let prefix = self.address();
                let flags = self.choices.byte();
                NdOption::Prefix(PrefixInformation {
                    prefix,
                    length: self.choices.of(&[64, 64, 64, 0, 10, 63, 128, 255]),
                    is_on_link: flags & 1 != 0,
                    is_autonomous: flags & 2 != 0,
                    valid_lifetime: self.lifetime(),
                    preferred_lifetime: self.lifetime(),
                })
            }
        }
    }

    fn lifetime(&mut self) -> u32 {
        match self.choices.byte() % 5 {
            0 => 0,
            1 => u32::MAX,
            2 => self.choices.word(),
            3 => 7_200,
            _ => u32::from(self.choices.byte()),
        }
    }

    /// Delivers arbitrary bytes as a message of Neighbour Discovery with a valid checksum.
    fn receive_bytes(&mut self) {
        let (source, to) = (self.address(), self.own_address());
        let kind = 133 + self.choices.byte() % 5;
        let mut body = self.choices.bytes().to_vec();
        body.resize(body.len().max(4), 0);
        let message = Icmpv6Message::Other { kind, code: 0, body: &body };
        self.receive_message(source, to, &message);
    }

    fn receive(&mut self, source: Ipv6Addr, destination: Ipv6Addr, message: NdMessage<'_>) {
        self.receive_message(source, destination, &Icmpv6Message::NeighborDiscovery(message));
    }

    fn receive_message(
        &mut self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        message: &Icmpv6Message<'_>,
    ) {
        let header = NdMessage::header(source, destination);
        let at = Ipv6Header::LENGTH;
        let mut packet = vec![0; at + message.length()];
        header.emit(message.length(), &mut packet);
        message.emit(&header, &mut packet[at..]);
        let to = if destination.is_multicast() {
            MacAddress::of_ipv6_multicast(destination)
        } else {
            MAC
        };
        self.receive_frame(to, EtherType::IPV6, &packet);
    }

    fn receive_arp(&mut self) {
        let host = |choices: &mut Choices<'_>| Ipv4Addr::new(192, 0, 2, choices.byte() % 4);
        let operations = [ArpOperation::Request, ArpOperation::Reply];
        let (mac, sender_ip) = (self.mac(), host(&mut self.choices));
        let sender_ip = if self.choices.yes() { sender_ip } else { Ipv4Addr::UNSPECIFIED };
        let packet = ArpPacket {
            operation: self.choices.of(&operations),
            ..ArpPacket::request(mac, sender_ip, host(&mut self.choices))
        };
        let mut bytes = [0; ArpPacket::LENGTH];
        packet.emit(&mut bytes);
        self.receive_frame(MacAddress::BROADCAST, EtherType::ARP, &bytes);
    }

    fn receive_frame(&mut self, destination: MacAddress, ether_type: EtherType, payload: &[u8]) {
        let source = self.mac();
        let header = EthernetHeader { destination, source, tags: VlanTags::NONE, ether_type };
        let mut frame = vec![0; 14];
        header.emit(&mut frame);
        frame.extend_from_slice(payload);
        self.stack.handle_frame(self.now, RxFrame::plain(&frame, self.now));
    }
}

fn single(address: IpAddr) -> IpCidr {
    cidr(address, 24)
}

fn cidr(address: IpAddr, prefix_length: u8) -> IpCidr {
    IpCidr::new(address, prefix_length).unwrap_or_else(|| IpCidr::single(address))
}

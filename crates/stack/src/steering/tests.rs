use super::*;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4, SocketAddrV6};
use linerate_wire::{
    Echo, EtherType, EthernetHeader, IcmpError, IcmpMessage, Icmpv6Error, Icmpv6Message,
    Ipv4Header, Ipv6Header, MacAddress, NdMessage, Protocol, Quote, Unreachable, VlanTags,
};
use proptest::prelude::*;

fn steering(shards: u16) -> Steering {
    Steering::new([7; 32], NonZeroU16::new(shards).unwrap())
}

fn packet(source: Ipv4Addr, destination: Ipv4Addr, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from([0; Ipv4Header::LENGTH]);
    Ipv4Header::new(source, destination, protocol).emit(payload.len(), &mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn segment(from: SocketAddrV4, to: SocketAddrV4) -> Vec<u8> {
    let mut payload = [0; 20];
    payload[..2].copy_from_slice(&from.port().to_be_bytes());
    payload[2..4].copy_from_slice(&to.port().to_be_bytes());
    packet(*from.ip(), *to.ip(), Protocol::TCP, &payload)
}

fn framed(ether_type: EtherType, packet: &[u8]) -> Vec<u8> {
    let mac = MacAddress::new([2, 0, 0, 0, 0, 1]);
    let header = EthernetHeader { destination: mac, source: mac, tags: VlanTags::NONE, ether_type };
    let mut bytes = Vec::from([0; ETHERNET_HEADER]);
    header.emit(&mut bytes);
    bytes.extend_from_slice(packet);
    bytes
}

fn end() -> impl Strategy<Value = SocketAddrV4> {
    (any::<u32>(), any::<u16>())
        .prop_map(|(ip, port)| SocketAddrV4::new(Ipv4Addr::from_bits(ip), port))
}

fn ipv6_end() -> impl Strategy<Value = SocketAddrV6> {
    (any::<u128>(), any::<u16>())
        .prop_map(|(ip, port)| SocketAddrV6::new(Ipv6Addr::from_bits(ip), port, 0, 0))
}

fn ipv6_packet(header: Ipv6Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from([0; Ipv6Header::LENGTH]);
    header.emit(payload.len(), &mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn ipv6_segment(from: SocketAddrV6, to: SocketAddrV6) -> Vec<u8> {
    let mut payload = [0; 20];
    payload[..2].copy_from_slice(&from.port().to_be_bytes());
    payload[2..4].copy_from_slice(&to.port().to_be_bytes());
    ipv6_packet(Ipv6Header::new(*from.ip(), *to.ip(), Protocol::TCP), &payload)
}

fn icmpv6(header: Ipv6Header, message: &Icmpv6Message<'_>) -> Vec<u8> {
    let mut payload = vec![0; message.length()];
    message.emit(&header, &mut payload);
    ipv6_packet(header, &payload)
}

#[test]
fn neighbour_discovery_reaches_all_shards_and_an_ipv6_echo_the_first() {
    let mut steering = steering(4);
    let (here, there) = (Ipv6Addr::from_bits(1 << 64), Ipv6Addr::from_bits(2 << 64));
    let header = Ipv6Header { hop_limit: 255, ..Ipv6Header::new(there, here, Protocol::ICMPV6) };
    let solicitation = NdMessage::NeighborSolicitation { target: here, source_mac: None };
    let packet = icmpv6(header, &Icmpv6Message::NeighborDiscovery(solicitation));
    assert_eq!(steering.steer(Medium::Ip, &packet), Steered::ToAll);
    let echo = Echo { identifier: 1, sequence: 2, data: &[] };
    let packet = icmpv6(header, &Icmpv6Message::EchoRequest(echo));
    assert_eq!(steering.steer(Medium::Ip, &packet), Steered::To(FIRST_SHARD));
}

proptest! {
    #[test]
    fn an_ipv6_flow_and_errors_about_it_have_one_shard(
        one in ipv6_end(),
        other in ipv6_end(),
        shards in 1_u16..9,
    ) {
        let mut steering = steering(shards);
        let owner = Steered::To(steering.of_connection(one, other));
        let quoted = ipv6_segment(one, other);
        prop_assert_eq!(steering.steer(Medium::Ip, &quoted), owner);
        prop_assert_eq!(steering.steer(Medium::Ip, &ipv6_segment(other, one)), owner);
        let frame = framed(EtherType::IPV6, &quoted);
        prop_assert_eq!(steering.steer(Medium::Ethernet, &frame), owner);
        let error = Icmpv6Message::Error {
            error: Icmpv6Error::PacketTooBig { mtu: 1_280 },
            quote: Ipv6Quote::of(&quoted).unwrap(),
        };
        let header = Ipv6Header::new(*other.ip(), *one.ip(), Protocol::ICMPV6);
        prop_assert_eq!(steering.steer(Medium::Ip, &icmpv6(header, &error)), owner);
    }

    #[test]
    fn a_flow_never_changes_its_shard(
        flows in prop::collection::vec((end(), end()), 1..20),
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..60),
        shards in 1_u16..9,
    ) {
        let mut steering = steering(shards);
        for (which, back) in order {
            let (one, other) = flows[which.index(flows.len())];
            let packet = if back { segment(other, one) } else { segment(one, other) };
            let owner = Steered::To(steering.of_connection(one, other));
            prop_assert_eq!(steering.steer(Medium::Ip, &packet), owner);

            let frame = framed(EtherType::IPV4, &packet);
            prop_assert_eq!(steering.steer(Medium::Ethernet, &frame), owner);
        }
    }

    #[test]

    fn an_icmp_error_reaches_the_shard_of_its_flow(
        ours in end(), peer in end(), router in any::<u32>(),
    ) {
        let mut steering = steering(8);
        let sent = segment(ours, peer);

        for error in [
            IcmpError::Unreachable(Unreachable::Host),
            IcmpError::FragmentationNeeded { next_hop_mtu: 900 },
        ] {
            let message = IcmpMessage::Error { error, quote: Quote::of(&sent).unwrap() };
            let mut bytes = vec![0; message.length()];
            message.emit(&mut bytes);
            let report = packet(Ipv4Addr::from_bits(router), *ours.ip(), Protocol::ICMP, &bytes);
            let owner = Steered::To(steering.of_connection(ours, peer));
            prop_assert_eq!(steering.steer(Medium::Ip, &report), owner);
        }
    }

    #[test]
    fn fragments_reach_the_first_shard(
        from in end(),
        to in end(),
        id in any::<u16>(),
        offsets in prop::collection::vec(0_u16..8_192, 1..9),
    ) {
        let mut steering = steering(8);
        for offset in offsets {
            // Only the first fragment contains the ports. A later fragment has data at the position
            // of the ports. These data must not be taken for ports, which could select another
            // shard.
            let mut fragment = if offset == 0 { segment(from, to) } else { segment(to, from) };
            if offset != 0 {
                let data = offset.to_be_bytes().repeat(5);
                fragment = packet(*from.ip(), *to.ip(), Protocol::TCP, &data);
            }
            fragment[4..6].copy_from_slice(&id.to_be_bytes());
            fragment[6..8].copy_from_slice(&(0x2000 | offset).to_be_bytes());
            prop_assert_eq!(steering.steer(Medium::Ip, &fragment), Steered::To(FIRST_SHARD));
        }
    }

    #[test]

    fn any_bytes_reach_an_existing_shard(
        bytes in prop::collection::vec(any::<u8>(), 0..90),
        shards in 1_u16..5,
        is_ipv4: bool,
    ) {
        let mut bytes = bytes;
        if is_ipv4 && bytes.len() > 24 {
            bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
        }
        for medium in [Medium::Ethernet, Medium::Ip] {
            if let Steered::To(shard) = steering(shards).steer(medium, &bytes) {
                prop_assert!(shard < shards);
            }
        }
    }
}

#[test]
fn flows_are_spread_evenly() {
    let steering = steering(4);
    let server = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 80);
    let mut counts = [0; 4];
    for port in 0..4_000 {
        let client = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), port);
        counts[usize::from(steering.of_connection(client, server))] += 1;
    }
    assert!(counts.iter().all(|&count| (900..1_100).contains(&count)), "{counts:?}");
}

#[test]
fn frames_without_a_connection_reach_the_first_shard_and_arp_reaches_all() {
    let mut steering = steering(8);
    let [from, to] = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
    let mut echo = [0; 16];
    IcmpMessage::EchoRequest(Echo { identifier: 1, sequence: 1, data: b"is there" })
        .emit(&mut echo);
    let packets = [
        packet(from, to, Protocol::UDP, &[9; 8]),
        packet(from, to, Protocol::ICMP, &echo),
        Vec::from([0x45; 8]),
    ];
    for packet in packets {
        assert_eq!(steering.steer(Medium::Ip, &packet), Steered::To(FIRST_SHARD));
    }
    assert_eq!(steering.steer(Medium::Ethernet, &framed(EtherType::ARP, &[0; 28])), Steered::ToAll);
    assert_eq!(steering.steer(Medium::Ethernet, b"short"), Steered::To(FIRST_SHARD));
}

#[test]
fn another_seed_distributes_flows_differently() {
    let server = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 80);
    let shards = |seed: u8| {
        let steering = Steering::new([seed; 32], NonZeroU16::new(8).unwrap());
        let client = |port| SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), port);
        (0..64).map(|port| steering.of_connection(client(port), server)).collect::<Vec<_>>()
    };
    assert_ne!(shards(1), shards(2));
    assert_eq!(shards(3), shards(3));
}

//! Property tests of all headers: emitted packets parse to the same values, and no input panics.

use linerate_wire::{
    ArpOperation, ArpPacket, Echo, EcnCounts, EcnOrder, EtherType, EthernetFrame, EthernetHeader,
    FastOpenCookie, FrameLine, IcmpError, IcmpMessage, Ipv4Header, Ipv4Packet, MacAddress,
    PacketLine, Protocol, Quote, Redirect, SackBlock, SackBlocks, Segment, SeqNum, Sum, TcpFlags,
    TcpHeader, TcpOptions, TimeExceeded, Timestamps, TypeOfService, UdpDatagram, UdpHeader,
    Unreachable, UserTimeout, VlanTag, VlanTags,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn mac() -> impl Strategy<Value = MacAddress> {
    any::<[u8; 6]>().prop_map(MacAddress::new)
}

fn ip() -> impl Strategy<Value = Ipv4Addr> {
    any::<u32>().prop_map(Ipv4Addr::from_bits)
}

fn tag() -> impl Strategy<Value = VlanTag> {
    let tag = (0..=VlanTag::MAX_PRIORITY, 0..=VlanTag::MAX_ID, any::<bool>());
    tag.prop_map(|(priority, id, is_service)| {
        let tag = VlanTag::new(priority, id).expect("both are within their bounds");
        if is_service { tag.as_service_tag() } else { tag }
    })
}

fn tags() -> impl Strategy<Value = VlanTags> {
    prop_oneof![
        Just(VlanTags::NONE),
        tag().prop_map(VlanTags::one),
        (tag(), tag()).prop_map(|(outer, inner)| VlanTags::stacked(outer, inner)),
    ]
}

fn ethernet_header() -> impl Strategy<Value = EthernetHeader> {
    let ether_type =
        any::<u16>().prop_map(EtherType::new).prop_filter("a tag", |kind| !kind.is_vlan());
    (mac(), mac(), tags(), ether_type).prop_map(|(destination, source, tags, ether_type)| {
        EthernetHeader { destination, source, tags, ether_type }
    })
}

fn arp_packet() -> impl Strategy<Value = ArpPacket> {
    let operation = prop_oneof![Just(ArpOperation::Request), Just(ArpOperation::Reply)];
    (operation, mac(), ip(), mac(), ip()).prop_map(
        |(operation, sender_mac, sender_ip, target_mac, target_ip)| ArpPacket {
            operation,
            sender_mac,
            sender_ip,
            target_mac,
            target_ip,
        },
    )
}

prop_compose! {
    fn ipv4_header()(
        (service, identification, ttl, protocol) in any::<(u8, u16, u8, u8)>(),
        (dont_fragment, more_fragments) in any::<(bool, bool)>(),
        offset in 0..7_000_u16, source in ip(), destination in ip(),
    ) -> Ipv4Header {
        Ipv4Header {
            type_of_service: TypeOfService::from_byte(service),
            identification, dont_fragment, more_fragments,
            fragment_offset: offset * 8,
            ttl, protocol: Protocol::new(protocol), source, destination,
        }
    }
}

/// Generates the option field of an IPv4 header, a multiple of four bytes.
fn ipv4_options() -> impl Strategy<Value = Vec<u8>> {
    (0..=10_usize).prop_flat_map(|words| vec(any::<u8>(), words * 4))
}

fn unreachable() -> impl Strategy<Value = Unreachable> {
    prop::sample::select(vec![
        Unreachable::Net,
        Unreachable::Host,
        Unreachable::Protocol,
        Unreachable::Port,
        Unreachable::SourceRouteFailed,
        Unreachable::HostProhibited,
        Unreachable::PrecedenceCutoff,
    ])
}

fn icmp_error() -> impl Strategy<Value = IcmpError> {
    prop_oneof![
        unreachable().prop_map(IcmpError::Unreachable),
        any::<u16>().prop_map(|next_hop_mtu| IcmpError::FragmentationNeeded { next_hop_mtu }),
        Just(IcmpError::TimeExceeded(TimeExceeded::Transit)),
        Just(IcmpError::TimeExceeded(TimeExceeded::Reassembly)),
        any::<u8>().prop_map(|pointer| IcmpError::ParameterProblem { pointer }),
        Just(IcmpError::OptionMissing),
        Just(IcmpError::BadLength),
        ip().prop_map(|gateway| IcmpError::Redirect { scope: Redirect::ServiceAndHost, gateway }),
        Just(IcmpError::SourceQuench),
    ]
}

prop_compose! {
    fn tcp_header()(
        (source_port, destination_port, window, urgent) in any::<(u16, u16, u16, u16)>(),
        (seq, ack, flags) in (any::<u32>(), any::<u32>(), 0..=TcpFlags::all().bits()),
    ) -> TcpHeader {
        TcpHeader {
            source_port, destination_port, seq: SeqNum::new(seq), ack: SeqNum::new(ack),
            flags: TcpFlags::from_bits_retain(flags), window, urgent,
        }
    }
}

/// Generates options that fit into one option field. An option field has either the options of a
/// SYN or SACK blocks, because the options of a SYN leave no room for blocks.
fn tcp_options() -> impl Strategy<Value = TcpOptions> {
    let timestamps = option::of(any::<(u32, u32)>())
        .prop_map(|pair| pair.map(|(value, echo)| Timestamps { value, echo }));
    let blocks = vec(any::<(u32, u32)>(), 0..=3).prop_map(|blocks| {
        let mut sack = SackBlocks::default();
        for (left, right) in blocks {
            sack.push(SackBlock { left: SeqNum::new(left), right: SeqNum::new(right) });
        }
        sack
    });
    let user_timeout = option::of((any::<bool>(), 1..=UserTimeout::MOST))
        .prop_map(|pair| pair.map(|(minutes, count)| UserTimeout { minutes, count }));
    // The cookie has at most fourteen bytes, because the other options of a SYN leave no room for a
    // longer one.
    let cookie = option::of(vec(any::<u8>(), 0..=14))
        .prop_map(|bytes| bytes.and_then(|bytes| FastOpenCookie::new(&bytes)));
    let syn = (option::of(any::<u16>()), option::of(any::<u8>()), any::<bool>(), cookie);
    let order = prop_oneof![Just(EcnOrder::Zero), Just(EcnOrder::One)];
    let ecn = option::of((order, any::<[u32; 3]>(), 0..=3_u8).prop_map(
        |(order, [e0b, ceb, e1b], count)| EcnCounts::new(order, e0b, ceb, e1b).cut_to(count),
    ));
    (any::<bool>(), syn, timestamps, user_timeout, blocks, ecn).prop_map(
        |(
            is_syn,
            (mss, window_scale, sack_permitted, fast_open),
            timestamps,
            user_timeout,
            sack,
            ecn,
        )| {
            match is_syn {
                true => TcpOptions {
                    mss,
                    window_scale,
                    sack_permitted,
                    timestamps,
                    user_timeout,
                    fast_open,
                    ..TcpOptions::default()
                },
                // Timestamps, up to three byte counters of AccECN and two SACK blocks together can
                // exceed 40 bytes, the maximum for options. In this case, timestamps are omitted.
                false if ecn.is_some() && sack.as_slice().len() > 1 => {
                    TcpOptions { ecn, sack, ..TcpOptions::default() }
                }
                false => TcpOptions { timestamps, ecn, sack, ..TcpOptions::default() },
            }
        },
    )
}

/// Returns the bytes that `emit` writes, followed by `payload`.
fn emitted(payload: &[u8], emit: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut bytes = vec![0xa5; 128 + payload.len()];
    let length = emit(&mut bytes);
    bytes.truncate(length);
    bytes.extend_from_slice(payload);
    bytes
}

proptest! {
    #[test]
    fn an_ethernet_header_survives_emitting_and_parsing(
        header in ethernet_header(), payload in vec(any::<u8>(), 0..80)
    ) {
        let bytes = emitted(&payload, |bytes| header.emit(bytes));
        prop_assert_eq!(bytes.len(), header.length() + payload.len());
        let frame = EthernetFrame { header, payload: &payload };
        prop_assert_eq!(EthernetFrame::parse(&bytes), Ok(frame));
    }

    #[test]
    fn an_arp_packet_survives_emitting_and_parsing(
        packet in arp_packet(), padding in vec(any::<u8>(), 0..20)
    ) {
        let bytes = emitted(&padding, |bytes| packet.emit(bytes));
        prop_assert_eq!(ArpPacket::parse(&bytes), Ok(packet));
    }

    #[test]
    fn an_ipv4_packet_survives_emitting_and_parsing(
        header in ipv4_header(), options in ipv4_options(), words in vec(any::<[u8; 8]>(), 0..100),
        padding in vec(any::<u8>(), 0..20)
    ) {
        let payload = words.concat();
        let mut bytes =
            emitted(&payload, |bytes| header.emit_with_options(&options, payload.len(), bytes));
        bytes.extend_from_slice(&padding);
        let packet = Ipv4Packet { header, options: &options, payload: &payload };
        prop_assert_eq!(Ipv4Packet::parse(&bytes), Ok(packet));
    }

    #[test]
    fn an_inverted_bit_in_an_ipv4_header_is_detected(
        header in ipv4_header(), options in ipv4_options(), bit in any::<prop::sample::Index>()
    ) {
        let mut bytes = emitted(&[], |bytes| header.emit_with_options(&options, 0, bytes));
        // The bit is never in the first byte. This byte contains the header length, which
        // determines the bytes that are summed, so the checksum need not detect its changes.
        let bit = 8 + bit.index(bytes.len() * 8 - 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Ipv4Packet::parse(&bytes).is_err());
    }

    #[test]
    fn an_echo_survives_emitting_and_parsing(
        identifier: u16, sequence: u16, data in vec(any::<u8>(), 0..100), is_reply: bool
    ) {
        let echo = Echo { identifier, sequence, data: &data };
        let message = match is_reply {
            true => IcmpMessage::EchoReply(echo),
            false => IcmpMessage::EchoRequest(echo),
        };
        let mut bytes = vec![0xa5; message.length()];
        prop_assert_eq!(message.emit(&mut bytes), bytes.len());
        prop_assert_eq!(IcmpMessage::parse(&bytes), Ok(message));
    }

    #[test]
    fn an_icmp_error_and_its_quote_survive_emitting_and_parsing(
        error in icmp_error(), header in ipv4_header(), options in ipv4_options(),
        payload in vec(any::<u8>(), 0..700)
    ) {
        let packet =
            emitted(&payload, |bytes| header.emit_with_options(&options, payload.len(), bytes));
        let quote = Quote::of(&packet).unwrap();
        prop_assert_eq!(quote.header, header);
        prop_assert_eq!(quote.bytes(), &packet[..packet.len().min(Quote::MOST)]);
        let message = IcmpMessage::Error { error, quote };
        let mut bytes = vec![0xa5; message.length()];
        prop_assert_eq!(message.emit(&mut bytes), bytes.len());
        prop_assert_eq!(IcmpMessage::parse(&bytes), Ok(message));
    }

    #[test]
    fn a_udp_datagram_survives_emitting_and_parsing(
        source_port: u16, destination_port: u16, source in ip(), destination in ip(),
        payload in vec(any::<u8>(), 0..100), padding in vec(any::<u8>(), 0..20)
    ) {
        let header = UdpHeader { source_port, destination_port };
        let mut bytes = emitted(&payload, |bytes| header.emit(payload.len(), bytes));
        let pseudo = Ipv4Header::new(source, destination, Protocol::UDP).pseudo_header(bytes.len());
        let sum = Sum::of(&bytes);
        UdpHeader::fill_checksum(&mut bytes, pseudo, sum);
        prop_assert_ne!(&bytes[6..8], &[0, 0]);
        bytes.extend_from_slice(&padding);
        let datagram = UdpDatagram::parse(&bytes).unwrap();
        prop_assert_eq!((datagram.header, datagram.payload), (header, &payload[..]));
        prop_assert_eq!(datagram.verify_checksum(pseudo), Ok(()));
    }

    #[test]
    fn a_tcp_segment_survives_emitting_and_parsing(
        header in tcp_header(), options in tcp_options(), payload in vec(any::<u8>(), 0..100),
        source in ip(), destination in ip()
    ) {
        let mut bytes = emitted(&payload, |bytes| {
            header.emit(options.length(), bytes);
            TcpHeader::LENGTH + options.emit(&mut bytes[TcpHeader::LENGTH..])
        });
        let pseudo = Ipv4Header::new(source, destination, Protocol::TCP).pseudo_header(bytes.len());
        let sum = Sum::of(&bytes);
        TcpHeader::fill_checksum(&mut bytes, pseudo, sum);
        prop_assert_eq!(TcpHeader::verify_checksum(&bytes, pseudo), Ok(()));
        let segment = Segment::parse(&bytes).unwrap();
        let read = TcpHeader {
            source_port: segment.source_port,
            destination_port: segment.destination_port,
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags(),
            window: segment.window,
            urgent: segment.urgent,
        };
        prop_assert_eq!(read, header);
        prop_assert_eq!((segment.options(), segment.payload), (options, &payload[..]));
    }

    #[test]
    fn a_mac_address_is_parsed_as_it_is_printed(address in mac()) {
        prop_assert_eq!(address.to_string().parse(), Ok(address));
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in vec(any::<u8>(), 0..300), pseudo: u16) {
        parse_with_everything(&bytes, pseudo);
    }

    #[test]
    fn no_damaged_packet_makes_a_parser_panic(
        header in ipv4_header(), tags in tags(),
        protocol in prop::sample::select(vec![1_u8, 6, 17]),
        mut payload in vec(any::<u8>(), 0..120), lengths in any::<[u8; 4]>(), cut in 0..60_usize
    ) {
        // The packet is unfragmented, because the payload of a fragment would not be parsed. Some
        // payload bytes are replaced by numbers below 16. Where a parser takes such a byte for a
        // length, parsing gets further than with a large number.
        let header = Ipv4Header {
            protocol: Protocol::new(protocol), more_fragments: false, fragment_offset: 0, ..header
        };
        for (byte, length) in payload.iter_mut().skip(2).step_by(3).zip(lengths) {
            *byte = length % 16;
        }
        if let Some(kind) = payload.first_mut().filter(|_| protocol == 1) {
            *kind %= 16;
            payload.get_mut(2..4).into_iter().for_each(|checksum| checksum.fill(0));
            let checksum = Sum::of(&payload).finish();
            if let Some(field) = payload.get_mut(2..4) {
                field.copy_from_slice(&checksum.to_be_bytes());
            }
        }
        let packet = emitted(&payload, |bytes| header.emit(payload.len(), bytes));
        let ethernet =
            EthernetHeader { tags, ether_type: EtherType::IPV4, ..EthernetHeader::default() };
        let frame = emitted(&packet, |bytes| ethernet.emit(bytes));
        parse_with_everything(&frame[..frame.len().saturating_sub(cut)], 0);
        parse_with_everything(&frame, 0);
        parse_with_everything(&packet, 0);
        parse_with_everything(&payload, 0);
    }
}

/// Passes the bytes to every parser.
fn parse_with_everything(bytes: &[u8], pseudo: u16) {
    let pseudo = Sum::default().add_u16(pseudo);
    let _ = EthernetFrame::parse(bytes);
    let _ = ArpPacket::parse(bytes);
    let _ = Ipv4Packet::parse(bytes);
    let _ = IcmpMessage::parse(bytes).map(|message| format!("{message:?}"));
    let _ = UdpDatagram::parse(bytes).and_then(|datagram| datagram.verify_checksum(pseudo));
    let _ =
        Segment::parse(bytes).map(|segment| format!("{segment:?} {}", segment.sequence_length()));
    let _ = TcpHeader::verify_checksum(bytes, pseudo);
    let _ = TcpOptions::parse(bytes);
    for quote in [Quote::parse(bytes), Quote::of(bytes)].into_iter().flatten() {
        let _ = (quote.ports(), quote.tcp_seq(), quote.echo_request());
    }
    let _ = (FrameLine(bytes).to_string(), PacketLine(bytes).to_string());
}

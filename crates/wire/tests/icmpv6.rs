//! Property tests of ICMPv6 and Neighbour Discovery: emitted messages parse to the same values, and
//! no input panics.

use linerate_wire::{
    Icmpv6Error, Icmpv6Message, Icmpv6Problem, Icmpv6Unreachable, Ipv6Header, Ipv6Quote,
    MacAddress, NdMessage, NdOption, NdOptions, PrefixInformation, Protocol, RouterAdvertisement,
    RouterPreference,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::net::Ipv6Addr;

/// Generates any address, and often an address with a special meaning in Neighbour Discovery.
fn address() -> impl Strategy<Value = Ipv6Addr> {
    prop_oneof![
        any::<u128>().prop_map(Ipv6Addr::from_bits),
        any::<u64>().prop_map(|low| Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(low))),
        any::<u32>().prop_map(|low| {
            Ipv6Addr::from_bits(0xff02 << 112 | 0x1_ff00_0000 | u128::from(low & 0xff_ffff))
        }),
        Just(Ipv6Addr::UNSPECIFIED),
    ]
}

fn header() -> impl Strategy<Value = Ipv6Header> {
    (address(), address(), prop_oneof![4 => Just(255), 1 => any::<u8>()]).prop_map(
        |(source, destination, hop_limit)| Ipv6Header {
            hop_limit,
            ..Ipv6Header::new(source, destination, Protocol::ICMPV6)
        },
    )
}

fn mac() -> impl Strategy<Value = MacAddress> {
    any::<[u8; 6]>().prop_map(MacAddress::new)
}

prop_compose! {
    fn prefix()(
        prefix in address(),
        length in 0_u8..=128,
        is_on_link in any::<bool>(),
        is_autonomous in any::<bool>(),
        valid_lifetime in any::<u32>(),
        preferred_lifetime in any::<u32>(),
    ) -> PrefixInformation {
        PrefixInformation {
            prefix, length, is_on_link, is_autonomous, valid_lifetime, preferred_lifetime,
        }
    }
}

fn nd_option() -> impl Strategy<Value = NdOption<'static>> {
    prop_oneof![
        mac().prop_map(NdOption::SourceMac),
        mac().prop_map(NdOption::TargetMac),
        prefix().prop_map(NdOption::Prefix),
        any::<u32>().prop_map(NdOption::Mtu),
        (6_u8..=255).prop_map(|kind| NdOption::Other { kind, data: &[1, 2, 3, 4, 5, 6] }),
        (0_usize..20).prop_map(|words| NdOption::RedirectedHeader(&[9; 160][..words * 8])),
    ]
}

fn icmpv6_error() -> impl Strategy<Value = Icmpv6Error> {
    let problem = prop_oneof![
        Just(Icmpv6Problem::HeaderField),
        Just(Icmpv6Problem::NextHeader),
        Just(Icmpv6Problem::Option),
        Just(Icmpv6Problem::IncompleteHeaderChain),
    ];
    prop_oneof![
        Just(Icmpv6Error::Unreachable(Icmpv6Unreachable::Port)),
        Just(Icmpv6Error::Unreachable(Icmpv6Unreachable::RejectRoute)),
        any::<u32>().prop_map(|mtu| Icmpv6Error::PacketTooBig { mtu }),
        Just(Icmpv6Error::HopLimitExceeded),
        Just(Icmpv6Error::ReassemblyTimeExceeded),
        (problem, any::<u32>())
            .prop_map(|(problem, pointer)| Icmpv6Error::ParameterProblem { problem, pointer }),
        (5_u8..128, any::<u8>(), any::<[u8; 4]>())
            .prop_map(|(kind, code, field)| Icmpv6Error::Unknown { kind, code, field }),
    ]
}

/// Returns the bytes of the options, one after the other.
fn emit_options(options: &[NdOption<'_>]) -> Vec<u8> {
    let mut bytes = vec![0xee; options.iter().map(NdOption::length).sum()];
    let mut at = 0;
    for option in options {
        at += option.emit(&mut bytes[at..]);
    }
    bytes
}

proptest! {
    #[test]
    fn emitted_options_are_parsed_in_their_order(
        options in vec(nd_option(), 0..=NdOptions::MOST as usize),
    ) {
        let bytes = emit_options(&options);
        let parsed = NdOptions::parse(&bytes).expect("every option is valid");
        prop_assert_eq!(parsed.iter().collect::<Vec<_>>(), options);
    }

    #[test]
    fn emitted_router_advertisements_are_parsed(
        options in vec(nd_option(), 0..8),
        (hop_limit, is_managed, has_other_configuration) in any::<(u8, bool, bool)>(),
        (lifetime, reachable_time, retransmission_timer) in any::<(u16, u32, u32)>(),
        preference in prop::sample::select(vec![
            RouterPreference::Low, RouterPreference::Medium, RouterPreference::High,
        ]),
        low in any::<u64>(),
        destination in address(),
    ) {
        let options = emit_options(&options);
        let message = NdMessage::RouterAdvertisement(RouterAdvertisement {
            hop_limit, is_managed, has_other_configuration, preference, lifetime, reachable_time,
            retransmission_timer, options: NdOptions::parse(&options).unwrap(),
        });
        let source = Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(low));
        let header = Ipv6Header::new(source, destination, Protocol::ICMPV6);
        let header = Ipv6Header { hop_limit: NdMessage::HOP_LIMIT, ..header };
        assert_round_trip(&header, Icmpv6Message::NeighborDiscovery(message));
    }

    #[test]
    fn emitted_redirects_are_parsed(
        (low, target_mac) in (any::<u64>(), option::of(mac())),
        destination in any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits >> 1)),
        words in option::of(0_usize..20),
    ) {
        let target = Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(low));
        let redirected = words.map(|words| &[9; 160][..words * 8]);
        let message = NdMessage::Redirect { target, destination, target_mac, redirected };
        let header = Ipv6Header::new(target, destination, Protocol::ICMPV6);
        let header = Ipv6Header { hop_limit: NdMessage::HOP_LIMIT, ..header };
        assert_round_trip(&header, Icmpv6Message::NeighborDiscovery(message));
    }

    #[test]
    fn emitted_errors_are_parsed(
        error in icmpv6_error(),
        header in header(),
        quoted in header(),
        body in vec(any::<u8>(), 0..1_400),
    ) {
        let mut packet = vec![0; Ipv6Header::LENGTH];
        quoted.emit(body.len(), &mut packet);
        packet.extend(body);
        let quote = Ipv6Quote::of(&packet).expect("it has a whole header");
        let message = Icmpv6Message::Error { error, quote };
        prop_assert!(Ipv6Header::LENGTH + message.length() <= 1_280);
        assert_round_trip(&header, message);
    }

    /// Every message that the parser accepts can be emitted, and the emitted bytes parse to an
    /// equal message. The parser thus loses no content of a message.
    #[test]
    fn hostile_messages_do_not_panic_and_valid_ones_are_stable(
        header in header(),
        kind in prop_oneof![128_u8..140, any::<u8>()],
        code in prop_oneof![4 => Just(0_u8), 1 => any::<u8>()],
        fixed in vec(any::<u8>(), 4..44),
        options in vec((0_u8..7, 0_u8..6, vec(any::<u8>(), 6..46)), 0..6),
    ) {
        let mut body = fixed;
        for (kind, units, data) in options {
            body.extend([kind, units]);
            body.extend(data);
        }
        let mut bytes = vec![0; 4 + body.len()];
        Icmpv6Message::Other { kind, code, body: &body }.emit(&header, &mut bytes);
        if let Ok(message) = Icmpv6Message::parse(&header, &bytes) {
            assert_round_trip(&header, message);
        }
    }

    #[test]
    fn quotes_of_hostile_packets_do_not_panic(
        next in prop::sample::select(vec![0_u8, 6, 17, 43, 44, 58, 60]),
        body in vec(prop::sample::select(vec![0_u8, 1, 6, 43, 44, 60]), 0..200),
        cut in 0_usize..240,
    ) {
        let header = Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, Protocol::new(next));
        let mut packet = vec![0; Ipv6Header::LENGTH];
        header.emit(body.len(), &mut packet);
        packet.extend(body);
        packet.truncate(cut);
        if let Ok(quote) = Ipv6Quote::parse(&packet) {
            let _ = (quote.ports(), quote.tcp_seq(), quote.echo_request(), quote.is_error());
        }
    }
}

fn assert_round_trip(header: &Ipv6Header, message: Icmpv6Message<'_>) {
    let mut bytes = vec![0xee; message.length()];
    assert_eq!(message.emit(header, &mut bytes), bytes.len());
    assert_eq!(Icmpv6Message::parse(header, &bytes), Ok(message));
}

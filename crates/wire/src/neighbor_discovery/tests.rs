//! Tests of Neighbour Discovery messages and of their validity checks.

extern crate std;
use super::*;
use crate::{Icmpv6Message, Protocol, ipv6_multicast::ALL_NODES};
use std::vec;
use std::vec::Vec;

const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
const GLOBAL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);

fn header(source: Ipv6Addr, destination: Ipv6Addr) -> Ipv6Header {
    Ipv6Header { hop_limit: 255, ..Ipv6Header::new(source, destination, Protocol::ICMPV6) }
}

/// Emits `message`, parses the result, and checks that both are equal.
fn round_trip(header: &Ipv6Header, message: NdMessage<'_>) -> Result<(), Malformed> {
    let (message, mut bytes) = (Icmpv6Message::NeighborDiscovery(message), vec![0; 2_000]);
    let length = message.emit(header, &mut bytes);
    assert_eq!(length, message.length());
    assert_eq!(Icmpv6Message::parse(header, &bytes[..length])?, message);
    Ok(())
}

/// Parses the ICMPv6 message with these bytes, after writing its checksum.
fn parse(header: &Ipv6Header, message: &[u8]) -> Result<(), Malformed> {
    let (kind, code, body) = (message[0], message[1], &message[4..]);
    let mut bytes = vec![0; message.len()];
    Icmpv6Message::Other { kind, code, body }.emit(header, &mut bytes);
    Icmpv6Message::parse(header, &bytes).map(|_| ())
}

fn solicitation(source_mac: Option<MacAddress>) -> NdMessage<'static> {
    NdMessage::NeighborSolicitation { target: PEER, source_mac }
}

fn advertisement(is_solicited: bool) -> NdMessage<'static> {
    NdMessage::NeighborAdvertisement {
        is_router: true,
        is_solicited,
        is_override: true,
        target: HOST,
        target_mac: Some(MAC),
    }
}

fn redirect(target: Ipv6Addr, destination: Ipv6Addr) -> NdMessage<'static> {
    let redirected = Some(&[7; 48][..]);
    NdMessage::Redirect { target, destination, target_mac: Some(MAC), redirected }
}

#[test]
fn messages_have_the_layout_of_rfc_4861() {
    let mut bytes = [0xee; 32];
    assert_eq!(advertisement(true).emit(&mut bytes[..28]), 136);
    assert_eq!(bytes[..8], [0xe0, 0, 0, 0, 0xfe, 0x80, 0, 0]);
    assert_eq!(bytes[18..28], [0, 1, 2, 1, 2, 0, 0, 0, 0, 1]);
    assert_eq!(solicitation(None).emit(&mut bytes[..20]), 135);
    assert_eq!(bytes[..6], [0, 0, 0, 0, 0xfe, 0x80]);
    let router = RouterAdvertisement {
        hop_limit: 64,
        is_managed: true,
        has_other_configuration: false,
        preference: RouterPreference::High,
        lifetime: 0x0708,
        reachable_time: 0x0102_0304,
        retransmission_timer: 0x0506_0708,
        options: NdOptions::NONE,
    };
    assert_eq!(NdMessage::RouterAdvertisement(router).emit(&mut bytes[..12]), 134);
    assert_eq!(bytes[..12], [64, 0x88, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn valid_messages_are_parsed_as_they_were_emitted() {
    let to_peer = header(HOST, PEER);
    let probe = header(Ipv6Addr::UNSPECIFIED, ipv6_multicast::solicited_node(PEER));
    let router = RouterAdvertisement { lifetime: 1_800, ..RouterAdvertisement::default() };
    for (header, message) in [
        (to_peer, NdMessage::RouterSolicitation { source_mac: Some(MAC) }),
        (probe, NdMessage::RouterSolicitation { source_mac: None }),
        (to_peer, NdMessage::RouterAdvertisement(router)),
        (to_peer, solicitation(Some(MAC))),
        (probe, solicitation(None)),
        (to_peer, advertisement(true)),
        (header(HOST, ALL_NODES), advertisement(false)),
        (to_peer, redirect(PEER, GLOBAL)),
        (to_peer, redirect(GLOBAL, GLOBAL)),
    ] {
        assert_eq!(round_trip(&header, message), Ok(()));
    }
}

#[test]
fn a_forwarded_message_is_invalid() {
    let forwarded = Ipv6Header { hop_limit: 254, ..header(HOST, PEER) };
    for message in [
        NdMessage::RouterSolicitation { source_mac: None },
        NdMessage::RouterAdvertisement(RouterAdvertisement::default()),
        solicitation(None),
        advertisement(true),
        redirect(PEER, GLOBAL),
    ] {
        let field = Malformed::Field {
            what: "Neighbour Discovery message",
            field: "hop limit",
            value: 254,
        };
        assert_eq!(round_trip(&forwarded, message), Err(field));
    }
}

#[test]
fn messages_of_routers_come_from_link_local_addresses() {
    let router = NdMessage::RouterAdvertisement(RouterAdvertisement::default());
    assert!(round_trip(&header(GLOBAL, PEER), router).is_err());
    assert!(round_trip(&header(GLOBAL, PEER), redirect(PEER, GLOBAL)).is_err());
}

#[test]
fn a_probe_goes_to_a_solicited_node_address_without_a_mac_address() {
    let group = ipv6_multicast::solicited_node(PEER);
    let from_nowhere = |destination| header(Ipv6Addr::UNSPECIFIED, destination);
    assert!(round_trip(&from_nowhere(group), solicitation(None)).is_ok());
    assert!(round_trip(&from_nowhere(group), solicitation(Some(MAC))).is_err());
    assert!(round_trip(&from_nowhere(PEER), solicitation(None)).is_err());
    let router = NdMessage::RouterSolicitation { source_mac: Some(MAC) };
    assert!(round_trip(&from_nowhere(group), router).is_err());
}

#[test]
fn targets_are_not_multicast_and_answers_to_groups_are_not_solicited() {
    let to_peer = header(HOST, PEER);
    let target = NdMessage::NeighborSolicitation { target: ALL_NODES, source_mac: None };
    assert!(round_trip(&to_peer, target).is_err());
    assert!(round_trip(&header(HOST, ALL_NODES), advertisement(true)).is_err());
    assert!(round_trip(&to_peer, redirect(PEER, ALL_NODES)).is_err());
    assert!(
        round_trip(&to_peer, redirect(GLOBAL, HOST)).is_err(),
        "the target is neither a router nor the destination"
    );
}

#[test]
fn messages_cut_short_or_with_a_code_are_invalid() {
    let to_peer = header(HOST, PEER);
    for (kind, least) in [(133, 8), (134, 16), (135, 24), (136, 24), (137, 40)] {
        let mut message: Vec<u8> = vec![0; least];
        message[0] = kind;
        if kind == 137 {
            message[8..10].copy_from_slice(&[0xfe, 0x80]);
        }
        assert_eq!(parse(&to_peer, &message), Ok(()), "{kind}");
        message[1] = 1;
        assert!(parse(&to_peer, &message).is_err(), "{kind}");
        message[1] = 0;
        message[4..8].fill(0xff);
        assert_eq!(parse(&to_peer, &message), Ok(()), "reserved bits are ignored in {kind}");
        message.extend([253, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(parse(&to_peer, &message), Ok(()), "unknown options are ignored in {kind}");
        message[least + 1] = 0;
        assert!(parse(&to_peer, &message).is_err(), "an option of length zero in {kind}");
        if least > 8 {
            assert!(parse(&to_peer, &message[..least - 1]).is_err(), "{kind}");
        }
    }
}

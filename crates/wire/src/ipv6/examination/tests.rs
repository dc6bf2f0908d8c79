extern crate std;
use super::*;
use crate::Ipv6Header;
use core::net::Ipv6Addr;
use proptest::prelude::*;
use std::{vec, vec::Vec};

/// Returns a packet with the Next Header field `next`, and `body` after the fixed header.
fn packet(next: u8, body: &[u8]) -> Vec<u8> {
    let header = Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, Protocol::new(next));
    let mut bytes = vec![0; Ipv6Header::LENGTH];
    header.emit(body.len(), &mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

fn refusal(next: u8, body: &[u8]) -> Ipv6Refusal {
    Ipv6Packet::examine(&packet(next, body)).unwrap_err()
}

const fn reported(problem: Icmpv6Problem, pointer: u32) -> Ipv6Refusal {
    Ipv6Refusal::Report { problem, pointer, is_for_groups: false }
}

#[test]
fn headers_of_any_order_are_passed() {
    let headers = [[0, 60, 5, 2, 0, 0, 1, 0], [0, 43, 1, 4, 0, 0, 0, 0], [0, 60, 4, 0, 0, 0, 0, 0]];
    let mut body: Vec<u8> = headers
        .iter()
        .flat_map(|header| [header[1], header[0]].into_iter().chain(header[2..].iter().copied()))
        .collect();
    body.extend([17, 0, 1, 4, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]);
    let bytes = packet(0, &body);
    let Ok(Ipv6Content::Whole(whole)) = Ipv6Packet::examine(&bytes) else { panic!() };
    assert_eq!((whole.protocol, whole.payload, whole.fragment), (Protocol::UDP, &[9; 8][..], None));
    assert_eq!(whole.extensions.len(), 32);
}

#[test]
fn the_type_of_an_unknown_option_selects_the_action() {
    let options = |kind: u8| refusal(60, &[59, 0, 1, 0, kind, 2, 0, 0]);
    assert!(Ipv6Packet::examine(&packet(60, &[59, 0, 1, 0, 0x1e, 2, 0, 0])).is_ok());
    assert_eq!(options(0x5e), Ipv6Refusal::Silent);
    let problem = Icmpv6Problem::Option;
    assert_eq!(options(0x9e), Ipv6Refusal::Report { problem, pointer: 44, is_for_groups: true });
    assert_eq!(options(0xde), reported(problem, 44));
}

#[test]
fn options_beyond_their_header_are_malformed_and_many_are_discarded() {
    assert!(matches!(refusal(60, &[59, 0, 1, 0, 30, 3, 0, 0]), Ipv6Refusal::Malformed(_)));
    assert!(matches!(refusal(60, &[59, 0, 1, 3, 0, 0, 0, 30]), Ipv6Refusal::Malformed(_)));
    let mut body = vec![59, 2];
    body.extend([30, 0].repeat(9));
    body.extend([1, 2, 0, 0]);
    assert_eq!(refusal(60, &body), Ipv6Refusal::Silent);
    body[18..20].copy_from_slice(&[1, 0]);
    assert!(Ipv6Packet::examine(&packet(60, &body)).is_ok(), "padding is not counted");
}

#[test]
fn routing_headers_with_segments_left_are_refused() {
    for kind in [0, 2, 3, 4, 253] {
        let routing = |left| [59, 0, kind, left, 0, 0, 0, 0];
        assert_eq!(refusal(43, &routing(1)), reported(Icmpv6Problem::HeaderField, 42));
        assert!(Ipv6Packet::examine(&packet(43, &routing(0))).is_ok());
    }
}

#[test]
fn hop_by_hop_options_come_first() {
    let body = [0, 0, 1, 4, 0, 0, 0, 0, 59, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(refusal(60, &body), reported(Icmpv6Problem::NextHeader, 40));
}

#[test]
fn atomic_fragments_are_whole_packets() {
    let bytes = packet(44, &[17, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3]);
    let Ok(Ipv6Content::Whole(whole)) = Ipv6Packet::examine(&bytes) else { panic!() };
    assert_eq!((whole.protocol, whole.payload), (Protocol::UDP, &[1, 2, 3][..]));
    assert!(whole.fragment.is_some());
}

#[test]
fn fragments_leave_their_headers_to_the_reassembled_packet() {
    // The options after the fragment header contain an unknown option, whose type requires an error
    // message. They belong to the fragmented part, so they are not examined before reassembly.
    let body = [43, 0, 1, 4, 0, 0, 0, 0, 44, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 1, 0, 0, 0, 7];
    let options = [17, 0, 0xde, 4, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let bytes = packet(60, &[&body[..], &options].concat());
    let Ok(Ipv6Content::Fragment(piece)) = Ipv6Packet::examine(&bytes) else { panic!() };
    assert_eq!((piece.at, piece.named_at, piece.next.number()), (56, 48, 60));
    assert_eq!(piece.payload, options);
    let fragment = Ipv6Fragment { offset: 0, more: true, identification: 7 };
    assert_eq!(piece.fragment, fragment);
}

#[test]
fn first_fragments_contain_the_header_of_the_payload() {
    let incomplete = reported(Icmpv6Problem::IncompleteHeaderChain, 0);
    let first =
        |next: u8, payload: &[u8]| packet(44, &[&[next, 0, 0, 1, 0, 0, 0, 7], payload].concat());
    let examine = |next: u8, payload: &[u8]| Ipv6Packet::examine(&first(next, payload)).map(|_| ());
    assert_eq!(examine(6, &[0; 16]), Err(incomplete));
    let mut tcp = [0; 32];
    tcp[12] = 8 << 4;
    assert_eq!(examine(6, &tcp), Ok(()));
    tcp[12] = 9 << 4;
    assert_eq!(examine(6, &tcp), Err(incomplete));
    assert_eq!(examine(17, &[0; 8]), Ok(()));
    assert_eq!(examine(60, &[17, 1, 1, 4, 0, 0, 0, 0]), Err(incomplete));
    assert_eq!(examine(60, &[17, 0, 1, 4, 0, 0, 0, 0]), Err(incomplete));
}

#[test]
fn wrong_lengths_of_fragments_are_reported_at_their_fields() {
    let problem = Icmpv6Problem::HeaderField;
    let odd = [17, 0, 0, 9, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    assert_eq!(refusal(44, &odd), reported(problem, 4));
    let beyond = [17, 0, 0xff, 0xf8, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(refusal(44, &beyond), reported(problem, 42));
    assert_eq!(refusal(44, &[17, 0, 0, 8, 0, 0, 0, 7]), Ipv6Refusal::Silent);
    // Here, eight bytes of options precede the fragment header, and make the reassembled packet too
    // long. Without them it would have at most 65,535 bytes, as the last assertion shows.
    let before = [44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0xff, 0xf0, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(refusal(60, &before), reported(problem, 50));
    assert!(Ipv6Packet::examine(&packet(44, &before[8..])).is_ok());
}

#[test]
fn two_fragment_headers_are_malformed() {
    let body = [44, 0, 0, 0, 0, 0, 0, 7, 17, 0, 0, 1, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
    assert!(matches!(refusal(44, &body), Ipv6Refusal::Malformed(_)));
}

proptest! {
    #[test]
    fn hostile_headers_do_not_panic_and_agree_with_the_parser(
        next in prop::sample::select(vec![0_u8, 43, 44, 60, 6]),
        body in prop::collection::vec(
            prop::sample::select(vec![0_u8, 1, 2, 6, 17, 43, 44, 60, 0x9e, 0xff]),
            0..200,
        ),
    ) {
        let bytes = packet(next, &body);
        let parsed = Ipv6Packet::parse(&bytes);
        match Ipv6Packet::examine(&bytes) {
            Ok(Ipv6Content::Whole(whole)) => prop_assert_eq!(parsed, Ok(whole)),
            Ok(Ipv6Content::Fragment(piece)) => {
                prop_assert_eq!(parsed.map(|packet| packet.fragment), Ok(Some(piece.fragment)));
                prop_assert_eq!(piece.at + 8 + piece.payload.len(), bytes.len());
            }
            Err(Ipv6Refusal::Report { pointer, .. }) => {
                prop_assert!((pointer as usize) < bytes.len());
            }
            Err(_) => {}
        }
    }
}

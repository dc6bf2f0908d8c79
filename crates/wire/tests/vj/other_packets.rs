//! Packets that are sent with uncompressed headers or unchanged, and packets that a decompressor
//! refuses (RFC 1144 §3.2.3 and §3.2.4).

use super::{COMPRESSED, Fields, Line, UNCOMPRESSED};
use linerate_wire::{Sum, VJ_SLOTS, VjDecompressor, VjError};

/// Returns `packet` with the byte at offset `at` of the IP header replaced, and a correct checksum.
fn with_byte(mut packet: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    packet[at] = value;
    packet[10..12].fill(0);
    let sum = Sum::of(&packet[..20]).finish();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn typed(seq: u32) -> Vec<u8> {
    Fields::typed(seq, 1, b'a').packet()
}

#[test]
fn a_changed_field_that_is_not_encoded_is_sent_with_whole_headers() {
    // Changes of the type of service, of DF, and of the TTL cannot be encoded as differences.
    for (at, value) in [(1, 0x10), (6, 0), (8, 3)] {
        let mut line = Line::default();
        line.carry(&typed(1));
        let changed = with_byte(typed(2), at, value);
        assert_eq!(line.carry(&changed)[0] & 0xf0, UNCOMPRESSED, "byte {at}");
        let next = with_byte(typed(3), at, value);
        assert_ne!(line.carry(&next)[0] & COMPRESSED, 0, "byte {at}");
    }
}

#[test]
fn fragments_are_sent_unchanged() {
    let mut line = Line::default();
    for (at, value) in [(6, 0x20), (7, 1)] {
        let fragment = with_byte(typed(1), at, value);
        assert_eq!(line.carry(&fragment), fragment);
    }
}

#[test]
fn a_packet_of_ipv6_is_sent_unchanged() {
    let mut line = Line::default();
    let mut packet = vec![6; 80];
    packet[0] = 0x60;
    line.carry(&typed(1));
    assert_eq!(line.carry(&packet), packet);
    assert_ne!(line.carry(&typed(2))[0] & COMPRESSED, 0, "the line's state is the same");
}

#[test]
fn slots_beyond_the_last_are_refused_and_toss_what_names_no_connection() {
    let mut out = [0; 200];
    for slot in [u8::try_from(VJ_SLOTS).unwrap(), 255] {
        let mut line = Line::default();
        line.carry(&typed(1));
        let whole = [&[0x75][..], &typed(5)[1..9], &[slot], &typed(5)[10..]].concat();
        let refused = line.decompressor.expand(&whole, &mut out);
        assert_eq!(refused, Err(VjError::EmptySlot(slot)));
        let next = line.compress(&typed(2));
        let tossed = line.decompressor.expand(&next, &mut out);
        assert_eq!(tossed, Err(VjError::UnknownConnection));
        let named = [0xcf, slot, 1, 2];
        assert_eq!(line.decompressor.expand(&named, &mut out), Err(VjError::EmptySlot(slot)));
    }
}

#[test]
fn a_packet_that_names_its_connection_ends_the_tossing() {
    let mut line = Line::default();
    let segment = |connection, seq| Fields { connection, ..Fields::typed(seq, 1, b'a') }.packet();
    line.carry(&segment(1, 1));
    line.carry(&segment(2, 1));
    line.decompressor.note_error();
    let mut out = [0; 200];
    let lost = line.compress(&segment(2, 2));
    assert_eq!(line.decompressor.expand(&lost, &mut out), Err(VjError::UnknownConnection));
    line.carry(&segment(1, 2));
    line.carry(&segment(1, 3));
}

#[test]
fn unknown_types_and_damaged_headers_toss_what_names_no_connection() {
    let mut out = [0; 200];
    let mut damaged = typed(1);
    (damaged[0], damaged[9], damaged[15]) = (0x75, 0, 99);
    for bad in [&[0x05; 60][..], &[0x55; 60], &[], &damaged] {
        let mut line = Line::default();
        line.carry(&typed(1));
        assert_eq!(line.decompressor.expand(bad, &mut out), Err(VjError::Malformed));
        let next = line.compress(&typed(2));
        let tossed = line.decompressor.expand(&next, &mut out);
        assert_eq!(tossed, Err(VjError::UnknownConnection));
    }
}

#[test]
fn nothing_is_expanded_before_whole_headers_have_arrived() {
    let mut out = [0; 200];
    let mut decompressor = VjDecompressor::new();
    let unnamed = decompressor.expand(&[0x8f, 1, 2], &mut out);
    assert_eq!(unnamed, Err(VjError::UnknownConnection));
}

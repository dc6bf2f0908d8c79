//! Tests of header compression (RFC 1144): packets arrive unchanged, and take as few bytes on the
//! line as the RFC says.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod bad_line;
mod change_mask;
mod other_packets;

use linerate_wire::{
    Ipv4Header, Protocol, SeqNum, Sum, TcpFlags, TcpHeader, VJ_SLOTS, VjCompressor, VjDecompressor,
    VjError,
};
use proptest::prelude::*;
use std::net::Ipv4Addr;

/// The packet types in the first byte: uncompressed headers, and headers encoded as differences.
const UNCOMPRESSED: u8 = 0x70;
const COMPRESSED: u8 = 0x80;

/// The header fields of a segment that can change from packet to packet.
#[derive(Clone, Debug)]
struct Fields {
    connection: u8,
    seq: u32,
    ack: u32,
    flags: u16,
    window: u16,
    urgent: u16,
    identification: u16,
    data: Vec<u8>,
}

impl Fields {
    fn typed(seq: u32, ack: u32, character: u8) -> Self {
        let flags = (TcpFlags::ACK | TcpFlags::PSH).bits();
        let (window, urgent, identification) = (4_096, 0, 1);
        Self {
            connection: 1,
            seq,
            ack,
            flags,
            window,
            urgent,
            identification,
            data: vec![character],
        }
    }

    fn packet(&self) -> Vec<u8> {
        let mut ip = Ipv4Header::new(
            Ipv4Addr::new(192, 0, 2, self.connection),
            Ipv4Addr::new(198, 51, 100, 7),
            Protocol::TCP,
        );
        ip.identification = self.identification;
        let length = TcpHeader::LENGTH + self.data.len();
        let mut packet = vec![0; Ipv4Header::LENGTH + length];
        ip.emit(length, &mut packet);
        let segment = &mut packet[Ipv4Header::LENGTH..];
        let header = TcpHeader {
            source_port: 1_023,
            destination_port: 513,
            seq: SeqNum::new(self.seq),
            ack: SeqNum::new(self.ack),
            flags: TcpFlags::from_bits(self.flags).unwrap(),
            window: self.window,
            urgent: self.urgent,
        };
        header.emit(0, segment);
        segment[TcpHeader::LENGTH..].copy_from_slice(&self.data);
        let sum = Sum::of(segment);
        TcpHeader::fill_checksum(segment, ip.pseudo_header(length), sum);
        packet
    }
}

/// A serial line in one direction: compressor and decompressor.
#[derive(Default)]
struct Line {
    compressor: VjCompressor,
    decompressor: VjDecompressor,
}

impl Line {
    /// Sends a packet over the line, checks that it arrives unchanged, and returns its bytes on the
    /// line.
    fn carry(&mut self, packet: &[u8]) -> Vec<u8> {
        let line = self.compress(packet);
        let mut out = [0; 200];
        let length = self.decompressor.expand(&line, &mut out).unwrap();
        assert_eq!(&out[..length], packet);
        line
    }

    fn compress(&mut self, packet: &[u8]) -> Vec<u8> {
        self.compressor.compress(&mut packet.to_vec()).to_vec()
    }
}

#[test]
fn typed_characters_and_their_echo_take_three_bytes_of_header() {
    let mut line = Line::default();
    let (mut seq, mut ack) = (70_000, 500);
    let first = Fields::typed(seq, ack, b'a').packet();
    assert_eq!(line.carry(&first).len(), first.len());
    for (count, character) in (2..).zip(*b"bcdef") {
        (seq, ack) = (seq + 1, ack + 1);
        let packet =
            Fields { identification: count, ..Fields::typed(seq, ack, character) }.packet();
        let checksum = [packet[36], packet[37]];
        assert_eq!(line.carry(&packet), [0x9b, checksum[0], checksum[1], character]);
    }
}

#[test]
fn data_in_one_direction_takes_three_bytes_of_header_and_its_ack_four() {
    let (mut there, mut back) = (Line::default(), Line::default());
    for count in 0..5_u16 {
        let sent = u32::from(count) * 100;
        let data = Fields {
            seq: sent,
            flags: TcpFlags::ACK.bits(),
            identification: count,
            data: vec![7; 100],
            ..Fields::typed(0, 9, 0)
        };
        let line = there.carry(&data.packet());
        let answer = Fields { seq: 9, ack: sent, data: Vec::new(), ..data };
        let ack_line = back.carry(&answer.packet());
        if count > 0 {
            assert_eq!((line[0], line.len()), (0x8f, 103));
            assert_eq!((ack_line[0], ack_line.len(), ack_line[3]), (0x84, 4, 100));
        }
    }
}

#[test]
fn opening_and_closing_segments_and_other_protocols_are_sent_unchanged() {
    let mut line = Line::default();
    for flags in
        [TcpFlags::SYN, TcpFlags::FIN | TcpFlags::ACK, TcpFlags::RST | TcpFlags::ACK, TcpFlags::PSH]
    {
        let packet = Fields { flags: flags.bits(), ..Fields::typed(1, 1, 0) }.packet();
        assert_eq!(line.carry(&packet), packet);
    }
    let mut datagram = Fields::typed(1, 1, 0).packet();
    datagram[9] = Protocol::UDP.number();
    assert_eq!(line.carry(&datagram), datagram);
}

#[test]
fn a_retransmission_has_whole_headers() {
    let mut line = Line::default();
    let packet = Fields::typed(1_000, 1, b'a').packet();
    line.carry(&packet);
    assert_eq!(line.carry(&packet)[0] & 0xf0, UNCOMPRESSED);
    assert_eq!(line.carry(&Fields::typed(999, 1, b'a').packet())[0] & 0xf0, UNCOMPRESSED);
}

#[test]
fn the_least_recently_used_connection_loses_its_slot() {
    let mut line = Line::default();
    let carry_first_byte = |line: &mut Line, connection, seq| {
        line.carry(&Fields { connection, ..Fields::typed(seq, 1, b'a') }.packet())[0]
    };
    let slots = u8::try_from(VJ_SLOTS).unwrap();
    (0..slots).for_each(|connection| {
        assert_eq!(carry_first_byte(&mut line, connection, 1) & 0xf0, UNCOMPRESSED);
    });
    assert_ne!(carry_first_byte(&mut line, 0, 2) & COMPRESSED, 0);
    assert_eq!(carry_first_byte(&mut line, slots, 1) & 0xf0, UNCOMPRESSED);
    assert_ne!(carry_first_byte(&mut line, 0, 3) & COMPRESSED, 0);
    assert_eq!(carry_first_byte(&mut line, 1, 2) & 0xf0, UNCOMPRESSED);
}

#[test]
fn after_an_error_packets_that_name_no_connection_are_rejected() {
    let mut line = Line::default();
    line.carry(&Fields::typed(1, 1, b'a').packet());
    line.decompressor.note_error();
    let mut out = [0; 200];
    let lost = line.compress(&Fields::typed(2, 1, b'b').packet());
    assert_eq!(line.decompressor.expand(&lost, &mut out), Err(VjError::UnknownConnection));
    // The receiver does not acknowledge the lost packet, so the sender retransmits it. A
    // retransmission has uncompressed headers, after which the decompressor accepts compressed
    // headers again.
    line.carry(&Fields::typed(2, 1, b'b').packet());
    assert_ne!(line.carry(&Fields::typed(3, 1, b'c').packet())[0] & COMPRESSED, 0);
}

#[test]
fn malformed_packets_are_refused() {
    let mut out = [0; 200];
    let mut decompressor = VjDecompressor::new();
    assert_eq!(decompressor.expand(&[0xcb, 3, 1, 2], &mut out), Err(VjError::EmptySlot(3)));
    assert_eq!(decompressor.expand(&[0xcb, 200, 1, 2], &mut out), Err(VjError::EmptySlot(200)));
    assert_eq!(decompressor.expand(&[0xc0], &mut out), Err(VjError::Malformed));
    assert_eq!(decompressor.expand(&[0x75; 12], &mut out), Err(VjError::Malformed));
    let packet = Fields::typed(1, 1, b'a').packet();
    let no_room = Err(VjError::NoRoom { needed: packet.len() });
    assert_eq!(decompressor.expand(&packet, &mut [0; 40]), no_room);
}

fn fields() -> impl Strategy<Value = (u8, u32, u32, u16, u16, u16, u16, usize)> {
    let small = || prop_oneof![Just(0_u32), 0..300_u32, 0..200_000_u32];
    let flags = prop_oneof![
        4 => Just(0x10),
        4 => Just(0x18),
        1 => Just(0x38),
        1 => Just(0x30),
        1 => 0..0x200_u16,
    ];
    let step = prop_oneof![Just(0_u16), 0..4_u16, any::<u16>()];
    (
        0..3_u8,
        small(),
        small(),
        flags,
        prop_oneof![Just(0_u16), any::<u16>()],
        0..2_u16,
        step,
        0..5_usize,
    )
}

proptest! {
    #[test]
    fn every_packet_arrives_unchanged(packets in prop::collection::vec(fields(), 1..60)) {
        let mut line = Line::default();
        let mut states = [(1_u32, u32::MAX - 50, 0_u16, 0_u16); 3];
        for (connection, seq, ack, flags, window, urgent, step, length) in packets {
            let state = &mut states[usize::from(connection)];
            *state = (
                state.0.wrapping_add(seq),
                state.1.wrapping_add(ack),
                state.2.wrapping_add(window),
                state.3.wrapping_add(step),
            );
            let (seq, ack, window, identification) = *state;
            let data = vec![7; length];
            let fields =
                Fields { connection, seq, ack, flags, window, urgent, identification, data };
            line.carry(&fields.packet());
        }
    }

    #[test]
    fn line_noise_does_not_panic(lines: Vec<Vec<u8>>, sent in 0..9_u32) {
        let mut line = Line::default();
        (0..sent).for_each(|seq| drop(line.carry(&Fields::typed(seq, 1, 7).packet())));
        let mut out = [0; 150];
        for noise in lines {
            let _ = line.decompressor.expand(&noise, &mut out);
        }
    }
}

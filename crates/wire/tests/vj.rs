//! Headers on a serial line (RFC 1144): what goes in comes out, in as few bytes as the RFC says.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_wire::{
    Ipv4Header, Protocol, SeqNum, Sum, TcpFlags, TcpHeader, VJ_SLOTS, VjCompressor, VjDecompressor,
    VjTrouble,
};
use proptest::prelude::*;
use std::net::Ipv4Addr;

/// The bits of a first byte: a packet whose header is kept, and one that says only what is new.
const UNCOMPRESSED: u8 = 0x70;
const COMPRESSED: u8 = 0x80;

/// One segment of a connection: what may differ from packet to packet.
#[derive(Clone, Debug)]
struct Spoken {
    connection: u8,
    seq: u32,
    ack: u32,
    flags: u16,
    window: u16,
    urgent: u16,
    identification: u16,
    data: Vec<u8>,
}

impl Spoken {
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

/// Both ends of a line.
#[derive(Default)]
struct Line {
    compressor: VjCompressor,
    decompressor: VjDecompressor,
}

impl Line {
    /// What goes over the line for a packet, which comes out as it went in.
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
fn a_typed_character_and_its_echo_take_three_bytes_of_header() {
    let mut line = Line::default();
    let (mut seq, mut ack) = (70_000, 500);
    let first = Spoken::typed(seq, ack, b'a').packet();
    assert_eq!(line.carry(&first).len(), first.len());
    for (count, character) in (2..).zip(*b"bcdef") {
        (seq, ack) = (seq + 1, ack + 1);
        let packet =
            Spoken { identification: count, ..Spoken::typed(seq, ack, character) }.packet();
        let checksum = [packet[36], packet[37]];
        assert_eq!(line.carry(&packet), [0x9b, checksum[0], checksum[1], character]);
    }
}

#[test]
fn a_transfer_in_one_direction_and_its_acknowledgements_take_three_and_four() {
    let (mut there, mut back) = (Line::default(), Line::default());
    for count in 0..5_u16 {
        let sent = u32::from(count) * 100;
        let data = Spoken {
            seq: sent,
            flags: TcpFlags::ACK.bits(),
            identification: count,
            data: vec![7; 100],
            ..Spoken::typed(0, 9, 0)
        };
        let line = there.carry(&data.packet());
        let answer = Spoken { seq: 9, ack: sent, data: Vec::new(), ..data };
        let told = back.carry(&answer.packet());
        if count > 0 {
            assert_eq!((line[0], line.len()), (0x8f, 103));
            assert_eq!((told[0], told.len(), told[3]), (0x84, 4, 100));
        }
    }
}

#[test]
fn what_opens_and_ends_a_connection_and_what_is_no_tcp_goes_as_it_is() {
    let mut line = Line::default();
    for flags in
        [TcpFlags::SYN, TcpFlags::FIN | TcpFlags::ACK, TcpFlags::RST | TcpFlags::ACK, TcpFlags::PSH]
    {
        let packet = Spoken { flags: flags.bits(), ..Spoken::typed(1, 1, 0) }.packet();
        assert_eq!(line.carry(&packet), packet);
    }
    let mut datagram = Spoken::typed(1, 1, 0).packet();
    datagram[9] = Protocol::UDP.number();
    assert_eq!(line.carry(&datagram), datagram);
}

#[test]
fn a_segment_that_is_sent_again_goes_whole() {
    let mut line = Line::default();
    let packet = Spoken::typed(1_000, 1, b'a').packet();
    line.carry(&packet);
    assert_eq!(line.carry(&packet)[0] & 0xf0, UNCOMPRESSED);
    assert_eq!(line.carry(&Spoken::typed(999, 1, b'a').packet())[0] & 0xf0, UNCOMPRESSED);
}

#[test]
fn the_connection_that_was_silent_for_longest_makes_room_for_another() {
    let mut line = Line::default();
    let speak = |line: &mut Line, connection, seq| {
        line.carry(&Spoken { connection, ..Spoken::typed(seq, 1, b'a') }.packet())[0]
    };
    let slots = u8::try_from(VJ_SLOTS).unwrap();
    (0..slots)
        .for_each(|connection| assert_eq!(speak(&mut line, connection, 1) & 0xf0, UNCOMPRESSED));
    assert_ne!(speak(&mut line, 0, 2) & COMPRESSED, 0);
    assert_eq!(speak(&mut line, slots, 1) & 0xf0, UNCOMPRESSED);
    assert_ne!(speak(&mut line, 0, 3) & COMPRESSED, 0);
    assert_eq!(speak(&mut line, 1, 2) & 0xf0, UNCOMPRESSED);
}

#[test]
fn after_an_error_only_what_names_its_connection_is_taken() {
    let mut line = Line::default();
    line.carry(&Spoken::typed(1, 1, b'a').packet());
    line.decompressor.note_error();
    let mut out = [0; 200];
    let lost = line.compress(&Spoken::typed(2, 1, b'b').packet());
    assert_eq!(line.decompressor.expand(&lost, &mut out), Err(VjTrouble::UnknownConnection));
    // The peer has not heard it, and what is sent again is sent whole.
    line.carry(&Spoken::typed(2, 1, b'b').packet());
    assert_ne!(line.carry(&Spoken::typed(3, 1, b'c').packet())[0] & COMPRESSED, 0);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut out = [0; 200];
    let mut decompressor = VjDecompressor::new();
    assert_eq!(decompressor.expand(&[0xcb, 3, 1, 2], &mut out), Err(VjTrouble::EmptySlot(3)));
    assert_eq!(decompressor.expand(&[0xcb, 200, 1, 2], &mut out), Err(VjTrouble::EmptySlot(200)));
    assert_eq!(decompressor.expand(&[0xc0], &mut out), Err(VjTrouble::Malformed));
    assert_eq!(decompressor.expand(&[0x75; 12], &mut out), Err(VjTrouble::Malformed));
    let packet = Spoken::typed(1, 1, b'a').packet();
    let no_room = Err(VjTrouble::NoRoom { needed: packet.len() });
    assert_eq!(decompressor.expand(&packet, &mut [0; 40]), no_room);
}

fn spoken() -> impl Strategy<Value = (u8, u32, u32, u16, u16, u16, u16, usize)> {
    let small = || prop_oneof![Just(0_u32), 0..300_u32, 0..200_000_u32];
    let flags = prop_oneof![4 => Just(0x10), 4 => Just(0x18), 1 => Just(0x38), 1 => Just(0x30), 1 => 0..0x200_u16];
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
    fn whatever_is_spoken_comes_out_as_it_went_in(story in prop::collection::vec(spoken(), 1..60)) {
        let mut line = Line::default();
        let mut states = [(1_u32, u32::MAX - 50, 0_u16, 0_u16); 3];
        for (connection, seq, ack, flags, window, urgent, step, length) in story {
            let state = &mut states[usize::from(connection)];
            *state = (
                state.0.wrapping_add(seq),
                state.1.wrapping_add(ack),
                state.2.wrapping_add(window),
                state.3.wrapping_add(step),
            );
            let (seq, ack, window, identification) = *state;
            let data = vec![7; length];
            let said = Spoken { connection, seq, ack, flags, window, urgent, identification, data };
            line.carry(&said.packet());
        }
    }

    #[test]
    fn no_line_noise_breaks_anything(lines: Vec<Vec<u8>>, spoken in 0..9_u32) {
        let mut line = Line::default();
        (0..spoken).for_each(|seq| drop(line.carry(&Spoken::typed(seq, 1, 7).packet())));
        let mut out = [0; 150];
        for noise in lines {
            let _ = line.decompressor.expand(&noise, &mut out);
        }
    }
}

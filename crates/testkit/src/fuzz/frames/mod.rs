//! Fuzz target: frames to a host from a neighbour that often follows the protocols. The host has
//! listeners, connections and UDP sockets, and an application that makes any call at any time.

mod application;
mod neighbor;

use super::choices::Choices;
use super::finish_turns;
use crate::pair::Side;
use crate::test_link::TestLink;
use linerate_stack::{
    Capabilities, Host, ListenHandle, ListenOptions, Medium, PartialChecksum, RxChecksum, Stack,
    TcpHandle, UdpHandle,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{
    ArpPacket, EtherType, EthernetFrame, IcmpMessage, Ipv4Packet, Protocol, Segment, SeqNum,
    TcpHeader, UdpDatagram,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU16;

const MTU: usize = 1_500;
const HOST: Side = Side::Right;
const PEER: Side = Side::Left;
/// Maximum number of sockets of each kind that the application has open at one time.
const MOST_SOCKETS: usize = 4;

/// Runs the test case that `bytes` encode.
///
/// # Panics
/// If an invariant is violated, or the host sends a malformed frame.
pub fn frames_into_a_host(bytes: &[u8]) {
    let mut case = TestCase::begin(Choices::new(bytes));
    while !case.choices.is_empty() {
        case.step();
    }
}

/// The state of a connection, as seen in the most recent segment that the host has sent on it.
/// `port` is the host's port, and `end` is the sequence number that follows the segment. `ack` is
/// the segment's acknowledgement number.
#[derive(Clone, Copy, Debug)]
struct Flow {
    port: u16,
    peer: SocketAddrV4,
    end: SeqNum,
    ack: SeqNum,
}

struct TestCase<'a> {
    choices: Choices<'a>,
    now: Instant,
    host: Host<TestLink>,
    listeners: Vec<ListenHandle>,
    connections: Vec<TcpHandle>,
    datagrams: Vec<UdpHandle>,
    flows: Vec<Flow>,
    /// Payload of the fragments that the host has sent so far of the current datagram.
    fragments: Vec<u8>,
    /// Metadata that the link will report for the next frame.
    metadata: Metadata,
}

/// The metadata that the link reports for a received frame. It need not be true for the frame, and
/// the host must tolerate false metadata.
#[derive(Clone, Copy, Debug)]
struct Metadata {
    checksum: RxChecksum,
    segment: Option<NonZeroU16>,
}

impl Metadata {
    const NOTHING: Self = Self { checksum: RxChecksum::Unverified, segment: None };
}

impl<'a> TestCase<'a> {
    fn begin(mut choices: Choices<'a>) -> Self {
        let mut config = HOST.config();
        config.limits.sockets = 12;
        config.limits.time_wait = 2;
        config.limits.orphans = 2;
        config.limits.neighbors.entries = 4;
        config.limits.neighbors.unresolved = 2;
        config.limits.path_mtus = 2;
        config.answer_broadcast_echo = choices.yes();
        config.tcp.send_buffer = choices.of(&[1_000, 20_000]).into();
        config.tcp.receive_buffer = choices.of(&[1_000, 20_000]).into();
        let capabilities = Capabilities::new(Medium::Ethernet, MTU);
        let link = TestLink::new(capabilities, choices.of(&[256, 1]));
        let mut host = Host::new(Stack::new(config, [7; 32]), link);
        let options = ListenOptions { backlog: 2, syn_backlog: 3, ..ListenOptions::default() };
        let listener =
            host.stack_mut().tcp_listen(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9), &options);
        let now = Instant::ZERO + Duration::from_secs(1_000);
        let mut case = Self {
            choices,
            now,
            host,
            listeners: listener.into_iter().collect(),
            connections: Vec::new(),
            datagrams: Vec::new(),
            flows: Vec::new(),
            fragments: Vec::new(),
            metadata: Metadata::NOTHING,
        };
        case.bind();
        if case.choices.byte() < 200 {
            case.introduce();
        }
        case.connect();
        case.turn();
        case
    }

    fn step(&mut self) {
        let choice = self.choices.byte();
        if choice >= 0xd0 {
            self.metadata = self.choose_metadata();
        }
        match choice & 15 {
            0..=3 => self.tcp(),
            4 => self.open(),
            5 => self.arp(),
            6 => self.datagram(),
            7 => self.icmp(),
            8 => self.garbage(),
            9 => self.nearly_ip(),
            10 | 11 => self.use_connection(),
            12 => self.use_others(),
            13 => self.pass_time(),
            14 => self.next_timer(),
            _ => self.connect(),
        }
        self.turn();
    }

    /// Runs a turn of the host, and checks every frame that it sends.
    fn turn(&mut self) {
        for frame in finish_turns(&mut self.host, self.now) {
            self.check_frame(&frame);
        }
    }

    /// Checks that a frame sent by the host has correct checksums and consistent lengths.
    fn check_frame(&mut self, frame: &[u8]) {
        let ethernet = EthernetFrame::parse(frame).expect("Ethernet");
        assert_eq!(ethernet.header.source, HOST.mac());
        if ethernet.header.ether_type != EtherType::IPV4 {
            ArpPacket::parse(ethernet.payload).expect("ARP, if it is not IPv4");
            return;
        }
        let packet = Ipv4Packet::parse(ethernet.payload).expect("IPv4");
        assert!(ethernet.payload.len() <= MTU, "longer than the link's MTU");
        let header = packet.header;
        assert_eq!(usize::from(header.fragment_offset), self.fragments.len(), "one after another");
        let mut payload = packet.payload;
        let whole;
        if header.is_fragment() {
            assert!(!header.dont_fragment && header.protocol != Protocol::TCP);
            self.fragments.extend_from_slice(payload);
            if header.more_fragments {
                return;
            }
            whole = core::mem::take(&mut self.fragments);
            payload = &whole;
        }
        let pseudo = header.pseudo_header(payload.len());
        match header.protocol {
            Protocol::TCP => {
                TcpHeader::verify_checksum(payload, pseudo).expect("a right checksum");
            }
            Protocol::UDP => {
                let datagram = UdpDatagram::parse(payload).expect("UDP");
                datagram.verify_checksum(pseudo).expect("a right checksum");
                return;
            }
            protocol => {
                assert_eq!(protocol, Protocol::ICMP);
                IcmpMessage::parse(payload).expect("ICMP, with a right checksum");
                return;
            }
        }
        let segment = Segment::parse(payload).expect("TCP");
        let peer = SocketAddrV4::new(header.destination, segment.destination_port);
        let flow = Flow {
            port: segment.source_port,
            peer,
            end: segment.seq + segment.sequence_length(),
            ack: segment.ack,
        };
        self.flows.retain(|known| (known.port, known.peer) != (flow.port, flow.peer));
        self.flows.insert(0, flow);
        self.flows.truncate(8);
    }

    /// Chooses the metadata that the link will report for the next frame.
    fn choose_metadata(&mut self) -> Metadata {
        let place = PartialChecksum { start: self.choices.half(), offset: self.choices.half() };
        let checksum = self.choices.of(&[
            RxChecksum::Partial(place),
            RxChecksum::Verified,
            RxChecksum::Unverified,
        ]);
        let size = self.choices.of(&[1_400, 100, 1, u16::MAX, 0]);
        Metadata { checksum, segment: NonZeroU16::new(size) }
    }

    fn pass_time(&mut self) {
        let until = self.now + self.choices.span();
        for _ in 0..64 {
            let next = self.host.stack().poll_timeout();
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            self.turn();
        }
        self.now = self.now.max(until);
    }

    fn next_timer(&mut self) {
        let next = self.host.stack().poll_timeout();
        if next != Instant::NEVER {
            self.now = self.now.max(next);
        }
    }
}

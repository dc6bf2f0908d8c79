//! Tests of bursts: consecutive segments whose headers are derived from one template. The tests use
//! links with and without offloads, and some of them interrupt a burst.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "helpers of tests unwrap as tests do"
)]

use linerate_stack::{
    Budget, Capabilities, ConnectOptions, ListenOptions, Medium, Offloads, Route, RxFrame, Stack,
    TcpHandle, TxChecksum, TxFrame, ZeroCopyFrame,
};
use linerate_tcp::Config;
use linerate_testkit::{Side, TestLink};
use linerate_units::{Duration, Instant};
use linerate_wire::{
    EtherType, EthernetFrame, IcmpError, IcmpMessage, Ipv4Header, Ipv4Packet, Protocol, Quote,
    Segment, SeqNum, Sum, TcpFlags, TcpHeader, TypeOfService, checksum,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU8;

const MEDIUM: usize = 14;
const TCP: usize = MEDIUM + Ipv4Header::LENGTH;
const MSS: u32 = 1_448;

/// Two hosts with a connection between them: the client `here` and the server `there`. The test
/// carries the frames between them itself.
struct Hosts {
    now: Instant,
    here: Stack,
    there: Stack,
    client: TcpHandle,
    server: TcpHandle,
}

impl Hosts {
    /// Creates two hosts with a connection. `offloads` are the offloads of the client's link.
    fn new(offloads: Offloads) -> Self {
        Self::with(offloads, false, 1 << 20)
    }

    /// Creates two hosts with a connection. `offloads` are those of the client's link,
    /// `send_buffer` is the size of the send buffers in bytes, and `count_packets` is the value of
    /// this setting of both hosts.
    fn with(offloads: Offloads, count_packets: bool, send_buffer: usize) -> Self {
        let rules = Config {
            send_buffer: send_buffer.into(),
            receive_buffer: (1 << 20).into(),
            ..Config::modern()
        };
        Self::by(&rules, offloads, count_packets)
    }

    /// Creates two hosts with the TCP configuration `rules`, and a connection between them.
    fn by(rules: &Config, offloads: Offloads, count_packets: bool) -> Self {
        let host = |side: Side| {
            let mut config = side.config();
            config.count_packets = count_packets;
            config.tcp = *rules;
            Stack::new(config, [side as u8; 32])
        };
        let (mut here, mut there) = (host(Side::Left), host(Side::Right));
        here.attach(Capabilities { offloads, ..Capabilities::new(Medium::Ethernet, 1_500) });
        there.attach(Capabilities::new(Medium::Ethernet, 1_500));
        let now = Instant::ZERO + Duration::from_secs(1);
        let address = SocketAddrV4::new(Side::Right.address(), 9);
        let listener = there.tcp_listen(address, &ListenOptions::default()).unwrap();
        let client = here.tcp_connect(now, address, &ConnectOptions::default()).unwrap();
        carry(now, &mut here, &mut there, |_| true);
        let (server, _) = there.tcp_accept(listener).unwrap();
        Self { now, here, there, client, server }
    }

    fn write(&mut self, bytes: usize) {
        let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        assert_eq!(self.here.tcp_write(self.now, self.client, &data), Ok(bytes));
    }

    /// Returns the frames that the client can send now. Stops once there are at least `room`
    /// frames.
    fn send(&mut self, room: usize) -> Vec<Vec<u8>> {
        frames(self.now, &mut self.here, room)
    }

    /// Sends data and delivers all frames several times, so that the congestion and receive windows
    /// allow bursts.
    fn warm_up(&mut self) {
        self.write(100 * MSS as usize);
        for _ in 0..8 {
            carry(self.now, &mut self.here, &mut self.there, |_| true);
            self.now += Duration::from_millis(1);
            self.read();
        }
        assert_eq!(self.here.tcp(self.client).unwrap().unacknowledged_bytes(), 0);
    }

    fn read(&mut self) -> Vec<u8> {
        let mut data = Vec::new();
        let mut part = [0; 65_536];
        while let Ok(count @ 1..) = self.there.tcp_read(self.now, self.server, &mut part) {
            data.extend_from_slice(&part[..count]);
        }
        data
    }

    /// Delivers the given frames of the client to the server, whose application reads the data.
    /// Then delivers the acknowledgements of the server to the client.
    fn deliver(&mut self, frames_of_client: &[Vec<u8>]) {
        for frame in frames_of_client {
            self.there.handle_frame(self.now, RxFrame::plain(frame, self.now));
        }
        self.read();
        for frame in frames(self.now, &mut self.there, usize::MAX) {
            self.here.handle_frame(self.now, RxFrame::plain(&frame, self.now));
        }
    }

    /// Carries all frames that the client can send to the server, and the server's acknowledgements
    /// back. Each direction takes the time `latency`.
    fn exchange(&mut self, latency: Duration) {
        let sent = self.send(usize::MAX);
        self.now += latency;
        for frame in &sent {
            self.there.handle_frame(self.now, RxFrame::plain(frame, self.now));
        }
        self.read();
        let back = frames(self.now, &mut self.there, usize::MAX);
        self.now += latency;
        for frame in &back {
            self.here.handle_frame(self.now, RxFrame::plain(frame, self.now));
        }
    }

    /// Sends the first three frames of a burst, and then calls `happens`. Returns the hosts, and
    /// the frames that the client sends after the call.
    fn interrupted(happens: impl Fn(&mut Self)) -> (Self, Vec<Vec<u8>>) {
        let mut hosts = Self::new(Offloads::NONE);
        hosts.warm_up();
        hosts.write(9 * MSS as usize);
        let first = hosts.send(3);
        let header = segment(&first[2]).options().length() + TcpHeader::LENGTH;
        let mut client = hosts.here.tcp(hosts.client).unwrap().into_owned();
        assert!(client.driver().poll_batch(hosts.now, header).is_some());
        happens(&mut hosts);
        hosts.here.check();
        let next = hosts.send(usize::MAX);
        for frame in first.iter().chain(&next) {
            hosts.there.handle_frame(hosts.now, RxFrame::plain(frame, hosts.now));
        }
        assert_eq!(hosts.there.counters().tcp.in_errors, 0, "a checksum is wrong");
        (hosts, next)
    }
}

fn segment(frame: &[u8]) -> Segment<'_> {
    Segment::parse(Ipv4Packet::parse(&frame[MEDIUM..]).unwrap().payload).unwrap()
}

/// Returns the frames that a host sends now, as they would appear on the wire: segmented and with
/// complete checksums. Every second frame is fetched by scatter-gather.
fn frames(now: Instant, stack: &mut Stack, room: usize) -> Vec<Vec<u8>> {
    let mut frame = vec![0xa5; stack.capabilities().room()];
    let mut sent = Vec::new();
    while sent.len() < room {
        let next = if sent.len() % 2 == 0 {
            stack.poll_transmit(now, &mut frame)
        } else {
            assemble_zero_copy(now, stack, &mut frame)
        };
        let Some(next) = next else { break };
        stack.check();
        sent.extend(segment_frame(&frame[..next.length], next));
    }
    sent
}

/// Assembles a frame that the host provides in parts (scatter-gather). Only with checksum offload
/// may the host lend its data instead of copying it, and then it must not copy large data. Returns
/// `None` if the host has nothing to send.
fn assemble_zero_copy(now: Instant, stack: &mut Stack, frame: &mut [u8]) -> Option<TxFrame> {
    let offloads = stack.capabilities().offloads;
    frame.fill(0x5a);
    let ZeroCopyFrame { frame: mut next, rest } = stack.poll_transmit_zero_copy(now, frame)?;
    let headers = next.length;
    for part in rest {
        frame[next.length..next.length + part.len()].copy_from_slice(part);
        next.length += part.len();
    }
    let is_zero_copy = next.length > headers;
    assert!(!is_zero_copy || headers <= TCP + TcpHeader::MAX_LENGTH && offloads.checksums);
    assert!(
        is_zero_copy || next.length < TCP + 2_048 || !offloads.checksums,
        "{} bytes were copied",
        next.length
    );
    Some(next)
}

/// Segments a GSO frame. Each segment gets its own sequence number, lengths and checksums. Only the
/// final segment keeps the flags PSH and FIN.
fn segment_frame(frame: &[u8], sent: TxFrame) -> Vec<Vec<u8>> {
    let TxChecksum::Partial(partial) = sent.checksum else { return vec![frame.to_vec()] };
    assert_eq!(
        (usize::from(partial.start), usize::from(partial.offset)),
        (TCP, TcpHeader::CHECKSUM_OFFSET)
    );
    let whole = segment(frame);
    let headers = frame.len() - whole.payload.len();
    let size = sent.segment.map_or_else(|| whole.payload.len().max(1), |size| size.get().into());
    let count = whole.payload.len().div_ceil(size).max(1);
    let source: [u8; 4] = frame[MEDIUM + 12..MEDIUM + 16].try_into().unwrap();
    let destination: [u8; 4] = frame[MEDIUM + 16..MEDIUM + 20].try_into().unwrap();
    let pseudo = |length| {
        checksum::pseudo_header_v4(source.into(), destination.into(), Protocol::TCP, length)
    };
    let field = u16::from_be_bytes(frame[TCP + 16..TCP + 18].try_into().unwrap());
    assert_eq!(
        field,
        !pseudo(frame.len() - TCP).finish(),
        "the checksum field holds the sum of the pseudo-header"
    );
    (0..count)
        .map(|index| {
            let at = index * size;
            let payload = &whole.payload[at..whole.payload.len().min(at + size)];
            let mut piece = [&frame[..headers], payload].concat();
            let total = (piece.len() - MEDIUM) as u16;
            piece[MEDIUM + 2..MEDIUM + 4].copy_from_slice(&total.to_be_bytes());
            let number = u16::from_be_bytes([frame[MEDIUM + 4], frame[MEDIUM + 5]]);
            let number = if number > 0 { number + index as u16 } else { 0 };
            piece[MEDIUM + 4..MEDIUM + 6].copy_from_slice(&number.to_be_bytes());
            piece[MEDIUM + 10..MEDIUM + 12].fill(0);
            let sum = Sum::of(&piece[MEDIUM..TCP]).finish();
            piece[MEDIUM + 10..MEDIUM + 12].copy_from_slice(&sum.to_be_bytes());
            piece[TCP + 4..TCP + 8]
                .copy_from_slice(&(whole.seq + at as u32).number().to_be_bytes());
            if index + 1 < count {
                piece[TCP + 13] &= (!(TcpFlags::PSH | TcpFlags::FIN)).bits().to_be_bytes()[1];
            }
            piece[TCP + 16..TCP + 18].fill(0);
            let sum = (pseudo(piece.len() - TCP) + Sum::of(&piece[TCP..])).finish();
            piece[TCP + 16..TCP + 18].copy_from_slice(&sum.to_be_bytes());
            piece
        })
        .collect()
}

/// Carries frames in both directions until both hosts are idle. Frames of the first host for which
/// `passes` returns false are lost. Returns all frames of the first host.
fn carry(
    now: Instant,
    here: &mut Stack,
    there: &mut Stack,
    mut passes: impl FnMut(&[u8]) -> bool,
) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    loop {
        let out = frames(now, here, usize::MAX);
        for frame in out.iter().filter(|frame| passes(frame)) {
            there.handle_frame(now, RxFrame::plain(frame, now));
        }
        let back = frames(now, there, usize::MAX);
        for frame in &back {
            here.handle_frame(now, RxFrame::plain(frame, now));
        }
        here.check();
        there.check();
        if out.is_empty() && back.is_empty() {
            return seen;
        }
        seen.extend(out);
    }
}

/// The frames on the wire, and the times at which they are sent, must not depend on offloads. The
/// test compares a sender without offloads, one with checksum offload, and one with segmentation
/// offload, with and without loss.
#[test]
fn offloads_put_the_same_frames_on_the_wire() {
    let plain = Offloads::NONE;
    let sums = Offloads { checksums: true, gso_max_size: 0 };
    let small = Offloads { checksums: true, gso_max_size: 9_000 };
    let large = Offloads { checksums: true, gso_max_size: 65_535 };
    for lost_of_a_hundred in [0, 1, 7] {
        let transfer = |offloads| {
            let mut hosts = Hosts::new(offloads);
            let (mut wire, mut received, mut random) = (Vec::new(), 0, 7_u32);
            for round in 0..4_000 {
                if round < 10 {
                    hosts.write(40_000);
                }
                let Hosts { now, here, there, .. } = &mut hosts;
                wire.extend(carry(*now, here, there, |frame| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    segment(frame).payload.is_empty()
                        || random >> 16 >= 65_536 / 100 * lost_of_a_hundred
                }));
                received += hosts.read().len();
                if received == 400_000 {
                    break;
                }
                hosts.now += Duration::from_millis(5);
                hosts.here.handle_timeout(hosts.now, 9);
                hosts.there.handle_timeout(hosts.now, 9);
            }
            assert_eq!(received, 400_000, "{offloads:?}, {lost_of_a_hundred} % lost");
            let counters = hosts.here.counters();
            (wire, counters.tcp.out_segments, counters.transmit.packets)
        };
        let (expected, segments, packets) = transfer(plain);
        for offloads in [sums, small, large] {
            let (wire, counted, handed_over) = transfer(offloads);
            assert!(wire == expected, "{offloads:?}, {lost_of_a_hundred} % lost");
            assert_eq!(counted, segments, "each segment of a GSO frame is counted");
            let is_fewer =
                if offloads == sums { handed_over == packets } else { handed_over < packets };
            assert!(is_fewer, "{handed_over} frames, {packets} otherwise: {offloads:?}");
        }
    }
}

#[test]
fn identification_counts_each_segment_or_is_zero() {
    let numbers = |offloads, counts: bool| -> Vec<u16> {
        let mut hosts = Hosts::with(offloads, counts, 1 << 20);
        hosts.write(20 * MSS as usize);
        let Hosts { now, here, there, .. } = &mut hosts;
        let sent = carry(*now, here, there, |_| true);
        assert_eq!(there.counters().ip.in_header_errors, 0, "a checksum is wrong");
        sent.iter()
            .map(|frame| Ipv4Packet::parse(&frame[MEDIUM..]).unwrap().header.identification)
            .collect()
    };
    let large = Offloads { checksums: true, gso_max_size: 65_535 };
    let counted = numbers(Offloads::NONE, true);
    let first = counted[0];
    assert!(counted.len() >= 20 && first > 0, "the handshake used the first numbers");
    assert!(
        counted.iter().zip(first..).all(|(&number, expected)| number == expected),
        "{counted:?}"
    );
    assert_eq!(counted, numbers(large, true));
    assert!(numbers(Offloads::NONE, false).iter().all(|&number| number == 0));
}

#[test]
fn only_the_last_segment_of_a_burst_has_psh() {
    let mut hosts = Hosts::new(Offloads::NONE);
    hosts.warm_up();
    hosts.write(9 * MSS as usize + 10);
    let sent = hosts.send(usize::MAX);
    let first = segment(&sent[0]).seq;
    for (index, frame) in sent.iter().enumerate() {
        let segment = segment(frame);
        assert_eq!(segment.seq, first + index as u32 * MSS);
        assert_eq!(segment.flags().contains(TcpFlags::PSH), index == 9, "segment {index}");
    }
    assert_eq!(sent.len(), 10);
}

#[test]
fn a_burst_continues_when_the_link_has_room() {
    let (mut hosts, next) = Hosts::interrupted(|_| ());
    assert_eq!(next.len(), 6);
    assert_eq!(hosts.read().len(), 9 * MSS as usize);
}

/// The timestamp option of each segment holds the time at which this segment is sent. It must not
/// hold the time at which the burst began.
#[test]
fn a_continued_burst_has_current_timestamps() {
    let (mut hosts, next) = Hosts::interrupted(|hosts| hosts.now += Duration::from_millis(7));
    let stamps = |frame: &Vec<u8>| segment(frame).options().timestamps.unwrap().value;
    let (first, fourth) = (stamps(&next[0]), stamps(&next[5]));
    assert_eq!(first, fourth);
    let early = Hosts::interrupted(|_| ()).1;
    assert_eq!(stamps(&early[0]) + 7, first);
    assert_eq!(hosts.read().len(), 9 * MSS as usize);
}

/// If the client receives data in the middle of a burst, the next segment of the burst acknowledges
/// this data.
#[test]
fn a_burst_acknowledges_data_received_in_between() {
    let before = Hosts::interrupted(|_| ()).1;
    let (_, next) = Hosts::interrupted(|hosts| {
        hosts.there.tcp_write(hosts.now, hosts.server, &[7; 10]).unwrap();
        for frame in frames(hosts.now, &mut hosts.there, 9) {
            hosts.here.handle_frame(hosts.now, RxFrame::plain(&frame, hosts.now));
        }
    });
    assert_eq!(segment(&next[0]).ack, segment(&before[0]).ack + 10);
    assert_eq!(segment(&next[0]).seq, segment(&before[0]).seq);
    assert_eq!(next.len(), 6);
}

#[test]
fn a_burst_continues_after_acknowledgements_of_its_first_part() {
    let mut hosts = Hosts::new(Offloads::NONE);
    hosts.warm_up();
    hosts.write(9 * MSS as usize);
    let mut expected = None;
    for _ in 0..4 {
        for frame in hosts.send(2) {
            assert_eq!(segment(&frame).seq, expected.unwrap_or_else(|| segment(&frame).seq));
            expected = Some(segment(&frame).seq + MSS);
            hosts.there.handle_frame(hosts.now, RxFrame::plain(&frame, hosts.now));
        }
        for frame in frames(hosts.now, &mut hosts.there, 9) {
            hosts.here.handle_frame(hosts.now, RxFrame::plain(&frame, hosts.now));
        }
    }
    assert_eq!(hosts.here.counters().tcp.retransmitted_segments, 0);
}

#[test]
fn a_reset_ends_a_burst() {
    let (_, next) =
        Hosts::interrupted(|hosts| hosts.here.tcp_abort(hosts.now, hosts.client).unwrap());
    assert_eq!(next.len(), 1);
    assert!(segment(&next[0]).flags().contains(TcpFlags::RST));
}

#[test]
fn a_close_within_a_burst_sets_fin_on_the_last_segment() {
    let (_, next) =
        Hosts::interrupted(|hosts| hosts.here.tcp_shutdown_write(hosts.now, hosts.client).unwrap());
    let fins: Vec<bool> =
        next.iter().map(|frame| segment(frame).flags().contains(TcpFlags::FIN)).collect();
    assert_eq!(fins, [false, false, false, false, false, true]);
}

#[test]
fn new_header_options_apply_within_a_burst() {
    let (_, next) = Hosts::interrupted(|hosts| {
        hosts.here.tcp_set_ttl(hosts.client, NonZeroU8::new(9).unwrap()).unwrap();
        hosts.here.tcp_set_type_of_service(hosts.client, TypeOfService::from_byte(0xb8)).unwrap();
    });
    assert_eq!(next.len(), 6);
    for frame in next {
        let header = Ipv4Packet::parse(&frame[MEDIUM..]).unwrap().header;
        assert_eq!((header.ttl, header.type_of_service.byte() & !3), (9, 0xb8));
    }
}

/// After a route change, segments must not be sent to the MAC address of the previous next hop.
#[test]
fn a_route_change_applies_within_a_burst() {
    let gateway = Ipv4Addr::new(192, 0, 2, 77);
    let mut hosts = Hosts::new(Offloads { checksums: true, gso_max_size: 65_535 });
    hosts.warm_up();
    hosts.here.add_route(Route::via("192.0.2.2/32".parse().unwrap(), gateway));
    hosts.write(9 * MSS as usize);
    let next = hosts.send(usize::MAX);
    assert_eq!(next.len(), 1, "an ARP request for the gateway");
    assert_eq!(EthernetFrame::parse(&next[0]).unwrap().header.ether_type, EtherType::ARP);
    let (hosts, next) = Hosts::interrupted(|hosts| {
        hosts.here.remove_route("192.0.2.0/24".parse().unwrap()).unwrap();
    });
    assert!(next.is_empty());
    assert_eq!(hosts.here.counters().ip.out_no_routes, 6);
}

/// A router reports a smaller MTU in the middle of a burst. The remaining segments of the burst
/// must be smaller.
#[test]
fn a_smaller_path_mtu_applies_within_a_burst() {
    let mut hosts = Hosts::new(Offloads::NONE);
    hosts.write(9 * MSS as usize);
    let first = hosts.send(3);
    let error = IcmpError::FragmentationNeeded { next_hop_mtu: 1_000 };
    let report = IcmpMessage::Error { error, quote: Quote::of(&first[0][MEDIUM..]).unwrap() };
    // The ICMP error is delivered to the client (`hosts.here`). Its link header is that of a frame
    // from the client, with the client's MAC address as the destination. The source MAC address
    // does not matter, because the host does not check it.
    let mut frame = first[0].clone();
    frame[..6].copy_from_slice(&first[0][6..12]);
    let length = report.emit(&mut frame[TCP..]);
    let header = Ipv4Header::new(Side::Right.address(), Side::Left.address(), Protocol::ICMP);
    header.emit(length, &mut frame[MEDIUM..]);
    hosts.here.handle_frame(hosts.now, RxFrame::plain(&frame[..TCP + length], hosts.now));
    let next = hosts.send(usize::MAX);
    assert!(
        !next.is_empty() && next.iter().all(|frame| frame.len() <= 1_000 + MEDIUM),
        "{}",
        next.len()
    );
}

const LARGE: Offloads = Offloads { checksums: true, gso_max_size: 65_535 };

/// Opens a connection with segmentation offload and windows larger than the send buffer. The
/// application then writes more than the send buffer accepts, so a part of the data is refused. The
/// round-trip time is twice `latency`. Returns the hosts, and the frames that were sent.
fn refused(latency: Duration) -> (Hosts, Vec<Vec<u8>>) {
    let mut hosts = Hosts::with(LARGE, false, 256 << 10);
    for _ in 0..24 {
        hosts.here.tcp_write(hosts.now, hosts.client, &[7; 1 << 20]).unwrap();
        hosts.exchange(latency);
    }
    while hosts.here.tcp(hosts.client).unwrap().unacknowledged_bytes() > 0 {
        hosts.exchange(latency);
    }
    assert_eq!(hosts.here.tcp_write(hosts.now, hosts.client, &[7; 1 << 20]), Ok(256 << 10));
    let sent = hosts.send(usize::MAX);
    (hosts, sent)
}

/// A GSO frame holds up to 45 segments, and a smaller GSO frame costs the sender nearly as much CPU
/// time. Here, one segment and 56 bytes remain after four full GSO frames. The host keeps this
/// remainder back, since the application, whose data was refused, will write again after the next
/// acknowledgement.
#[test]
fn a_partial_gso_frame_waits_for_a_refused_writer() {
    let (mut hosts, sent) = refused(Duration::from_micros(50));
    assert_eq!(sent.len(), 4 * 45);
    let (first, second) = sent.split_at(90);
    hosts.deliver(first);
    assert!(hosts.send(usize::MAX).is_empty(), "the rest waits for the writer");
    assert_eq!(hosts.here.tcp_write(hosts.now, hosts.client, &[7; 1 << 20]), Ok(90 * MSS as usize));
    let grown = hosts.send(usize::MAX);
    assert_eq!(grown.len(), 90);
    hosts.deliver(second);
    hosts.deliver(&grown);
    assert_eq!(hosts.send(usize::MAX).len(), 2, "the rest leaves when nothing is in flight");
}

#[test]
fn a_partial_gso_frame_leaves_at_once_otherwise() {
    let (mut hosts, sent) = refused(Duration::from_micros(50));
    hosts.deliver(&sent);
    hosts.exchange(Duration::ZERO);
    hosts.write(49 * MSS as usize);
    assert_eq!(hosts.send(usize::MAX).len(), 49);
    assert_eq!(refused(Duration::from_millis(2)).1.len(), 4 * 45 + 2);
}

/// Two connections with data to send take turns, in which each of them sends four frames. A burst
/// of one connection must therefore end after four frames.
#[test]
fn a_burst_ends_with_the_turn_of_its_sender() {
    let mut hosts = Hosts::new(Offloads::NONE);
    hosts.warm_up();
    let address = SocketAddrV4::new(Side::Right.address(), 10);
    let listener = hosts.there.tcp_listen(address, &ListenOptions::default()).unwrap();
    let other = hosts.here.tcp_connect(hosts.now, address, &ConnectOptions::default()).unwrap();
    let Hosts { now, here, there, .. } = &mut hosts;
    carry(*now, here, there, |_| true);
    there.tcp_accept(listener).unwrap();
    hosts.write(9 * MSS as usize);
    hosts.here.tcp_write(hosts.now, other, &[1; 9 * MSS as usize]).unwrap();
    let sent = hosts.send(usize::MAX);
    let ports: Vec<u16> = sent.iter().map(|frame| segment(frame).destination_port).collect();
    assert_eq!(ports, [9, 9, 9, 9, 10, 10, 10, 10, 9, 9, 9, 9, 10, 10, 10, 10, 9, 10]);
    let number = |port| move |frame: &&Vec<u8>| segment(frame).destination_port == port;
    for port in [9, 10] {
        let numbers: Vec<SeqNum> =
            sent.iter().filter(number(port)).map(|frame| segment(frame).seq).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + MSS), "in order");
    }
}

/// Creates two hosts, of which the server acknowledges at least every second segment. The server
/// has received `segments` segments, but the test has not fetched its acknowledgements yet.
fn before_ack_batch(segments: usize, count_packets: bool) -> Hosts {
    let rules = Config {
        stretch_acks: false,
        send_buffer: (1 << 20).into(),
        receive_buffer: (1 << 20).into(),
        ..Config::modern()
    };
    let mut hosts = Hosts::by(&rules, Offloads::NONE, count_packets);
    hosts.warm_up();
    hosts.receive_segments(segments);
    hosts
}

impl Hosts {
    /// Sends this number of full segments from the client to the server. Does not fetch the
    /// acknowledgements of the server.
    fn receive_segments(&mut self, segments: usize) {
        self.write(segments * MSS as usize);
        for frame in self.send(usize::MAX) {
            self.there.handle_frame(self.now, RxFrame::plain(&frame, self.now));
        }
    }

    /// Returns the frames that the server sends in one turn, over a link that accepts up to `room`
    /// frames.
    fn answer_at_once(&mut self, room: usize) -> Vec<Vec<u8>> {
        let mut link = TestLink::new(self.there.capabilities(), room);
        self.there.turn(&mut link, Budget::default(), self.now).unwrap();
        self.there.check();
        std::iter::from_fn(|| link.fetch()).collect()
    }
}

/// A link that accepts several frames at a time gets all frames of a burst in one loop. They must
/// equal the frames that a link gets if it requests them one by one. This must also hold if the
/// link becomes full within the burst.
#[test]
fn a_burst_in_a_loop_equals_single_frames() {
    for medium in [Medium::Ethernet, Medium::Ip] {
        for (room, rest) in [(1, 64), (2, 3), (7, 64), (64, 1)] {
            let [mut asked, mut filled] = [(); 2].map(|()| {
                let mut hosts = Hosts::new(Offloads::NONE);
                hosts.warm_up();
                hosts.here.attach(Capabilities::new(medium, 1_500));
                hosts.write(19 * MSS as usize + 100);
                hosts
            });
            for room in [room, rest, 64] {
                let one_by_one: Vec<Vec<u8>> = asked.send(room);
                let mut link = TestLink::new(filled.here.capabilities(), room);
                filled.here.turn(&mut link, Budget::default(), filled.now).unwrap();
                filled.here.check();
                let in_a_loop: Vec<Vec<u8>> = std::iter::from_fn(|| link.fetch()).collect();
                assert!(one_by_one == in_a_loop, "room for {room} behind {medium:?}");
                assert_eq!(asked.here.counters(), filled.here.counters());
            }
            let [one, other] = [&asked, &filled]
                .map(|hosts| hosts.here.tcp(hosts.client).unwrap().statistics().clone());
            assert_eq!(one, other);
        }
    }
}

/// The host decides once about all acknowledgements of an ACK batch. They must equal the
/// acknowledgements that a link gets if it requests them one by one. This must also hold if the
/// link becomes full within the batch, and whatever segments arrive afterwards.
#[test]
fn an_ack_batch_equals_single_acknowledgements() {
    for (segments, room, more) in (1..14).flat_map(|segments| {
        [(segments, 1, 0), (segments, 3, 4), (segments, 2, 1), (segments, 64, 0)]
    }) {
        let [mut asked, mut filled] = [(); 2].map(|()| before_ack_batch(segments, false));
        let mut one_by_one = frames(asked.now, &mut asked.there, room);
        let mut in_a_batch = filled.answer_at_once(room);
        for hosts in [&mut asked, &mut filled] {
            hosts.now += Duration::from_millis(1);
            if more > 0 {
                hosts.receive_segments(more);
            }
        }
        one_by_one.extend(frames(asked.now, &mut asked.there, usize::MAX));
        in_a_batch.extend(filled.answer_at_once(64));
        assert!(one_by_one == in_a_batch, "{segments} segments, room for {room}, then {more}");
        assert_eq!(asked.there.counters(), filled.there.counters());
        let [one, other] = [&asked, &filled]
            .map(|hosts| hosts.there.tcp(hosts.server).unwrap().statistics().clone());
        assert_eq!(one, other);
    }
}

#[test]
fn an_ack_batch_covers_two_segments_each_with_one_window_edge() {
    let mut hosts = before_ack_batch(9, false);
    let answers = hosts.answer_at_once(64);
    let acknowledged = |frame: &Vec<u8>| (segment(frame).ack, segment(frame).window);
    let acknowledgements: Vec<(SeqNum, u16)> = answers.iter().map(acknowledged).collect();
    assert_eq!(acknowledgements.len(), 5);
    let scale = hosts.there.tcp(hosts.server).unwrap().information().receive_shift;
    let edge = |(ack, window): (SeqNum, u16)| ack + (u32::from(window) << scale);
    for (number, pair) in acknowledgements.windows(2).enumerate() {
        assert_eq!(pair[1].0 - pair[0].0, if number < 3 { 2 * MSS } else { MSS });
        // The right edge of the window must be equal in successive acknowledgements, except for
        // rounding. The window field counts units of 2^`scale` bytes, so the edges may differ by up
        // to one unit.
        assert!(edge(pair[1]) + (1 << scale) - edge(pair[0]) < 2 << scale, "{acknowledgements:?}");
    }
}

/// With `count_packets`, each packet has a different IPv4 identification. All packets of an ACK
/// batch would have the same identification, so the host does not use a batch.
#[test]
fn acknowledgements_are_counted_in_the_identification() {
    let mut hosts = before_ack_batch(8, true);
    let answers = hosts.answer_at_once(64);
    let numbers = answers
        .iter()
        .map(|frame| Ipv4Packet::parse(&frame[MEDIUM..]).unwrap().header.identification);
    let numbers: Vec<u16> = numbers.collect();
    assert_eq!(numbers.len(), 4);
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
}

/// Two connections with frames to send take turns, in which each of them sends four frames. An ACK
/// batch of one connection must therefore end after four frames.
#[test]
fn an_ack_batch_ends_with_the_turn_of_its_sender() {
    let mut hosts = before_ack_batch(0, false);
    let address = SocketAddrV4::new(Side::Right.address(), 10);
    let listener = hosts.there.tcp_listen(address, &ListenOptions::default()).unwrap();
    let other = hosts.here.tcp_connect(hosts.now, address, &ConnectOptions::default()).unwrap();
    let Hosts { now, here, there, .. } = &mut hosts;
    carry(*now, here, there, |_| true);
    let (accepted, _) = there.tcp_accept(listener).unwrap();
    hosts.there.tcp_write(hosts.now, accepted, &[1; 6 * MSS as usize]).unwrap();
    hosts.receive_segments(12);
    assert!(hosts.here.tcp(other).is_some());
    let ports =
        hosts.answer_at_once(64).iter().map(|frame| segment(frame).source_port).collect::<Vec<_>>();
    assert_eq!(ports, [10, 10, 10, 10, 9, 9, 9, 9, 10, 10, 9, 9]);
}

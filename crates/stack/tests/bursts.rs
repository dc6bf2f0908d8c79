//! Bursts: segments that leave one after the other, whoever cuts them, and what may happen between two.

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

/// Two hosts and what lies between them, in the hands of the test.
struct Hands {
    now: Instant,
    here: Stack,
    there: Stack,
    client: TcpHandle,
    server: TcpHandle,
}

impl Hands {
    /// An open connection over a link that does so much for the client's host.
    fn new(offloads: Offloads) -> Self {
        Self::with(offloads, false, 1 << 20)
    }

    /// The same with such a send buffer; or the hosts count their packets.
    fn with(offloads: Offloads, count_packets: bool, send_buffer: usize) -> Self {
        let rules = Config {
            send_buffer: send_buffer.into(),
            receive_buffer: (1 << 20).into(),
            ..Config::modern()
        };
        Self::by(&rules, offloads, count_packets)
    }

    /// The same between two TCPs with these rules.
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

    /// As many frames as the client's link has room for.
    fn send(&mut self, room: usize) -> Vec<Vec<u8>> {
        frames(self.now, &mut self.here, room)
    }

    /// Sends so that much is in flight, and all of it arrives: from now on the window lets bursts go.
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

    /// These frames of the client's arrive, are read, and are acknowledged.
    fn deliver(&mut self, frames_of_client: &[Vec<u8>]) {
        for frame in frames_of_client {
            self.there.handle_frame(self.now, RxFrame::plain(frame, self.now));
        }
        self.read();
        for frame in frames(self.now, &mut self.there, usize::MAX) {
            self.here.handle_frame(self.now, RxFrame::plain(&frame, self.now));
        }
    }

    /// All that the client has to send, and its acknowledgement, take so long each.
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

    /// The client's host has sent three frames of a burst when this `happens`; then all that follows.
    fn interrupted(happens: impl Fn(&mut Self)) -> (Self, Vec<Vec<u8>>) {
        let mut hands = Self::new(Offloads::NONE);
        hands.warm_up();
        hands.write(9 * MSS as usize);
        let first = hands.send(3);
        assert!(hands.here.tcp(hands.client).unwrap().is_in_burst());
        happens(&mut hands);
        hands.here.check();
        let next = hands.send(usize::MAX);
        for frame in first.iter().chain(&next) {
            hands.there.handle_frame(hands.now, RxFrame::plain(frame, hands.now));
        }
        assert_eq!(hands.there.counters().tcp.in_errors, 0, "a checksum is wrong");
        (hands, next)
    }
}

fn segment(frame: &[u8]) -> Segment<'_> {
    Segment::parse(Ipv4Packet::parse(&frame[MEDIUM..]).unwrap().payload).unwrap()
}

/// What a host has to send, cut and summed as its link does it, which gathers every other frame.
fn frames(now: Instant, stack: &mut Stack, room: usize) -> Vec<Vec<u8>> {
    let mut frame = vec![0xa5; stack.capabilities().room()];
    let mut sent = Vec::new();
    while sent.len() < room {
        let next = if sent.len() % 2 == 0 {
            stack.poll_transmit(now, &mut frame)
        } else {
            gather(now, stack, &mut frame)
        };
        let Some(next) = next else { break };
        stack.check();
        sent.extend(cut(&frame[..next.length], next));
    }
    sent
}

/// Puts what a host lends to where it would have written it. It lends large data, and only where it does
/// not have to sum.
fn gather(now: Instant, stack: &mut Stack, frame: &mut [u8]) -> Option<TxFrame> {
    let offloads = stack.capabilities().offloads;
    frame.fill(0x5a);
    let ZeroCopyFrame { frame: mut next, rest } = stack.poll_transmit_zero_copy(now, frame)?;
    let headers = next.length;
    for part in rest {
        frame[next.length..next.length + part.len()].copy_from_slice(part);
        next.length += part.len();
    }
    let is_lent = next.length > headers;
    assert!(!is_lent || headers <= TCP + TcpHeader::MAX_LENGTH && offloads.checksums);
    assert!(
        is_lent || next.length < TCP + 2_048 || !offloads.checksums,
        "{} bytes were copied",
        next.length
    );
    Some(next)
}

/// The link's work: each segment has the headers of the whole, its own number, lengths and checksums, and PSH
/// and FIN only if it is the last.
fn cut(frame: &[u8], sent: TxFrame) -> Vec<Vec<u8>> {
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
        "the sum of the pseudo-header is in its place"
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

/// Whatever both hosts have to send reaches the other, if it `passes`, until both are silent; what was sent.
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

/// Whether the host sums and cuts, or leaves the sums to its link, or the cutting too: the same frames are on
/// the wire at the same time, also when some of them are lost there.
#[test]
fn a_link_that_cuts_puts_on_the_wire_what_the_host_would_have() {
    let plain = Offloads::NONE;
    let sums = Offloads { checksums: true, gso_max_size: 0 };
    let small = Offloads { checksums: true, gso_max_size: 9_000 };
    let large = Offloads { checksums: true, gso_max_size: 65_535 };
    for lost_of_a_hundred in [0, 1, 7] {
        let transfer = |offloads| {
            let mut hands = Hands::new(offloads);
            let (mut wire, mut heard, mut random) = (Vec::new(), 0, 7_u32);
            for round in 0..4_000 {
                if round < 10 {
                    hands.write(40_000);
                }
                let Hands { now, here, there, .. } = &mut hands;
                wire.extend(carry(*now, here, there, |frame| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    segment(frame).payload.is_empty()
                        || random >> 16 >= 65_536 / 100 * lost_of_a_hundred
                }));
                heard += hands.read().len();
                if heard == 400_000 {
                    break;
                }
                hands.now += Duration::from_millis(5);
                hands.here.handle_timeout(hands.now, 9);
                hands.there.handle_timeout(hands.now, 9);
            }
            assert_eq!(heard, 400_000, "{offloads:?}, {lost_of_a_hundred} % lost");
            let counters = hands.here.counters();
            (wire, counters.tcp.out_segments, counters.transmit.packets)
        };
        let (expected, segments, packets) = transfer(plain);
        for offloads in [sums, small, large] {
            let (wire, counted, handed_over) = transfer(offloads);
            assert!(wire == expected, "{offloads:?}, {lost_of_a_hundred} % lost");
            assert_eq!(counted, segments, "every segment counts, whoever has cut it");
            let is_fewer =
                if offloads == sums { handed_over == packets } else { handed_over < packets };
            assert!(is_fewer, "{handed_over} frames, {packets} otherwise: {offloads:?}");
        }
    }
}

#[test]
fn a_host_that_counts_its_packets_counts_each_by_one_whoever_cuts_them_and_others_say_zero() {
    let numbers = |offloads, counts: bool| -> Vec<u16> {
        let mut hands = Hands::with(offloads, counts, 1 << 20);
        hands.write(20 * MSS as usize);
        let Hands { now, here, there, .. } = &mut hands;
        let sent = carry(*now, here, there, |_| true);
        assert_eq!(there.counters().ip.in_header_errors, 0, "a checksum is wrong");
        sent.iter()
            .map(|frame| Ipv4Packet::parse(&frame[MEDIUM..]).unwrap().header.identification)
            .collect()
    };
    let large = Offloads { checksums: true, gso_max_size: 65_535 };
    let counted = numbers(Offloads::NONE, true);
    let first = counted[0];
    assert!(counted.len() >= 20 && first > 0, "the handshake had the first ones");
    assert!(
        counted.iter().zip(first..).all(|(&number, expected)| number == expected),
        "{counted:?}"
    );
    assert_eq!(counted, numbers(large, true));
    assert!(numbers(Offloads::NONE, false).iter().all(|&number| number == 0));
}

#[test]
fn a_burst_is_one_segment_after_the_other_and_only_the_last_is_pushed() {
    let mut hands = Hands::new(Offloads::NONE);
    hands.warm_up();
    hands.write(9 * MSS as usize + 10);
    let sent = hands.send(usize::MAX);
    let first = segment(&sent[0]).seq;
    for (index, frame) in sent.iter().enumerate() {
        let segment = segment(frame);
        assert_eq!(segment.seq, first + index as u32 * MSS);
        assert_eq!(segment.flags().contains(TcpFlags::PSH), index == 9, "segment {index}");
    }
    assert_eq!(sent.len(), 10);
}

#[test]
fn a_link_that_is_full_gets_the_rest_when_it_has_room() {
    let (mut hands, next) = Hands::interrupted(|_| ());
    assert_eq!(next.len(), 6);
    assert_eq!(hands.read().len(), 9 * MSS as usize);
}

/// What leaves later leaves with the time at which it does.
#[test]
fn the_rest_of_a_burst_that_leaves_later_says_when() {
    let (mut hands, next) = Hands::interrupted(|hands| hands.now += Duration::from_millis(7));
    let stamps = |frame: &Vec<u8>| segment(frame).options().timestamps.unwrap().value;
    let (first, fourth) = (stamps(&next[0]), stamps(&next[5]));
    assert_eq!(first, fourth);
    let early = Hands::interrupted(|_| ()).1;
    assert_eq!(stamps(&early[0]) + 7, first);
    assert_eq!(hands.read().len(), 9 * MSS as usize);
}

/// What has arrived meanwhile is acknowledged by the next segment, as ever.
#[test]
fn data_that_arrives_between_two_segments_of_a_burst_is_acknowledged_by_the_second() {
    let before = Hands::interrupted(|_| ()).1;
    let (_, next) = Hands::interrupted(|hands| {
        hands.there.tcp_write(hands.now, hands.server, &[7; 10]).unwrap();
        for frame in frames(hands.now, &mut hands.there, 9) {
            hands.here.handle_frame(hands.now, RxFrame::plain(&frame, hands.now));
        }
    });
    assert_eq!(segment(&next[0]).ack, segment(&before[0]).ack + 10);
    assert_eq!(segment(&next[0]).seq, segment(&before[0]).seq);
    assert_eq!(next.len(), 6);
}

#[test]
fn acknowledgements_of_a_part_of_a_burst_let_the_rest_go_on_behind_it() {
    let mut hands = Hands::new(Offloads::NONE);
    hands.warm_up();
    hands.write(9 * MSS as usize);
    let mut expected = None;
    for _ in 0..4 {
        for frame in hands.send(2) {
            assert_eq!(segment(&frame).seq, expected.unwrap_or_else(|| segment(&frame).seq));
            expected = Some(segment(&frame).seq + MSS);
            hands.there.handle_frame(hands.now, RxFrame::plain(&frame, hands.now));
        }
        for frame in frames(hands.now, &mut hands.there, 9) {
            hands.here.handle_frame(hands.now, RxFrame::plain(&frame, hands.now));
        }
    }
    assert_eq!(hands.here.counters().tcp.retransmitted_segments, 0);
}

#[test]
fn a_reset_in_the_middle_of_a_burst_is_the_last_word() {
    let (_, next) =
        Hands::interrupted(|hands| hands.here.tcp_abort(hands.now, hands.client).unwrap());
    assert_eq!(next.len(), 1);
    assert!(segment(&next[0]).flags().contains(TcpFlags::RST));
}

#[test]
fn an_end_in_the_middle_of_a_burst_is_said_by_its_last_segment() {
    let (_, next) =
        Hands::interrupted(|hands| hands.here.tcp_shutdown_write(hands.now, hands.client).unwrap());
    let fins: Vec<bool> =
        next.iter().map(|frame| segment(frame).flags().contains(TcpFlags::FIN)).collect();
    assert_eq!(fins, [false, false, false, false, false, true]);
}

#[test]
fn headers_that_change_in_the_middle_of_a_burst_have_changed_for_the_next_segment() {
    let (_, next) = Hands::interrupted(|hands| {
        hands.here.tcp_set_ttl(hands.client, NonZeroU8::new(9).unwrap()).unwrap();
        hands.here.tcp_set_type_of_service(hands.client, TypeOfService::from_byte(0xb8)).unwrap();
    });
    assert_eq!(next.len(), 6);
    for frame in next {
        let header = Ipv4Packet::parse(&frame[MEDIUM..]).unwrap().header;
        assert_eq!((header.ttl, header.type_of_service.byte() & !3), (9, 0xb8));
    }
}

/// The station of a hop that is none any more gets no further segment.
#[test]
fn a_route_that_changes_in_the_middle_of_a_burst_is_taken_at_once() {
    let gateway = Ipv4Addr::new(192, 0, 2, 77);
    let mut hands = Hands::new(Offloads { checksums: true, gso_max_size: 65_535 });
    hands.warm_up();
    hands.here.add_route(Route::via("192.0.2.2/32".parse().unwrap(), gateway));
    hands.write(9 * MSS as usize);
    let next = hands.send(usize::MAX);
    assert_eq!(next.len(), 1, "a question for the gateway");
    assert_eq!(EthernetFrame::parse(&next[0]).unwrap().header.ether_type, EtherType::ARP);
    let (hands, next) = Hands::interrupted(|hands| {
        hands.here.remove_route("192.0.2.0/24".parse().unwrap()).unwrap();
    });
    assert!(next.is_empty());
    assert_eq!(hands.here.counters().ip.out_no_routes, 6);
}

/// A router has found the segments too large; those after its report are smaller.
#[test]
fn a_path_that_becomes_narrower_in_the_middle_of_a_burst_gets_smaller_segments() {
    let mut hands = Hands::new(Offloads::NONE);
    hands.write(9 * MSS as usize);
    let first = hands.send(3);
    let error = IcmpError::FragmentationNeeded { next_hop_mtu: 1_000 };
    let report = IcmpMessage::Error { error, quote: Quote::of(&first[0][MEDIUM..]).unwrap() };
    // The stations do not matter to who takes it.
    let mut frame = first[0].clone();
    frame[..6].copy_from_slice(&first[0][6..12]);
    let length = report.emit(&mut frame[TCP..]);
    let header = Ipv4Header::new(Side::Right.address(), Side::Left.address(), Protocol::ICMP);
    header.emit(length, &mut frame[MEDIUM..]);
    hands.here.handle_frame(hands.now, RxFrame::plain(&frame[..TCP + length], hands.now));
    let next = hands.send(usize::MAX);
    assert!(
        !next.is_empty() && next.iter().all(|frame| frame.len() <= 1_000 + MEDIUM),
        "{}",
        next.len()
    );
}

const LARGE: Offloads = Offloads { checksums: true, gso_max_size: 65_535 };

/// A connection over a link that cuts, whose windows let the whole send buffer go, and whose writer has been refused
/// after a round trip of twice `latency`; what has left.
fn refused(latency: Duration) -> (Hands, Vec<Vec<u8>>) {
    let mut hands = Hands::with(LARGE, false, 256 << 10);
    for _ in 0..24 {
        hands.here.tcp_write(hands.now, hands.client, &[7; 1 << 20]).unwrap();
        hands.exchange(latency);
    }
    while hands.here.tcp(hands.client).unwrap().unacknowledged_bytes() > 0 {
        hands.exchange(latency);
    }
    assert_eq!(hands.here.tcp_write(hands.now, hands.client, &[7; 1 << 20]), Ok(256 << 10));
    let sent = hands.send(usize::MAX);
    (hands, sent)
}

/// A frame that others cut has 45 segments, and costs nearly as much with fewer. So a segment and 56 bytes wait for
/// what will be written as soon as an acknowledgement makes room.
#[test]
fn the_end_of_what_was_written_waits_while_its_writer_has_more_and_a_frame_is_in_flight() {
    let (mut hands, sent) = refused(Duration::from_micros(50));
    assert_eq!(sent.len(), 4 * 45);
    let (first, second) = sent.split_at(90);
    hands.deliver(first);
    assert!(
        hands.send(usize::MAX).is_empty(),
        "nothing was written, and more will be acknowledged"
    );
    assert_eq!(hands.here.tcp_write(hands.now, hands.client, &[7; 1 << 20]), Ok(90 * MSS as usize));
    let grown = hands.send(usize::MAX);
    assert_eq!(grown.len(), 90);
    hands.deliver(second);
    hands.deliver(&grown);
    assert_eq!(
        hands.send(usize::MAX).len(),
        2,
        "the writer does not come, and nothing is in flight"
    );
}

#[test]
fn nothing_waits_for_a_writer_who_was_not_refused_nor_for_a_far_peer() {
    let (mut hands, sent) = refused(Duration::from_micros(50));
    hands.deliver(&sent);
    hands.exchange(Duration::ZERO);
    hands.write(49 * MSS as usize);
    assert_eq!(hands.send(usize::MAX).len(), 49);
    assert_eq!(refused(Duration::from_millis(2)).1.len(), 4 * 45 + 2);
}

/// Each gets four frames and then lets the other send, in bursts or not.
#[test]
fn a_burst_ends_where_the_turn_of_another_begins() {
    let mut hands = Hands::new(Offloads::NONE);
    hands.warm_up();
    let address = SocketAddrV4::new(Side::Right.address(), 10);
    let listener = hands.there.tcp_listen(address, &ListenOptions::default()).unwrap();
    let other = hands.here.tcp_connect(hands.now, address, &ConnectOptions::default()).unwrap();
    let Hands { now, here, there, .. } = &mut hands;
    carry(*now, here, there, |_| true);
    there.tcp_accept(listener).unwrap();
    hands.write(9 * MSS as usize);
    hands.here.tcp_write(hands.now, other, &[1; 9 * MSS as usize]).unwrap();
    let sent = hands.send(usize::MAX);
    let ports: Vec<u16> = sent.iter().map(|frame| segment(frame).destination_port).collect();
    assert_eq!(ports, [9, 9, 9, 9, 10, 10, 10, 10, 9, 9, 9, 9, 10, 10, 10, 10, 9, 10]);
    let number = |port| move |frame: &&Vec<u8>| segment(frame).destination_port == port;
    for port in [9, 10] {
        let numbers: Vec<SeqNum> =
            sent.iter().filter(number(port)).map(|frame| segment(frame).seq).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + MSS), "in order");
    }
}

/// A server that acknowledges in pairs, and to which so many segments have come at once.
fn before_a_row(segments: usize, count_packets: bool) -> Hands {
    let rules = Config {
        stretch_acks: false,
        send_buffer: (1 << 20).into(),
        receive_buffer: (1 << 20).into(),
        ..Config::modern()
    };
    let mut hands = Hands::by(&rules, Offloads::NONE, count_packets);
    hands.warm_up();
    hands.come(segments);
    hands
}

impl Hands {
    /// So many segments come to the server, which says nothing yet.
    fn come(&mut self, segments: usize) {
        self.write(segments * MSS as usize);
        for frame in self.send(usize::MAX) {
            self.there.handle_frame(self.now, RxFrame::plain(&frame, self.now));
        }
    }

    /// What the server has to say to a link that asks for frame after frame, and has room for so many.
    fn answer_at_once(&mut self, room: usize) -> Vec<Vec<u8>> {
        let mut link = TestLink::new(self.there.capabilities(), room);
        self.there.turn(&mut link, Budget::default(), self.now).unwrap();
        self.there.check();
        std::iter::from_fn(|| link.fetch()).collect()
    }
}

/// A link that offers several frames at a time gets a burst in one loop, and one that asks for each the same, wherever the
/// link is full.
#[test]
fn a_burst_that_is_written_in_a_loop_is_what_would_have_been_written_one_by_one() {
    for medium in [Medium::Ethernet, Medium::Ip] {
        for (room, rest) in [(1, 64), (2, 3), (7, 64), (64, 1)] {
            let [mut asked, mut filled] = [(); 2].map(|()| {
                let mut hands = Hands::new(Offloads::NONE);
                hands.warm_up();
                hands.here.attach(Capabilities::new(medium, 1_500));
                hands.write(19 * MSS as usize + 100);
                hands
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
                .map(|hands| hands.here.tcp(hands.client).unwrap().statistics().clone());
            assert_eq!(one, other);
        }
    }
}

/// A link that asks for frame after frame gets the acknowledgements of a row without a question for each. They are what
/// a host says that is asked for each, wherever the link is full, and whatever comes then.
#[test]
fn a_row_of_acknowledgements_is_what_would_have_been_said_one_by_one() {
    for (segments, room, more) in (1..14).flat_map(|segments| {
        [(segments, 1, 0), (segments, 3, 4), (segments, 2, 1), (segments, 64, 0)]
    }) {
        let [mut asked, mut filled] = [(); 2].map(|()| before_a_row(segments, false));
        let mut one_by_one = frames(asked.now, &mut asked.there, room);
        let mut in_a_row = filled.answer_at_once(room);
        for hands in [&mut asked, &mut filled] {
            hands.now += Duration::from_millis(1);
            if more > 0 {
                hands.come(more);
            }
        }
        one_by_one.extend(frames(asked.now, &mut asked.there, usize::MAX));
        in_a_row.extend(filled.answer_at_once(64));
        assert!(one_by_one == in_a_row, "{segments} segments, room for {room}, then {more}");
        assert_eq!(asked.there.counters(), filled.there.counters());
        let [one, other] = [&asked, &filled]
            .map(|hands| hands.there.tcp(hands.server).unwrap().statistics().clone());
        assert_eq!(one, other);
    }
}

#[test]
fn each_acknowledgement_of_a_row_tells_of_two_segments_and_all_offer_the_same_window() {
    let mut hands = before_a_row(9, false);
    let answers = hands.answer_at_once(64);
    let says = |frame: &Vec<u8>| (segment(frame).ack, segment(frame).window);
    let said: Vec<(SeqNum, u16)> = answers.iter().map(says).collect();
    assert_eq!(said.len(), 5);
    let scale = hands.there.tcp(hands.server).unwrap().information().receive_shift;
    let edge = |(ack, window): (SeqNum, u16)| ack + (u32::from(window) << scale);
    for (number, pair) in said.windows(2).enumerate() {
        assert_eq!(pair[1].0 - pair[0].0, if number < 3 { 2 * MSS } else { MSS });
        // But for what the scale cuts off.
        assert!(edge(pair[1]) + (1 << scale) - edge(pair[0]) < 2 << scale, "{said:?}");
    }
}

/// Numbers of packets differ from each to the next, which a row does not.
#[test]
fn a_host_that_counts_its_packets_counts_its_acknowledgements() {
    let mut hands = before_a_row(8, true);
    let answers = hands.answer_at_once(64);
    let numbers = answers
        .iter()
        .map(|frame| Ipv4Packet::parse(&frame[MEDIUM..]).unwrap().header.identification);
    let numbers: Vec<u16> = numbers.collect();
    assert_eq!(numbers.len(), 4);
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
}

/// Each gets four frames and then lets the other send, with rows as with bursts.
#[test]
fn a_row_ends_where_the_turn_of_another_begins() {
    let mut hands = before_a_row(0, false);
    let address = SocketAddrV4::new(Side::Right.address(), 10);
    let listener = hands.there.tcp_listen(address, &ListenOptions::default()).unwrap();
    let other = hands.here.tcp_connect(hands.now, address, &ConnectOptions::default()).unwrap();
    let Hands { now, here, there, .. } = &mut hands;
    carry(*now, here, there, |_| true);
    let (accepted, _) = there.tcp_accept(listener).unwrap();
    hands.there.tcp_write(hands.now, accepted, &[1; 6 * MSS as usize]).unwrap();
    hands.come(12);
    assert!(hands.here.tcp(other).is_some());
    let ports =
        hands.answer_at_once(64).iter().map(|frame| segment(frame).source_port).collect::<Vec<_>>();
    assert_eq!(ports, [10, 10, 10, 10, 9, 9, 9, 9, 10, 10, 9, 9]);
}

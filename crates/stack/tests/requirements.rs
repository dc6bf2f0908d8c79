//! Tests that a host meets requirements of RFC 9293 which concern more than a connection:
//! addresses, ICMP, IP header fields and checksums. `specs/rfc9293.toml` lists the requirements.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    ConnectOptions, Error, Event, ListenHandle, ListenOptions, Medium, Route, TcpHandle,
};
use linerate_tcp::{Error as TcpError, Event as TcpEvent, SoftError, State};
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{
    ArpPacket, EtherType, EthernetFrame, IcmpError, IcmpMessage, Ipv4Header, Ipv4Packet, Protocol,
    Quote, Segment, SeqNum, Sum, TcpFlags, TcpHeader, TimeExceeded, TypeOfService, Unreachable,
};
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

const LEFT: Ipv4Addr = Side::Left.address();
const RIGHT: Ipv4Addr = Side::Right.address();
const SERVER: SocketAddrV4 = SocketAddrV4::new(RIGHT, 9);
/// Addresses of the left and of the right host in a second network that both share.
const LEFT_TOO: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const RIGHT_TOO: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

/// Creates two hosts whose link carries IP packets instead of Ethernet frames, so that tests can
/// write packets without an Ethernet header. Each host has an address in each of two networks.
fn pair() -> Pair {
    Pair::new(&Setup { medium: Medium::Ip, ..Setup::default() }, |side, config| {
        let second = if side == Side::Left { LEFT_TOO } else { RIGHT_TOO };
        config.addresses.push(format!("{second}/24").parse().unwrap());
    })
}

fn listen(pair: &mut Pair, local: SocketAddrV4) -> ListenHandle {
    pair.stack(Side::Right).tcp_listen(local, &ListenOptions::default()).unwrap()
}

fn connect(pair: &mut Pair, remote: SocketAddrV4) -> TcpHandle {
    let now = pair.now;
    pair.stack(Side::Left).tcp_connect(now, remote, &ConnectOptions::default()).unwrap()
}

/// Opens a connection from the left host to [`SERVER`]. Returns its handles on the left and on the
/// right host.
fn established(pair: &mut Pair) -> (TcpHandle, TcpHandle) {
    let listener = listen(pair, SERVER);
    let left = connect(pair, SERVER);
    pair.run_for(Duration::from_millis(1));
    (left, pair.stack(Side::Right).tcp_accept(listener).unwrap().0)
}

/// A record of packets, each with the host that sent it.
type Record = Rc<RefCell<Vec<(Side, Vec<u8>)>>>;

/// Records every packet from now on.
fn record(pair: &mut Pair) -> Record {
    let packets = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&packets);
    pair.observe(move |_, side, packet| log.borrow_mut().push((side, packet.to_vec())));
    packets
}

/// Returns a packet with a SYN to port 9 and a valid checksum.
fn syn(source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    segment(source, destination, &[], b"", TcpFlags::SYN, 1, 0)
}

fn segment(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    ip_options: &[u8],
    data: &[u8],
    flags: TcpFlags,
    seq: u32,
    ack: u32,
) -> Vec<u8> {
    let length = 20 + data.len();
    let header = Ipv4Header::new(source, destination, Protocol::TCP);
    let mut packet = vec![0; 20 + ip_options.len() + length];
    let at = header.emit_with_options(ip_options, length, &mut packet);
    let tcp = TcpHeader {
        source_port: 1_000,
        destination_port: 9,
        seq: SeqNum::new(seq),
        ack: SeqNum::new(ack),
        flags,
        window: 5_000,
        urgent: 0,
    };
    tcp.emit(0, &mut packet[at..]);
    packet[at + 20..].copy_from_slice(data);
    let sum = Sum::of(&packet[at..]);
    TcpHeader::fill_checksum(&mut packet[at..], header.pseudo_header(length), sum);
    packet
}

/// Returns an ICMP error of a router about `packet`.
fn report(error: IcmpError, packet: &[u8]) -> Vec<u8> {
    let message = IcmpMessage::Error { error, quote: Quote::of(packet).unwrap() };
    let router = Ipv4Addr::new(192, 0, 2, 254);
    let sender = Ipv4Packet::parse(packet).unwrap().header.source;
    let mut bytes = vec![0; 20 + message.length()];
    Ipv4Header::new(router, sender, Protocol::ICMP).emit(message.length(), &mut bytes);
    message.emit(&mut bytes[20..]);
    bytes
}

fn events(pair: &mut Pair, side: Side) -> Vec<Event> {
    std::iter::from_fn(|| pair.stack(side).poll_event()).collect()
}

/// MUST-2: every sent segment has a valid checksum. The test checks segments of all kinds: the
/// handshake, data, FINs, and resets that answer segments without a connection.
#[test]
fn every_sent_segment_has_a_valid_checksum() {
    let mut pair = pair();
    let packets = record(&mut pair);
    connect(&mut pair, SocketAddrV4::new(RIGHT, 7));
    let (left, right) = established(&mut pair);
    for length in [1, 2, 3, 1_448, 4_000] {
        let now = pair.now;
        pair.stack(Side::Left).tcp_write(now, left, &vec![0xab; length]).unwrap();
        pair.run_for(Duration::from_millis(1));
    }
    let now = pair.now;
    pair.stack(Side::Left).tcp_shutdown_write(now, left).unwrap();
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    pair.stack(Side::Right).tcp_abort(now, right).unwrap();
    pair.run_for(Duration::from_millis(1));
    let mut seen = TcpFlags::empty();
    for (_, packet) in packets.borrow().iter() {
        let packet = Ipv4Packet::parse(packet).unwrap();
        let pseudo = packet.header.pseudo_header(packet.payload.len());
        assert_eq!(TcpHeader::verify_checksum(packet.payload, pseudo), Ok(()));
        seen |= Segment::parse(packet.payload).unwrap().flags();
    }
    assert!(
        seen.contains(
            TcpFlags::SYN | TcpFlags::ACK | TcpFlags::FIN | TcpFlags::RST | TcpFlags::PSH
        )
    );
}

/// MUST-3: if any single bit of a segment is changed, the segment has no effect.
#[test]
fn a_segment_with_an_invalid_checksum_is_discarded() {
    let mut pair = pair();
    listen(&mut pair, SERVER);
    let good = syn(LEFT, RIGHT);
    for bit in 0..20 * 8 {
        let mut packet = good.clone();
        packet[20 + bit / 8] ^= 1 << (bit % 8);
        assert!(pair.answers(Side::Right, packet).is_empty(), "bit {bit}");
    }
    let counters = pair.stack(Side::Right).counters().tcp;
    assert_eq!(counters.passive_opens, 0);
    // All 160 changed segments are counted as errors. Most of them have a wrong checksum, and the
    // others an invalid data offset.
    assert_eq!(counters.in_errors, 160);
    assert_eq!(pair.answers(Side::Right, good).len(), 1);
}

/// MUST-8, MUST-9, SHLD-1: an initial sequence number is the sum of a clock with a tick of 4 µs and
/// a keyed hash of the four-tuple. The test compares numbers for one four-tuple: those of one host
/// at two times, and those of hosts with different secrets at one time.
#[test]
fn initial_sequence_numbers_follow_the_clock_and_a_secret() {
    let first_number = |seed, wait| {
        let mut pair =
            Pair::new(&Setup { medium: Medium::Ip, seed, ..Setup::default() }, |_, _| {});
        pair.run_for(wait);
        let packets = record(&mut pair);
        let now = pair.now;
        let options = ConnectOptions {
            local: Some(SocketAddrV4::new(LEFT, 5_000).into()),
            ..ConnectOptions::default()
        };
        pair.stack(Side::Left).tcp_connect(now, SERVER, &options).unwrap();
        pair.run_for(Duration::from_millis(1));
        let (side, packet) = packets.borrow()[0].clone();
        assert_eq!(side, Side::Left);
        Segment::parse(&packet[20..]).unwrap().seq
    };
    let early = first_number(1, Duration::ZERO);
    let late = first_number(1, Duration::from_secs(1));
    assert_eq!(late - early, 250_000, "one in four microseconds");
    let others: Vec<_> = (2..10).map(|seed| first_number(seed, Duration::ZERO) - early).collect();
    assert!(
        others.iter().all(|&distance| (1 << 16..u32::MAX - (1 << 16)).contains(&distance)),
        "{others:?}"
    );
}

/// MUST-11: if a passive open fails because of a reset, the listener stays in LISTEN.
#[test]
fn a_reset_of_a_half_open_connection_keeps_the_listener() {
    let mut pair = pair();
    let listener = listen(&mut pair, SERVER);
    let answer = pair.answers(Side::Right, syn(LEFT, RIGHT)).pop().unwrap();
    assert!(Segment::parse(&answer[20..]).unwrap().flags().contains(TcpFlags::SYN | TcpFlags::ACK));
    let reset = segment(LEFT, RIGHT, &[], b"", TcpFlags::RST, 2, 0);
    assert!(pair.answers(Side::Right, reset).is_empty());
    assert_eq!(events(&mut pair, Side::Right), [], "the application gets no event");
    connect(&mut pair, SERVER);
    pair.run_for(Duration::from_millis(1));
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_some());
}

/// MUST-41: a second listener on the same address and port is refused. This must not affect the
/// first listener or its connections.
#[test]
fn a_second_listener_is_refused_without_effect() {
    let mut pair = pair();
    let listener = listen(&mut pair, SERVER);
    let first = connect(&mut pair, SERVER);
    pair.run_for(Duration::from_millis(1));
    let again = pair.stack(Side::Right).tcp_listen(SERVER, &ListenOptions::default());
    assert_eq!(again, Err(Error::AddressInUse(SERVER.into())));
    connect(&mut pair, SERVER);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).tcp(first).unwrap().state(), State::Established);
    for _ in 0..2 {
        assert!(pair.stack(Side::Right).tcp_accept(listener).is_some());
    }
}

/// MUST-42: an application can listen on a port on which a connection is in SYN-SENT or
/// SYN-RECEIVED.
#[test]
fn a_listener_can_share_the_port_of_an_opening_connection() {
    let mut pair = pair();
    // The right host has two connections on port 9 before it listens there. One of them belongs to
    // another listener, and is in SYN-RECEIVED. The host itself opens the other one, which is in
    // SYN-SENT.
    let second = SocketAddrV4::new(RIGHT_TOO, 9);
    listen(&mut pair, second);
    assert_eq!(pair.answers(Side::Right, syn(LEFT_TOO, RIGHT_TOO)).len(), 1);
    let now = pair.now;
    let options = ConnectOptions { local: Some(SERVER.into()), ..ConnectOptions::default() };
    let away = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 77), 80);
    let opening = pair.stack(Side::Right).tcp_connect(now, away, &options).unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Right).tcp(opening).unwrap().state(), State::SynSent);
    let listener = listen(&mut pair, SERVER);
    connect(&mut pair, SERVER);
    pair.run_for(Duration::from_millis(1));
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_some());
    assert_eq!(pair.stack(Side::Right).tcp(opening).unwrap().state(), State::SynSent);
}

/// MUST-43, MUST-44: a connection uses the local address that the application specifies. If it
/// specifies none, IP selects the address.
#[test]
fn the_local_address_is_specified_or_in_the_network_of_the_next_hop() {
    let mut pair = pair();
    let listener = listen(&mut pair, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9));
    for (remote, asked, source) in [
        (RIGHT, None, LEFT),
        (RIGHT_TOO, None, LEFT_TOO),
        (RIGHT, Some(LEFT_TOO), LEFT_TOO),
        (RIGHT_TOO, Some(LEFT), LEFT),
    ] {
        let now = pair.now;
        let local = asked.map(|address| SocketAddrV4::new(address, 0).into());
        let options = ConnectOptions { local, ..ConnectOptions::default() };
        let remote = SocketAddrV4::new(remote, 9);
        pair.stack(Side::Left).tcp_connect(now, remote, &options).unwrap();
        pair.run_for(Duration::from_millis(1));
        let (_, peer) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
        assert_eq!(peer.ip(), source, "{remote} from {asked:?}");
    }
}

/// MUST-45: a connection keeps its local address, even if IP would select another address after a
/// change of routes.
#[test]
fn a_connection_keeps_its_source_address() {
    let mut pair = pair();
    let listener = listen(&mut pair, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9));
    let packets = record(&mut pair);
    let left = connect(&mut pair, SocketAddrV4::new(RIGHT_TOO, 9));
    pair.run_for(Duration::from_millis(1));
    let (right, _) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    for side in Side::BOTH {
        let gateway = Some(side.other().address().into());
        let second = "198.51.100.0/24".parse().unwrap();
        pair.stack(side).add_route(Route { gateway, ..Route::direct(second) });
    }
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, left, b"there").unwrap();
    pair.stack(Side::Right).tcp_write(now, right, b"back").unwrap();
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    pair.stack(Side::Left).tcp_close(now, left).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert!(packets.borrow().len() > 6);
    for (side, packet) in packets.borrow().iter() {
        let source = if *side == Side::Left { LEFT_TOO } else { RIGHT_TOO };
        assert_eq!(Ipv4Packet::parse(packet).unwrap().header.source, source);
    }
}

/// MUST-57: a SYN to a broadcast or multicast address is discarded silently.
#[test]
fn a_broadcast_or_multicast_syn_is_silently_discarded() {
    let mut pair = pair();
    listen(&mut pair, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9));
    let many = [
        [192, 0, 2, 255],
        [198, 51, 100, 255],
        [255, 255, 255, 255],
        [224, 0, 0, 1],
        [239, 1, 2, 3],
    ];
    for destination in many {
        let sent = pair.answers(Side::Right, syn(LEFT, destination.into()));
        assert!(sent.is_empty(), "{destination:?}");
    }
    assert_eq!(pair.stack(Side::Right).counters().tcp.passive_opens, 0);
    assert_eq!(pair.answers(Side::Right, syn(LEFT, RIGHT)).len(), 1);
}

/// MUST-63: a SYN from a multicast, broadcast, unspecified, loopback or own address is discarded.
#[test]
fn a_syn_from_an_invalid_source_is_ignored() {
    let mut pair = pair();
    listen(&mut pair, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9));
    let impossible = [
        [224, 0, 0, 1],
        [192, 0, 2, 255],
        [255, 255, 255, 255],
        [0, 0, 0, 0],
        [127, 0, 0, 1],
        RIGHT.octets(),
    ];
    for source in impossible {
        assert!(pair.answers(Side::Right, syn(source.into(), RIGHT)).is_empty(), "{source:?}");
    }
    assert_eq!(pair.stack(Side::Right).counters().tcp.passive_opens, 0);
}

/// MUST-58, MUST-59: if several segments arrive together, the host answers all of them with one
/// acknowledgement.
#[test]
fn segments_of_a_batch_are_acknowledged_once() {
    let mut pair = pair();
    listen(&mut pair, SERVER);
    let answer = pair.answers(Side::Right, syn(LEFT, RIGHT)).pop().unwrap();
    let ack = Segment::parse(&answer[20..]).unwrap().seq.number().wrapping_add(1);
    let now = pair.now;
    for number in 0..20 {
        let packet = segment(LEFT, RIGHT, &[], &[7; 100], TcpFlags::ACK, 2 + number * 100, ack);
        pair.host(Side::Right).link_mut().put(now, packet);
    }
    let host = pair.host(Side::Right);
    host.turn(now).unwrap();
    let sent: Vec<_> = std::iter::from_fn(|| host.link_mut().fetch()).collect();
    assert_eq!(sent.len(), 1);
    assert_eq!(Segment::parse(&sent[0][20..]).unwrap().ack, SeqNum::new(2_002));
}

/// MUST-50: TCP ignores certain IP options: Record Route, Timestamp, a source route that is
/// completed, and an unknown option.
#[test]
fn ip_options_have_no_effect() {
    let record_route = [7, 7, 4, 0, 0, 0, 0, 0];
    let timestamp = [68, 8, 5, 0, 0, 0, 0, 0];
    let source_route = [131, 7, 8, 192, 0, 2, 254, 0];
    let unknown = [158, 4, 1, 2];
    for options in [&record_route[..], &timestamp, &source_route, &unknown] {
        let mut pair = pair();
        listen(&mut pair, SERVER);
        let packet = segment(LEFT, RIGHT, options, b"", TcpFlags::SYN, 1, 0);
        let answer = pair.answers(Side::Right, packet).pop().unwrap();
        let header = Ipv4Packet::parse(&answer).unwrap().header;
        assert_eq!((header.destination, answer[0] & 15), (LEFT, 5), "{options:?}");
        assert!(
            Segment::parse(&answer[20..]).unwrap().flags().contains(TcpFlags::SYN | TcpFlags::ACK)
        );
    }
}

/// MUST-48, MUST-49, SHLD-21, SHLD-22: the application can set the type of service and the TTL of
/// each connection separately. The values apply from the SYN on, and can be changed later.
#[test]
fn type_of_service_and_ttl_are_set_per_connection() {
    let mut pair = pair();
    let listener = listen(&mut pair, SERVER);
    let packets = record(&mut pair);
    let seen = |side| {
        let mut seen: Vec<_> = packets
            .borrow_mut()
            .drain(..)
            .filter(|(sender, _)| *sender == side)
            .map(|(_, packet)| Ipv4Packet::parse(&packet).unwrap().header)
            .map(|header| (header.type_of_service.byte(), header.ttl))
            .collect();
        seen.dedup();
        seen
    };
    let (left, other) = (connect(&mut pair, SERVER), connect(&mut pair, SERVER));
    let set = |pair: &mut Pair, side, handle, byte, ttl: u8| {
        let treatment = TypeOfService::from_byte(byte);
        pair.stack(side).tcp_set_type_of_service(handle, treatment).unwrap();
        pair.stack(side).tcp_set_ttl(handle, ttl.try_into().unwrap()).unwrap();
    };
    set(&mut pair, Side::Left, left, 0xb8, 3);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(seen(Side::Left).first(), Some(&(0xb8, 3)), "the SYN");
    let (right, _) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    set(&mut pair, Side::Right, right, 0x28, 255);
    for (byte, ttl) in [(0xb8, 3), (0x20, 200)] {
        set(&mut pair, Side::Left, left, byte, ttl);
        let now = pair.now;
        pair.stack(Side::Left).tcp_write(now, left, &[1; 3_000]).unwrap();
        pair.run_for(Duration::from_millis(1));
        let acknowledged: Vec<_> = packets.borrow().clone();
        assert_eq!(seen(Side::Left), [(byte, ttl)]);
        *packets.borrow_mut() = acknowledged;
        assert_eq!(
            seen(Side::Right),
            [(0x28, 255)],
            "acknowledgements have the settings of their sender"
        );
    }
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, other, b"as usual").unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(seen(Side::Left), [(0, 64)]);
}

/// MUST-54, MUST-56, SHLD-25, MUST-47: the host reports a soft ICMP error to the application, and
/// does not end the connection. This holds both during and after the handshake.
#[test]
fn soft_errors_are_reported_and_end_no_connection() {
    let soft = [
        IcmpError::Unreachable(Unreachable::Net),
        IcmpError::Unreachable(Unreachable::Host),
        IcmpError::Unreachable(Unreachable::SourceRouteFailed),
        IcmpError::TimeExceeded(TimeExceeded::Transit),
        IcmpError::TimeExceeded(TimeExceeded::Reassembly),
        IcmpError::ParameterProblem { pointer: 20 },
    ];
    for error in soft {
        let mut pair = pair();
        let (left, _) = established(&mut pair);
        let opening = connect(&mut pair, SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 77), 9));
        let now = pair.now;
        pair.stack(Side::Left).tcp_write(now, left, b"data").unwrap();
        events(&mut pair, Side::Left);
        let host = pair.host(Side::Left);
        host.turn(now).unwrap();
        let sent: Vec<_> = std::iter::from_fn(|| host.link_mut().fetch()).collect();
        assert_eq!(sent.len(), 2);
        for packet in sent {
            pair.answers(Side::Left, report(error, &packet));
        }
        for (handle, state) in [(left, State::Established), (opening, State::SynSent)] {
            let connection = pair.stack(Side::Left).tcp(handle).unwrap();
            assert_eq!(
                (connection.state(), connection.soft_error()),
                (state, Some(SoftError::Unreachable)),
                "{error:?}"
            );
        }
        let told = events(&mut pair, Side::Left);
        assert_eq!(told.len(), 2, "{error:?}");
        for handle in [left, opening] {
            assert!(told.contains(&Event::Tcp(handle, TcpEvent::SoftError)), "{error:?}");
        }
    }
}

/// SHLD-26, in part: a hard error ends a connection attempt. On a connection that is already open,
/// a hard error is treated like a soft one (RFC 5927 §5).
#[test]
fn hard_errors_end_a_connection_attempt() {
    for error in [Unreachable::Protocol, Unreachable::Port] {
        let mut pair = pair();
        let opening = connect(&mut pair, SERVER);
        let now = pair.now;
        let host = pair.host(Side::Left);
        host.turn(now).unwrap();
        let packet = host.link_mut().fetch().unwrap();
        pair.answers(Side::Left, report(IcmpError::Unreachable(error), &packet));
        assert_eq!(pair.stack(Side::Left).tcp(opening).unwrap().error(), Some(TcpError::Refused));
    }
}

/// MUST-55: ICMP Source Quench messages are discarded silently.
#[test]
fn a_source_quench_is_silently_discarded() {
    let mut pair = pair();
    let (left, _) = established(&mut pair);
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, left, b"data").unwrap();
    events(&mut pair, Side::Left);
    let host = pair.host(Side::Left);
    host.turn(now).unwrap();
    let packet = host.link_mut().fetch().unwrap();
    let before = pair.stack(Side::Left).tcp(left).unwrap().information();
    assert!(pair.answers(Side::Left, report(IcmpError::SourceQuench, &packet)).is_empty());
    let connection = pair.stack(Side::Left).tcp(left).unwrap();
    assert_eq!((connection.information(), connection.soft_error()), (before, None));
    assert_eq!(events(&mut pair, Side::Left), []);
    assert_eq!(pair.stack(Side::Left).counters().icmp.in_source_quenches, 1);
}

/// MUST-20 (b): after R1 retransmissions, the host checks by a probe whether the next hop is
/// reachable. It sends the probe even if the next hop has recently been confirmed as reachable.
#[test]
fn an_unresponsive_peer_causes_a_probe_of_the_next_hop() {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let (left, _) = established(&mut pair);
    pair.run_for(Duration::from_secs(2));
    let log = Rc::new(RefCell::new(Vec::new()));
    let requests = Rc::clone(&log);
    pair.observe(move |now, side, bytes| {
        let frame = EthernetFrame::parse(bytes).unwrap();
        let is_request = frame.header.ether_type == EtherType::ARP
            && ArpPacket::parse(frame.payload).unwrap().target_ip == RIGHT;
        if side == Side::Left && is_request {
            requests.borrow_mut().push(now);
        }
    });
    let start = pair.now;
    pair.stack(Side::Left).tcp_write(start, left, b"are you there?").unwrap();
    // The link loses all frames from now on, including ARP replies.
    pair.wire.network.loss = 1_000;
    pair.run_for(Duration::from_secs(5));
    let asked = log.borrow().first().copied().expect("the neighbour is probed");
    let retransmissions = pair.stack(Side::Left).counters().tcp.retransmitted_segments;
    assert!(retransmissions >= 3);
    // The ARP probe follows the third retransmission, which is sent 200 + 400 + 800 ms after the
    // write. The age of the neighbour entry cannot be its cause, because entries are valid for 30
    // s.
    let after = asked.since(start).as_millis();
    assert_eq!(after, 1_400);
}

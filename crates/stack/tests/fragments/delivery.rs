//! Tests in which hosts send datagrams and echo messages that are larger than the MTU, and deliver
//! them after reassembly.

use crate::{
    LEFT, LEFT_IPV6, Part, RIGHT, RIGHT_IPV6, VERSIONS, add_ipv6, answers, bind, data, datagram,
    deliver, pair, pair_on, receive,
};
use linerate_stack::{Error, Event, Fragmentation, RxFrame};
use linerate_testkit::transfer::{Transfer, established, listen};
use linerate_testkit::{Network, Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{
    Ipv4Header, Ipv4Packet, Ipv6Header, Protocol, Segment, SeqNum, Sum, TcpFlags, TcpHeader,
};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

#[test]
fn large_datagrams_arrive_whole_in_both_directions() {
    for hosts in VERSIONS {
        let mut pair = pair();
        let sockets = Side::BOTH.map(|side| bind(&mut pair, side, hosts[side as usize], 9));
        for length in [1_472, 1_473, 8_000, 60_000, 65_507] {
            for side in Side::BOTH {
                let to = SocketAddr::new(hosts[side.other() as usize], 9);
                let now = pair.now;
                let sent =
                    pair.stack(side).udp_send_to(now, sockets[side as usize], to, &data(length));
                assert_eq!(sent, Ok(()));
                pair.run_for(Duration::from_millis(5));
                let received = receive(&mut pair, side.other(), sockets[side.other() as usize]);
                assert_eq!(received, Ok(data(length)), "{length} bytes to {to}");
            }
        }
        let counted = pair.stack(Side::Left).counters().ip;
        assert_eq!((counted.reassembly_failures, counted.fragmentation_failures), (0, 0));
        let fragmented = if hosts[0].is_ipv4() { 4 } else { 5 };
        assert_eq!((counted.fragmented, counted.reassembly_ok), (fragmented, fragmented));
        assert_eq!(counted.fragments_created, counted.reassembly_required);
    }
}

#[test]
fn the_longest_datagrams_fill_their_length_fields() {
    for (hosts, limit) in VERSIONS.into_iter().zip([65_507, 65_527]) {
        let mut pair = pair();
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let right = bind(&mut pair, Side::Right, hosts[1], 9);
        let to = SocketAddr::new(hosts[1], 9);
        let now = pair.now;
        let stack = pair.stack(Side::Left);
        let refused = stack.udp_send_to(now, left, to, &data(limit + 1));
        assert_eq!(refused, Err(Error::MessageTooLong { limit }));
        assert_eq!(stack.udp_send_to(now, left, to, &data(limit)), Ok(()));
        pair.run_for(Duration::from_millis(5));
        assert_eq!(receive(&mut pair, Side::Right, right), Ok(data(limit)));
    }
}

#[test]
fn large_echoes_are_answered_whole() {
    for [_, right] in VERSIONS {
        let mut pair = pair();
        for (sequence, length) in [(1, 8_000), (2, 60_000)] {
            let now = pair.now;
            let stack = pair.stack(Side::Left);
            stack.echo_send(now, right, 77, sequence, &data(length)).unwrap();
            pair.run_for(Duration::from_millis(5));
            let Some(Event::EchoReply(reply)) = pair.stack(Side::Left).poll_event() else {
                panic!("a reply of {length} bytes from {right}")
            };
            assert_eq!((reply.sequence, reply.data), (sequence, data(length)));
        }
    }
}

#[test]
fn a_datagram_is_delivered_whole_or_not_at_all() {
    let network = Network {
        loss: 10,
        duplication: 20,
        reordering: 50,
        lateness: Duration::from_millis(2),
        ..Network::clean(Duration::from_micros(50))
    };
    for hosts in VERSIONS {
        let mut pair = pair_on(network, |_| {});
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let right = bind(&mut pair, Side::Right, hosts[1], 9);
        let mut delivered = 0;
        for number in 0..500_u32 {
            let mut sent = data(8_000);
            sent[..4].copy_from_slice(&number.to_be_bytes());
            let now = pair.now;
            let to = SocketAddr::new(hosts[1], 9);
            pair.stack(Side::Left).udp_send_to(now, left, to, &sent).unwrap();
            pair.run_for(Duration::from_millis(5));
            while let Ok(received) = receive(&mut pair, Side::Right, right) {
                assert_eq!(received, sent);
                delivered += 1;
            }
        }
        // The network loses one fragment in a hundred. A datagram arrives only if all its six
        // fragments do, so about 94 % of the 500 datagrams should arrive: 470.
        assert!((420..500).contains(&delivered), "{delivered} of 500 datagrams");
        let counted = pair.stack(Side::Right).counters().ip;
        assert_eq!((counted.reassembly_ok, counted.reassembly_overlaps), (delivered, 0));
    }
}

#[test]
fn datagrams_of_a_socket_stay_in_order_and_connections_proceed() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let (client, server) = established(&mut pair, listener);
    let left = bind(&mut pair, Side::Left, LEFT.into(), 9);
    let right = bind(&mut pair, Side::Right, RIGHT.into(), 9);
    let mut transfer = Transfer::new((Side::Left, client), (Side::Right, server), 1_000_000);
    let now = pair.now;
    for length in [60_000, 10, 8_000, 20, 30] {
        let to = SocketAddr::new(RIGHT.into(), 9);
        pair.stack(Side::Left).udp_send_to(now, left, to, &data(length)).unwrap();
    }
    assert!(pair.run_until(Duration::from_secs(10), |pair| transfer.advance(pair)));
    for length in [60_000, 10, 8_000, 20, 30] {
        assert_eq!(receive(&mut pair, Side::Right, right), Ok(data(length)));
    }
}

#[test]
fn a_large_datagram_waits_whole_for_its_neighbour() {
    let mut pair = Pair::new(&Setup::default(), add_ipv6);
    for hosts in VERSIONS {
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let right = bind(&mut pair, Side::Right, hosts[1], 9);
        let now = pair.now;
        let to = SocketAddr::new(hosts[1], 9);
        pair.stack(Side::Left).udp_send_to(now, left, to, &data(60_000)).unwrap();
        pair.run_for(Duration::from_millis(5));
        assert_eq!(receive(&mut pair, Side::Right, right), Ok(data(60_000)));
    }
}

#[test]
fn fragments_of_a_closed_socket_are_sent() {
    let mut pair = pair();
    let left = bind(&mut pair, Side::Left, LEFT.into(), 9);
    let right = bind(&mut pair, Side::Right, RIGHT.into(), 9);
    let now = pair.now;
    let to = SocketAddr::new(RIGHT.into(), 9);
    pair.stack(Side::Left).udp_send_to(now, left, to, &data(60_000)).unwrap();
    pair.stack(Side::Left).udp_close(left).unwrap();
    pair.run_for(Duration::from_millis(5));
    assert_eq!(receive(&mut pair, Side::Right, right), Ok(data(60_000)));
}

/// RFC 6864 §4: only a datagram that is sent in fragments needs a unique identification. A datagram
/// in one packet has DF set and an identification of zero.
#[test]
fn only_fragments_are_without_df_and_each_datagram_has_its_identification() {
    let mut pair = pair();
    let packets = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&packets);
    pair.observe(move |_, side, packet| {
        if side == Side::Left {
            seen.borrow_mut().push(Ipv4Packet::parse(packet).unwrap().header);
        }
    });
    let left = bind(&mut pair, Side::Left, LEFT.into(), 9);
    let _right = bind(&mut pair, Side::Right, RIGHT.into(), 9);
    let now = pair.now;
    let to = SocketAddr::new(RIGHT.into(), 9);
    for length in [1_472, 1_500, 1_500] {
        pair.stack(Side::Left).udp_send_to(now, left, to, &data(length)).unwrap();
    }
    pair.run_for(Duration::from_millis(5));
    let headers = packets.borrow();
    let facts: Vec<_> =
        headers.iter().map(|header| (header.dont_fragment, header.more_fragments)).collect();
    assert_eq!(
        facts,
        [(true, false), (false, true), (false, false), (false, true), (false, false)]
    );
    let ids: Vec<_> = headers.iter().map(|header| header.identification).collect();
    assert_eq!((ids[0], ids[1], ids[3]), (0, ids[2], ids[4]));
    assert_ne!(ids[1], ids[3]);
}

#[test]
fn a_socket_may_refuse_to_fragment() {
    for (hosts, limit) in VERSIONS.into_iter().zip([1_472, 1_452]) {
        let mut pair = pair();
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let now = pair.now;
        let to = SocketAddr::new(hosts[1], 9);
        let stack = pair.stack(Side::Left);
        assert_eq!(stack.udp_fragmentation(left), Ok(Fragmentation::AsNeeded));
        stack.udp_set_fragmentation(left, Fragmentation::Never).unwrap();
        let refused = stack.udp_send_to(now, left, to, &data(limit + 1));
        assert_eq!(refused, Err(Error::MessageTooLong { limit }));
        assert_eq!(stack.udp_send_to(now, left, to, &data(limit)), Ok(()));
        stack.udp_connect(now, left, to).unwrap();
        assert_eq!(stack.udp_path_mtu(now, left), Ok(1_500));
    }
}

/// RFC 8200 §8.1: a UDP datagram over IPv6 without a checksum is discarded.
#[test]
fn datagrams_of_ipv6_need_a_checksum() {
    let mut pair = pair();
    let hosts = VERSIONS[1];
    let left = bind(&mut pair, Side::Left, hosts[0], 9);
    let mut datagram = datagram(hosts, b"hello");
    datagram[6..8].fill(0);
    for fragment in [false, true] {
        let mut packet = vec![0; 40];
        let next = if fragment { Protocol::FRAGMENT } else { Protocol::UDP };
        let payload = if fragment {
            [&[17, 0, 0, 0, 0, 0, 0, 7], &datagram[..]].concat()
        } else {
            datagram.clone()
        };
        Ipv6Header::new(RIGHT_IPV6, LEFT_IPV6, next).emit(payload.len(), &mut packet);
        packet.extend(payload);
        assert_eq!(answers(&mut pair, packet).len(), 0);
        assert_eq!(receive(&mut pair, Side::Left, left), Err(Error::WouldBlock));
    }
    assert_eq!(pair.stack(Side::Left).counters().udp.in_checksum_errors, 2);
}

#[test]
fn a_segment_in_fragments_reaches_its_listener() {
    let mut pair = pair();
    let listener = SocketAddr::new(LEFT.into(), 9);
    pair.stack(Side::Left).tcp_listen(listener, &linerate_stack::ListenOptions::default()).unwrap();
    let mut segment = vec![0; 20 + 100];
    let header = TcpHeader {
        source_port: 5,
        destination_port: 9,
        seq: SeqNum::new(1),
        ack: SeqNum::new(0),
        flags: TcpFlags::SYN,
        window: 1_000,
        urgent: 0,
    };
    header.emit(0, &mut segment);
    let ip = Ipv4Header::new(RIGHT, LEFT, Protocol::TCP);
    let (pseudo, sum) = (ip.pseudo_header(segment.len()), Sum::of(&segment));
    TcpHeader::fill_checksum(&mut segment, pseudo, sum);
    let part = |offset: u16, payload, more| Part {
        protocol: Protocol::TCP,
        ..Part::udp(offset, payload, more)
    };
    let hosts = VERSIONS[0];
    assert_eq!(deliver(&mut pair, hosts, part(24, &segment[24..], false)).len(), 0);
    let answer = deliver(&mut pair, hosts, part(0, &segment[..24], true)).pop().unwrap();
    let flags = Segment::parse(&answer[20..]).unwrap().flags();
    assert!(flags.contains(TcpFlags::SYN | TcpFlags::ACK));
}

/// If a link marks a fragment as "checksum verified", this cannot refer to the checksum of the
/// whole datagram. The host must therefore verify that checksum after reassembly.
#[test]
fn the_checksum_of_a_reassembled_datagram_is_verified() {
    for hosts in VERSIONS {
        let mut pair = pair();
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let mut datagram = datagram(hosts, &data(40));
        datagram[20] ^= 1;
        for part in [Part::udp(0, &datagram[..24], true), Part::udp(24, &datagram[24..], false)] {
            let packet = part.packet(hosts);
            let now = pair.now;
            let frame = RxFrame {
                checksum: linerate_stack::RxChecksum::Verified,
                ..RxFrame::plain(&packet, now)
            };
            pair.stack(Side::Left).handle_frame(now, frame);
        }
        assert_eq!(receive(&mut pair, Side::Left, left), Err(Error::WouldBlock));
        assert_eq!(pair.stack(Side::Left).counters().udp.in_checksum_errors, 1);
    }
}

//! Tests of the path MTU of datagrams and echoes, with true and forged errors of routers (RFC 1191,
//! RFC 8201).

use crate::{VERSIONS, answers, bind, data, pair, receive};
use linerate_stack::{Error, Fragmentation, UdpHandle};
use linerate_testkit::{Pair, Side};
use linerate_units::Duration;
use linerate_wire::{
    IcmpError, IcmpMessage, Icmpv6Error, Icmpv6Message, Ipv4Header, Ipv4Packet, Ipv6Header,
    Ipv6Quote, Protocol, Quote,
};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

/// Records the packets that the left host sends from now on.
fn record(pair: &mut Pair) -> Rc<RefCell<Vec<Vec<u8>>>> {
    let packets = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&packets);
    pair.observe(move |_, side, packet| {
        if side == Side::Left {
            seen.borrow_mut().push(packet.to_vec());
        }
    });
    packets
}

/// Returns an ICMP error of a router about the packet `sent` of the left host. It says that the
/// packet exceeds the MTU of the next hop, which is `mtu`.
fn too_big([left, _]: [IpAddr; 2], sent: &[u8], mtu: u32) -> Vec<u8> {
    let mut bytes = vec![0; 1_280];
    match left {
        IpAddr::V4(left) => {
            let router = Ipv4Addr::new(198, 51, 100, 1);
            let error = IcmpError::FragmentationNeeded { next_hop_mtu: mtu.try_into().unwrap() };
            let quote = Quote::of(sent).unwrap();
            let message = IcmpMessage::Error { error, quote };
            let header = Ipv4Header::new(router, left, Protocol::ICMP);
            let at = header.emit(message.length(), &mut bytes);
            let length = at + message.emit(&mut bytes[at..]);
            bytes.truncate(length);
        }
        IpAddr::V6(left) => {
            let router = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
            let error = Icmpv6Error::PacketTooBig { mtu };
            let message = Icmpv6Message::Error { error, quote: Ipv6Quote::of(sent).unwrap() };
            let header = Ipv6Header::new(router, left, Protocol::ICMPV6);
            let at = header.emit(message.length(), &mut bytes);
            let length = at + message.emit(&header, &mut bytes[at..]);
            bytes.truncate(length);
        }
    }
    bytes
}

fn send(pair: &mut Pair, socket: UdpHandle, hosts: [IpAddr; 2], length: usize) {
    let now = pair.now;
    let to = SocketAddr::new(hosts[1], 9);
    pair.stack(Side::Left).udp_send_to(now, socket, to, &data(length)).unwrap();
    pair.run_for(Duration::from_millis(5));
}

/// Removes the recorded packets, and returns their sizes in bytes.
fn sizes(packets: &RefCell<Vec<Vec<u8>>>) -> Vec<usize> {
    packets.borrow_mut().drain(..).map(|packet| packet.len()).collect()
}

#[test]
fn a_report_makes_later_fragments_smaller_until_it_expires() {
    for hosts in VERSIONS {
        let mut pair = pair();
        let packets = record(&mut pair);
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let right = bind(&mut pair, Side::Right, hosts[1], 9);
        send(&mut pair, left, hosts, 1_400);
        let sent = packets.borrow()[0].clone();
        answers(&mut pair, too_big(hosts, &sent, 1_300));
        assert_eq!(
            pair.stack(Side::Left).udp_take_error(left),
            Ok(None),
            "it is sent in fragments"
        );
        packets.borrow_mut().clear();
        send(&mut pair, left, hosts, 1_400);
        assert!(sizes(&packets).iter().all(|&size| size <= 1_300));
        for _ in 0..2 {
            assert_eq!(receive(&mut pair, Side::Right, right), Ok(data(1_400)));
        }
        pair.run_for(Duration::from_secs(600));
        packets.borrow_mut().clear();
        send(&mut pair, left, hosts, 1_400);
        assert_eq!(sizes(&packets).len(), 1, "the report has expired");
    }
}

/// RFC 1191 §3: routers send errors with their MTU only about packets with the DF flag. By default,
/// the host sets this flag, as Linux does.
#[test]
fn the_policy_of_a_socket_determines_df_and_what_happens_beyond_the_path_mtu() {
    for (fragmentation, dont_fragment, sent_beyond) in [
        (Fragmentation::AsNeeded, true, Ok(&[false, false][..])),
        (Fragmentation::Never, true, Err(Error::MessageTooLong { limit: 1_272 })),
        (Fragmentation::ByRouters, false, Ok(&[false, false][..])),
    ] {
        let hosts = VERSIONS[0];
        let mut pair = pair();
        let packets = record(&mut pair);
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let _right = bind(&mut pair, Side::Right, hosts[1], 9);
        send(&mut pair, left, hosts, 1_400);
        // This ICMP error changes the path MTU to its destination for all sockets of the host, and
        // not only for the socket that sent the datagram.
        let sent = packets.borrow_mut().remove(0);
        answers(&mut pair, too_big(hosts, &sent, 1_300));
        packets.borrow_mut().clear();
        pair.stack(Side::Left).udp_set_fragmentation(left, fragmentation).unwrap();
        let mut df_of = |length: usize| {
            let (now, to) = (pair.now, SocketAddr::new(hosts[1], 9));
            pair.stack(Side::Left).udp_send_to(now, left, to, &data(length))?;
            pair.run_for(Duration::from_millis(5));
            let sent = packets.borrow_mut().drain(..).collect::<Vec<_>>();
            assert!(sent.iter().all(|packet| packet.len() <= 1_300), "{fragmentation:?}");
            let header = |packet: &Vec<u8>| Ipv4Packet::parse(packet).unwrap().header;
            Ok(sent.iter().map(|packet| header(packet).dont_fragment).collect::<Vec<_>>())
        };
        assert_eq!(df_of(1_272), Ok(vec![dont_fragment]), "{fragmentation:?}");
        assert_eq!(df_of(1_273), sent_beyond.map(<[bool]>::to_vec), "{fragmentation:?}");
    }
}

/// RFC 8200 §5, RFC 8021: an IPv6 host never sends packets smaller than the minimum IPv6 MTU
/// because of an ICMP error. If the error has a smaller MTU, the host does not add a fragment
/// header to its packets either.
#[test]
fn fragments_of_ipv6_are_never_smaller_than_its_smallest_mtu() {
    let hosts = VERSIONS[1];
    let mut pair = pair();
    let packets = record(&mut pair);
    let left = bind(&mut pair, Side::Left, hosts[0], 9);
    let _right = bind(&mut pair, Side::Right, hosts[1], 9);
    send(&mut pair, left, hosts, 1_400);
    let sent = packets.borrow()[0].clone();
    answers(&mut pair, too_big(hosts, &sent, 600));
    packets.borrow_mut().clear();
    send(&mut pair, left, hosts, 8_000);
    assert_eq!(sizes(&packets)[0], 1_496, "a report below the minimum is discarded");
    answers(&mut pair, too_big(hosts, &sent, 1_280));
    packets.borrow_mut().clear();
    send(&mut pair, left, hosts, 8_000);
    assert_eq!(sizes(&packets)[0], 1_280);
    send(&mut pair, left, hosts, 1_232);
    assert_eq!(sizes(&packets), [1_280]);
}

/// An ICMP error about a fragment is accepted only if it quotes an identification that the host has
/// recently used. An attacker who is not on the path does not know these identifications.
#[test]
fn a_report_about_a_fragment_needs_its_identification() {
    let hosts = VERSIONS[1];
    let mut pair = pair();
    let packets = record(&mut pair);
    let left = bind(&mut pair, Side::Left, hosts[0], 9);
    let _right = bind(&mut pair, Side::Right, hosts[1], 9);
    send(&mut pair, left, hosts, 8_000);
    let sent = packets.borrow()[0].clone();
    packets.borrow_mut().clear();
    let mut forged = sent.clone();
    forged[47] ^= 1;
    answers(&mut pair, too_big(hosts, &forged, 1_280));
    send(&mut pair, left, hosts, 8_000);
    assert_eq!(sizes(&packets)[0], 1_496);
    answers(&mut pair, too_big(hosts, &sent, 1_280));
    send(&mut pair, left, hosts, 8_000);
    assert_eq!(sizes(&packets)[0], 1_280);
}

#[test]
fn reports_about_datagrams_of_no_socket_are_ignored() {
    for hosts in VERSIONS {
        let mut pair = pair();
        let packets = record(&mut pair);
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let _right = bind(&mut pair, Side::Right, hosts[1], 9);
        send(&mut pair, left, hosts, 1_400);
        let sent = packets.borrow()[0].clone();
        packets.borrow_mut().clear();
        let ports = if hosts[0].is_ipv4() { 20 } else { 40 };
        let mut other_port = sent.clone();
        other_port[ports + 1] ^= 1;
        // The host must ignore both errors. The first has an MTU that is not smaller than the
        // quoted packet, and the second quotes a port on which the host has no socket.
        answers(&mut pair, too_big(hosts, &sent, 1_500));
        answers(&mut pair, too_big(hosts, &other_port, 1_300));
        send(&mut pair, left, hosts, 1_400);
        assert_eq!(sizes(&packets).len(), 1);
    }
}

#[test]
fn reports_about_echoes_count_if_this_host_sent_them() {
    for hosts in VERSIONS {
        let mut pair = pair();
        let packets = record(&mut pair);
        let ping = |pair: &mut Pair, side: Side, length: usize| {
            let now = pair.now;
            let to = hosts[side.other() as usize];
            pair.stack(side).echo_send(now, to, 77, 1, &data(length)).unwrap();
            pair.run_for(Duration::from_millis(5));
        };
        for (side, mtu) in [(Side::Left, 1_400), (Side::Right, 1_300)] {
            packets.borrow_mut().clear();
            ping(&mut pair, side, 1_320);
            let sent = packets.borrow()[0].clone();
            let mut forged = sent.clone();
            let identifier = if hosts[0].is_ipv4() { 24 } else { 44 };
            forged[identifier] ^= 1;
            answers(&mut pair, too_big(hosts, &forged, 1_280));
            answers(&mut pair, too_big(hosts, &sent, mtu));
            packets.borrow_mut().clear();
            ping(&mut pair, side, 1_320);
            let expected = if side == Side::Left { 1 } else { 2 };
            assert_eq!(sizes(&packets).len(), expected, "{side:?}, {}", hosts[0]);
        }
    }
}

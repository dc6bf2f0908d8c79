//! Address resolution on Ethernet between two hosts.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{ConnectOptions, Event, ListenOptions};
use linerate_testkit::{Fate, Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{
    ArpOperation, ArpPacket, EtherType, EthernetFrame, EthernetHeader, MacAddress, VlanTags,
};
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

fn pair() -> Pair {
    Pair::new(&Setup::default(), |_, _| {})
}

/// Records every ARP packet from now on, with the host that sent it and the destination MAC address
/// of its frame.
fn watch_arp(pair: &mut Pair) -> Rc<RefCell<Vec<(Side, MacAddress, ArpPacket)>>> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&seen);
    pair.observe(move |_, side, bytes| {
        let frame = EthernetFrame::parse(bytes).unwrap();
        if frame.header.ether_type == EtherType::ARP {
            let packet = ArpPacket::parse(frame.payload).unwrap();
            log.borrow_mut().push((side, frame.header.destination, packet));
        }
    });
    seen
}

fn ping(pair: &mut Pair, destination: Ipv4Addr, sequence: u16) {
    let now = pair.now;
    pair.stack(Side::Left).echo_send(now, destination, 7, sequence, b"are you there?").unwrap();
}

fn echo_replies(pair: &mut Pair) -> Vec<u16> {
    let events = std::iter::from_fn(|| pair.stack(Side::Left).poll_event());
    events
        .filter_map(
            |event| if let Event::EchoReply(reply) = event { Some(reply.sequence) } else { None },
        )
        .collect()
}

fn arp_frame(destination: MacAddress, packet: &ArpPacket) -> Vec<u8> {
    let mut frame = vec![0; 60];
    let header = EthernetHeader {
        destination,
        source: packet.sender_mac,
        tags: VlanTags::NONE,
        ether_type: EtherType::ARP,
    };
    let at = header.emit(&mut frame);
    packet.emit(&mut frame[at..]);
    frame
}

#[test]
fn one_request_and_one_reply_resolve_both_sides() {
    let mut pair = pair();
    let arp = watch_arp(&mut pair);
    for sequence in 0..3 {
        ping(&mut pair, Side::Right.address(), sequence);
        pair.run_for(Duration::from_millis(10));
    }
    assert_eq!(echo_replies(&mut pair), [0, 1, 2]);
    let seen = arp.borrow();
    let request = &seen[0];
    assert_eq!(
        (request.0, request.1, request.2.operation),
        (Side::Left, MacAddress::BROADCAST, ArpOperation::Request)
    );
    let reply = &seen[1];
    assert_eq!((reply.0, reply.1), (Side::Right, Side::Left.mac()));
    assert_eq!(seen.len(), 2, "the request resolves its sender");
}

#[test]
fn packets_for_a_silent_neighbour_are_bounded_and_reported_after_three_seconds() {
    let mut pair = pair();
    let arp = watch_arp(&mut pair);
    for sequence in 0..3_000 {
        ping(&mut pair, Ipv4Addr::new(192, 0, 2, 77), sequence);
        pair.run_for(Duration::from_micros(10));
    }
    let dropped = pair.stack(Side::Left).counters().neighbor.queue_drops;
    assert!(dropped > 2_000, "{dropped}");
    pair.run_for(Duration::from_secs(4));
    assert_eq!(arp.borrow().len(), 3, "one request a second, three in all");

    let events: Vec<_> = std::iter::from_fn(|| pair.stack(Side::Left).poll_event()).collect();
    assert_eq!(events.len(), 64, "the queue of the application is bounded too");
    assert!(events.iter().all(
        |event| matches!(event, Event::EchoError(error) if error.reporter == Side::Left.address())
    ));
    assert_eq!(pair.stack(Side::Left).counters().neighbor.failures, 1);
}

#[test]
fn a_neighbour_that_changes_its_mac_address_is_followed() {
    let mut pair = pair();
    ping(&mut pair, Side::Right.address(), 0);
    pair.run_for(Duration::from_millis(1));
    let moved = MacAddress::new([2, 0, 0, 0, 0, 99]);
    let announcement = ArpPacket::request(moved, Side::Right.address(), Side::Right.address());
    let now = pair.now;
    pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &announcement));
    let destinations = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&destinations);
    pair.observe(move |_, side, bytes| {
        if side == Side::Left {
            log.borrow_mut().push(EthernetFrame::parse(bytes).unwrap().header.destination);
        }
    });
    pair.run_for(Duration::from_millis(1));
    ping(&mut pair, Side::Right.address(), 1);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(*destinations.borrow(), [moved]);
    assert_eq!(pair.stack(Side::Left).counters().neighbor.changes, 1);
}

#[test]
fn a_used_neighbour_is_probed_and_kept() {
    let mut pair = pair();
    let arp = watch_arp(&mut pair);
    for second in 0..100 {
        ping(&mut pair, Side::Right.address(), second);
        pair.run_for(Duration::from_secs(1));
    }
    assert_eq!(echo_replies(&mut pair).len(), 64);
    let requests: Vec<_> = arp
        .borrow()
        .iter()
        .filter(|(_, _, packet)| packet.operation == ArpOperation::Request)
        .copied()
        .collect();
    let unicast = requests.iter().filter(|(_, to, _)| !to.is_broadcast()).count();
    assert!((2..=8).contains(&unicast), "{requests:?}");
    assert_eq!(pair.stack(Side::Left).counters().neighbor.failures, 0);
}

#[test]
fn an_address_conflict_is_counted_and_ignored() {
    let mut pair = pair();
    let thief = MacAddress::new([2, 0, 0, 0, 0, 66]);
    let now = pair.now;
    for claim in [
        ArpPacket::request(thief, Side::Left.address(), Side::Left.address()),
        ArpPacket::request(thief, Side::Left.address(), Side::Right.address()),
    ] {
        pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &claim));
    }
    // Another host probes for the left host's address. The left host answers, and creates no entry
    // for the prober, whose address is unspecified.
    let probe = ArpPacket::request(thief, Ipv4Addr::UNSPECIFIED, Side::Left.address());
    pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &probe));
    let arp = watch_arp(&mut pair);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).counters().neighbor.conflicts, 2);
    assert_eq!(arp.borrow().len(), 1);
}

#[test]
fn a_sender_from_another_network_is_no_neighbour() {
    let mut pair = pair();
    let foreign = ArpPacket::request(
        MacAddress::new([2, 0, 0, 0, 0, 66]),
        Ipv4Addr::new(198, 51, 100, 1),
        Side::Left.address(),
    );
    let now = pair.now;
    pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &foreign));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).poll_timeout(), linerate_units::Instant::NEVER);
}

#[test]
fn an_invalid_sender_mac_address_is_an_error() {
    let mut pair = pair();
    let now = pair.now;
    for sender in [MacAddress::BROADCAST, MacAddress::new([1, 0, 94, 0, 0, 1]), MacAddress::ZERO] {
        let request = ArpPacket::request(sender, Side::Right.address(), Side::Left.address());
        let mut frame = arp_frame(Side::Left.mac(), &request);
        frame[6..12].copy_from_slice(&Side::Right.mac().octets());
        pair.host(Side::Left).link_mut().put(now, frame);
    }
    let arp = watch_arp(&mut pair);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(arp.borrow().len(), 0);
    let counted = pair.stack(Side::Left).counters().neighbor;
    assert_eq!((counted.in_errors, counted.in_packets), (3, 0));
    ping(&mut pair, Side::Right.address(), 0);
    pair.run_for(Duration::from_millis(10));
    assert_eq!(echo_replies(&mut pair), [0]);
    let counted = pair.stack(Side::Left).counters().neighbor;
    assert_eq!((counted.in_errors, counted.in_packets), (3, 1), "the reply to our request");
}

/// A bridge may send the host's own announcement back to it. The host must not take this for an
/// address conflict.
#[test]
fn our_own_announcement_is_no_conflict() {
    let mut pair = pair();
    let now = pair.now;
    let own = ArpPacket::request(Side::Left.mac(), Side::Left.address(), Side::Left.address());
    pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &own));
    pair.run_for(Duration::from_millis(1));
    let counted = pair.stack(Side::Left).counters().neighbor;
    assert_eq!((counted.in_packets, counted.conflicts), (1, 0));
}

/// RFC 1122 §3.2.1.3: a broadcast address belongs to no host, so an ARP request from it creates no
/// neighbour entry.
#[test]
fn a_broadcast_address_is_no_neighbour() {
    let mut pair = pair();
    let now = pair.now;
    let (foreign, all) = (MacAddress::new([2, 0, 0, 0, 0, 66]), Ipv4Addr::new(192, 0, 2, 255));
    let request = ArpPacket::request(foreign, all, Side::Left.address());
    pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &request));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).poll_timeout(), linerate_units::Instant::NEVER);
}

#[test]
fn replies_beyond_the_queue_limit_are_counted() {
    let mut pair = Pair::new(&Setup::default(), |_, config| config.limits.reply_bytes = 600);
    let now = pair.now;
    let request =
        ArpPacket::request(Side::Right.mac(), Side::Right.address(), Side::Left.address());
    for _ in 0..20 {
        pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &request));
    }
    pair.host(Side::Left).turn(now).unwrap();
    let counters = pair.stack(Side::Left).counters();
    assert_eq!(counters.neighbor.out_replies + counters.transmit.drops, 20);
    assert!((1..20).contains(&counters.neighbor.out_replies), "{counters}");
}

#[test]
fn packets_to_an_unresolved_neighbour_are_counted_as_discarded() {
    let mut pair = pair();
    for sequence in 0..3 {
        ping(&mut pair, Ipv4Addr::new(192, 0, 2, 77), sequence);
    }
    pair.run_for(Duration::from_secs(4));
    let counters = pair.stack(Side::Left).counters();
    assert_eq!((counters.neighbor.failures, counters.ip.out_discards), (1, 3));
}

#[test]
fn data_to_a_forgotten_neighbour_is_sent_once_it_is_resolved_again() {
    let mut pair = pair();
    let to = SocketAddr::new(Side::Right.address().into(), 80);
    let listener = pair.stack(Side::Right).tcp_listen(to, &ListenOptions::default()).unwrap();
    let now = pair.now;
    let client = pair.stack(Side::Left).tcp_connect(now, to, &ConnectOptions::default()).unwrap();
    pair.run_for(Duration::from_secs(1));
    let (server, _) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    // The network loses all frames of the right host, until the left host has removed its neighbour
    // entry for the right host.
    pair.set_filter(|_, side, _| (side == Side::Right).then_some(Fate::Lose));
    pair.run_for(Duration::from_secs(120));
    ping(&mut pair, Side::Right.address(), 1);
    pair.run_for(Duration::from_secs(10));
    pair.set_filter(|_, _, _| None);
    let (now, written) = (pair.now, [7; 4 * 1_448 + 600]);
    let taken = pair.stack(Side::Left).tcp_write(now, client, &written);
    assert_eq!(taken, Ok(written.len()));
    pair.turn();
    pair.stack(Side::Left).check();
    pair.run_for(Duration::from_secs(5));
    let (now, mut read) = (pair.now, [0; 4 * 1_448 + 601]);
    assert_eq!(pair.stack(Side::Right).tcp_read(now, server, &mut read), Ok(written.len()));
    assert_eq!(read[..written.len()], written);
}

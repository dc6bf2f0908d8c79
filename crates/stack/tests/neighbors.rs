//! Hosts find each other on Ethernet.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::Event;
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{
    ArpOperation, ArpPacket, EtherType, EthernetFrame, EthernetHeader, MacAddress, VlanTags,
};
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;

fn pair() -> Pair {
    Pair::new(&Setup::default(), |_, _| {})
}

/// Every ARP packet that anybody sends.
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
fn one_question_and_one_answer_teach_both_sides() {
    let mut pair = pair();
    let arp = watch_arp(&mut pair);
    for sequence in 0..3 {
        ping(&mut pair, Side::Right.address(), sequence);
        pair.run_for(Duration::from_millis(10));
    }
    assert_eq!(echo_replies(&mut pair), [0, 1, 2]);
    let seen = arp.borrow();
    let asked = &seen[0];
    assert_eq!(
        (asked.0, asked.1, asked.2.operation),
        (Side::Left, MacAddress::BROADCAST, ArpOperation::Request)
    );
    let answered = &seen[1];
    assert_eq!((answered.0, answered.1), (Side::Right, Side::Left.mac()));
    assert_eq!(seen.len(), 2, "the one that was asked knows who asked");
}

#[test]
fn packets_for_a_silent_neighbour_are_bounded_and_reported_after_three_seconds() {
    let mut pair = pair();
    let arp = watch_arp(&mut pair);
    for sequence in 0..1_000 {
        ping(&mut pair, Ipv4Addr::new(192, 0, 2, 77), sequence);
        pair.run_for(Duration::from_micros(10));
    }
    let dropped = pair.stack(Side::Left).counters().neighbor.queue_drops;
    assert!(dropped > 800, "{dropped}");
    pair.run_for(Duration::from_secs(4));
    assert_eq!(arp.borrow().len(), 3, "one question a second, three in all");

    let events: Vec<_> = std::iter::from_fn(|| pair.stack(Side::Left).poll_event()).collect();
    assert_eq!(events.len(), 64, "the queue of the application is bounded too");
    assert!(events.iter().all(
        |event| matches!(event, Event::EchoError(error) if error.reporter == Side::Left.address())
    ));
    assert_eq!(pair.stack(Side::Left).counters().neighbor.failures, 1);
}

#[test]
fn a_neighbour_that_moves_to_another_station_is_followed() {
    let mut pair = pair();
    ping(&mut pair, Side::Right.address(), 0);
    pair.run_for(Duration::from_millis(1));
    let moved = MacAddress::new([2, 0, 0, 0, 0, 99]);
    let announcement = ArpPacket::request(moved, Side::Right.address(), Side::Right.address());
    let now = pair.now;
    pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &announcement));
    let stations = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&stations);
    pair.observe(move |_, side, bytes| {
        if side == Side::Left {
            log.borrow_mut().push(EthernetFrame::parse(bytes).unwrap().header.destination);
        }
    });
    pair.run_for(Duration::from_millis(1));
    ping(&mut pair, Side::Right.address(), 1);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(*stations.borrow(), [moved]);
    assert_eq!(pair.stack(Side::Left).counters().neighbor.changes, 1);
}

#[test]
fn a_neighbour_is_probed_when_it_is_used_after_a_while_and_never_lost() {
    let mut pair = pair();
    let arp = watch_arp(&mut pair);
    for second in 0..100 {
        ping(&mut pair, Side::Right.address(), second);
        pair.run_for(Duration::from_secs(1));
    }
    assert_eq!(echo_replies(&mut pair).len(), 64);
    let questions: Vec<_> = arp
        .borrow()
        .iter()
        .filter(|(_, _, packet)| packet.operation == ArpOperation::Request)
        .copied()
        .collect();
    let alone = questions.iter().filter(|(_, to, _)| !to.is_broadcast()).count();
    assert!((2..=8).contains(&alone), "{questions:?}");
    assert_eq!(pair.stack(Side::Left).counters().neighbor.failures, 0);
}

#[test]
fn somebody_who_claims_our_address_is_counted_and_not_believed() {
    let mut pair = pair();
    let thief = MacAddress::new([2, 0, 0, 0, 0, 66]);
    let now = pair.now;
    for claim in [
        ArpPacket::request(thief, Side::Left.address(), Side::Left.address()),
        ArpPacket::request(thief, Side::Left.address(), Side::Right.address()),
    ] {
        pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &claim));
    }
    // A probe for our address is answered, and teaches nothing.
    let probe = ArpPacket::request(thief, Ipv4Addr::UNSPECIFIED, Side::Left.address());
    pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &probe));
    let arp = watch_arp(&mut pair);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).counters().neighbor.conflicts, 2);
    assert_eq!(arp.borrow().len(), 1);
}

#[test]
fn a_stranger_from_another_network_is_no_neighbour() {
    let mut pair = pair();
    let stranger = ArpPacket::request(
        MacAddress::new([2, 0, 0, 0, 0, 66]),
        Ipv4Addr::new(198, 51, 100, 1),
        Side::Left.address(),
    );
    let now = pair.now;
    pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &stranger));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).poll_timeout(), linerate_units::Instant::NEVER);
}

#[test]
fn a_station_that_can_be_none_teaches_nothing_and_counts_as_an_error() {
    let mut pair = pair();
    let now = pair.now;
    for nobody in [MacAddress::BROADCAST, MacAddress::new([1, 0, 94, 0, 0, 1]), MacAddress::ZERO] {
        let question = ArpPacket::request(nobody, Side::Right.address(), Side::Left.address());
        let mut frame = arp_frame(Side::Left.mac(), &question);
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
    assert_eq!((counted.in_errors, counted.in_packets), (3, 1), "the answer to our question");
}

/// Bridges bring it back to us.
#[test]
fn what_we_say_of_ourselves_is_no_conflict() {
    let mut pair = pair();
    let now = pair.now;
    let own = ArpPacket::request(Side::Left.mac(), Side::Left.address(), Side::Left.address());
    pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &own));
    pair.run_for(Duration::from_millis(1));
    let counted = pair.stack(Side::Left).counters().neighbor;
    assert_eq!((counted.in_packets, counted.conflicts), (1, 0));
}

/// RFC 1122 §3.2.1.3: no host has it.
#[test]
fn who_claims_the_address_of_all_hosts_is_no_neighbour() {
    let mut pair = pair();
    let now = pair.now;
    let (stranger, all) = (MacAddress::new([2, 0, 0, 0, 0, 66]), Ipv4Addr::new(192, 0, 2, 255));
    let question = ArpPacket::request(stranger, all, Side::Left.address());
    pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &question));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.stack(Side::Left).poll_timeout(), linerate_units::Instant::NEVER);
}

#[test]
fn answers_for_which_there_is_no_room_are_counted_as_dropped() {
    let mut pair = Pair::new(&Setup::default(), |_, config| config.limits.reply_bytes = 600);
    let now = pair.now;
    let question =
        ArpPacket::request(Side::Right.mac(), Side::Right.address(), Side::Left.address());
    for _ in 0..20 {
        pair.host(Side::Left).link_mut().put(now, arp_frame(MacAddress::BROADCAST, &question));
    }
    pair.host(Side::Left).turn(now).unwrap();
    let counters = pair.stack(Side::Left).counters();
    assert_eq!(counters.neighbor.out_replies + counters.transmit.drops, 20);
    assert!((1..20).contains(&counters.neighbor.out_replies), "{counters}");
}

#[test]
fn packets_that_are_given_up_are_counted() {
    let mut pair = pair();
    for sequence in 0..3 {
        ping(&mut pair, Ipv4Addr::new(192, 0, 2, 77), sequence);
    }
    pair.run_for(Duration::from_secs(4));
    let counters = pair.stack(Side::Left).counters();
    assert_eq!((counters.neighbor.failures, counters.ip.out_discards), (1, 3));
}

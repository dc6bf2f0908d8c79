//! Tests of echo requests between two linerate hosts, over a memory link.

use super::*;
use linerate_link::{MemoryConfig, MemoryLink, memory};
use linerate_stack::{ReportedError, Stack, StackConfig};
use linerate_wire::{IcmpError, IpCidr, MacAddress};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::thread;

const ASKING: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const ANSWERING: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const IPV6: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
];

fn host(address: IpAddr, link: MemoryLink) -> Host<MemoryLink> {
    let number = match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    };
    let mac = MacAddress::new([2, 0, 0, 0, 0, number]);
    let config = StackConfig::new(mac, IpCidr::new(address, 24).unwrap());
    Host::new(Stack::new(config, [number; 32]), link)
}

fn parameters(destination: IpAddr, count: u64) -> EchoParameters {
    EchoParameters {
        destination,
        count: Some(count),
        interval: Duration::ZERO,
        timeout: Duration::from_secs(60),
        size: 56,
        identifier: 7,
    }
}

/// Runs `host`, which answers echo requests, until `stop` is raised.
fn answer_until(mut host: Host<MemoryLink>, stop: &Interrupt) {
    let mut waiter = Waiter::new().unwrap();
    while !stop.is_raised() {
        let now = MonotonicClock.now();
        let turn = host.turn(now).unwrap();
        if !turn.more {
            waiter.wait(host.link_mut(), turn.next.min(now + SLICE)).unwrap();
        }
    }
}

#[test]
fn every_request_is_answered_with_its_data() {
    every_request_is_answered([ASKING, ANSWERING]);
}

#[test]
fn every_request_over_ipv6_is_answered_with_its_data() {
    every_request_is_answered(IPV6);
}

fn every_request_is_answered([own, destination]: [IpAddr; 2]) {
    let (near, far) = memory::pair(MemoryConfig::default()).unwrap();
    let (mut asking, answering) = (host(own, near), host(destination, far));
    let (stop, mut begun, mut answers) = (Interrupt::default(), 0, Vec::new());
    let tally = thread::scope(|scope| {
        scope.spawn(|| answer_until(answering, &stop));
        let (parameters, never) = (parameters(destination, 50), Interrupt::default());
        let tell = |answer: &Answer| answers.push(answer.clone());
        let tally = ping(&mut asking, &parameters, &never, || begun += 1, tell);
        stop.raise();
        tally
    });
    let tally = tally.unwrap();
    assert_eq!(begun, 1);
    assert_eq!((tally.sent, tally.received, tally.duplicates, tally.problems), (50, 50, 0, 0));
    for (answer, expected) in answers.iter().zip(1..) {
        let Answer::Reply { source, number, length, again, wrong_at, .. } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!((*source, *number, *length), (destination, expected, 64));
        assert_eq!((*again, *wrong_at), (false, None));
    }
}

#[test]
fn unanswered_requests_are_lost() {
    let (near, _far) = memory::pair(MemoryConfig::default()).unwrap();
    let hurried = EchoParameters { timeout: Duration::from_millis(1), ..parameters(ANSWERING, 3) };
    let tally =
        ping(&mut host(ASKING, near), &hurried, &Interrupt::default(), || (), |_| ()).unwrap();
    assert_eq!((tally.sent, tally.received, tally.loss_percent()), (3, 0, 100.0));
}

#[test]
fn an_interrupt_ends_the_series() {
    let (near, _far) = memory::pair(MemoryConfig::default()).unwrap();
    let endless = EchoParameters { count: None, ..parameters(ANSWERING, 1) };
    let interrupt = Interrupt::default();
    interrupt.raise();
    let tally = ping(&mut host(ASKING, near), &endless, &interrupt, || (), |_| ()).unwrap();
    assert_eq!(tally.sent, 1);
}

#[test]
fn an_invalid_destination_is_refused() {
    let (near, _far) = memory::pair(MemoryConfig::default()).unwrap();
    let mut host = host(ASKING, near);
    let mut refused = |parameters: EchoParameters| {
        let begun = || panic!("no request was sent");
        ping(&mut host, &parameters, &Interrupt::default(), begun, |_| ()).unwrap_err()
    };
    let error = refused(EchoParameters { size: 65_508, ..parameters(ANSWERING, 1) });
    assert!(
        matches!(error, ToolError::Refused(Error::MessageTooLong { limit: 65_507 })),
        "{error}"
    );
    let error = refused(parameters(Ipv4Addr::new(192, 0, 2, 1).into(), 1));
    assert!(matches!(error, ToolError::Refused(Error::NoRoute(_))), "{error}");
}

/// A host's clock does not advance during a turn. If request and reply pass in one turn, both could
/// get its start as their time, and the round-trip time would be zero.
#[test]
fn a_reply_in_the_turn_of_its_request_arrives_at_the_end_of_the_turn() {
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    let round_trip = |arrived, turned| {
        let mut tally = Tally::new(parameters(ANSWERING, 1), at(0));
        let sequence = tally.record_request(at(10));
        let reply = EchoReply {
            source: ANSWERING,
            identifier: 7,
            sequence,
            data: data(56),
            ttl: 64,
            arrived,
        };
        match reply_to(&mut tally, &reply, &turned, &reply.data) {
            Some(Answer::Reply { round_trip, .. }) => round_trip,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(round_trip(at(10), at(10)..at(17)), Duration::from_micros(7));
    assert_eq!(
        round_trip(at(15), at(30)..at(40)),
        Duration::from_micros(5),
        "the link's timestamp is more accurate"
    );
}

/// Replies to requests of another program must be ignored. A reply with corrupt data must be
/// reported with the position of the first wrong byte.
#[test]
fn foreign_replies_are_ignored_and_wrong_data_is_reported_by_position() {
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    let mut tally = Tally::new(parameters(ANSWERING, 9), at(0));
    let sequence = tally.record_request(at(0));
    let whole = data(56);
    let reply = |identifier, data: &[u8]| {
        let data = data.to_vec();
        Event::EchoReply(EchoReply {
            source: ANSWERING,
            identifier,
            sequence,
            data,
            ttl: 64,
            arrived: at(1),
        })
    };
    let problem = |identifier| {
        let error = IcmpError::FragmentationNeeded { next_hop_mtu: 0 };
        Event::EchoError(EchoError {
            reporter: ANSWERING,
            destination: ANSWERING,
            identifier,
            sequence,
            error: ReportedError::V4(error),
        })
    };
    let mut converted = |event| answer(&mut tally, event, &(at(2)..at(3)), &whole);
    assert_eq!((converted(reply(8, &whole)), converted(problem(8))), (None, None));
    for (came, expected) in [
        (whole.clone(), None),
        (whole[..55].to_vec(), Some(55)),
        ([&whole[..], b"!"].concat(), Some(56)),
        ([b"!", &whole[1..]].concat(), Some(0)),
    ] {
        let Some(Answer::Reply { wrong_at, length, .. }) = converted(reply(7, &came)) else {
            panic!()
        };
        assert_eq!((wrong_at, length), (expected, came.len() + 8));
    }
    assert!(matches!(converted(problem(7)), Some(Answer::Problem(_))));
    assert_eq!((tally.received, tally.duplicates, tally.problems), (1, 3, 1));
}

//! Tests of impaired links.

mod limits;

use super::*;
use crate::memory::{MemoryConfig, MemoryLink, pair_with_clock};
use crate::testing::{ReceivesFrames, check_readiness_is_passed_on};
use crate::{ManualClock, Waiter};
use linerate_stack::{Medium, RxChecksum};
use linerate_units::Duration;
use linerate_wire::{
    Ecn, EtherType, EthernetHeader, Ipv4Header, Ipv6Header, MacAddress, Protocol, TypeOfService,
    VlanTags,
};
use std::net::{Ipv4Addr, Ipv6Addr};

type Inner = MemoryLink<ManualClock>;

/// An impaired link, the link at its other end, and the clock of both.
struct Ends {
    ours: Impair<Inner, ManualClock>,
    theirs: Inner,
    clock: ManualClock,
}

fn ends(text: &str, seed: u64, capacity: usize) -> Ends {
    let clock = ManualClock::new(Instant::from_nanos(1_000));
    let config =
        MemoryConfig { capacity, checksum: RxChecksum::Verified, ..MemoryConfig::default() };
    let (left, theirs) = pair_with_clock(config, clock.clone()).unwrap();
    Ends {
        ours: Impair::with_clock(left, text.parse().unwrap(), seed, clock.clone()),
        theirs,
        clock,
    }
}

/// Sends one frame for each number in `numbers`. The frame contains the number. Returns how many
/// frames the link has taken.
fn send(link: &mut impl Link, numbers: impl IntoIterator<Item = u32>) -> usize {
    let mut numbers = numbers.into_iter();
    let fill = |bytes: &mut [u8]| {
        bytes[..100].fill(0);
        bytes[..4].copy_from_slice(&numbers.next()?.to_be_bytes());
        Some(TxFrame::whole(100))
    };
    link.transmit(usize::MAX, fill).unwrap()
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[..4].try_into().unwrap())
}

fn take(link: &mut impl Link) -> Vec<u32> {
    let mut numbers = Vec::new();
    while link.receive(7, |frame| numbers.push(number(frame.bytes))).unwrap() > 0 {}
    numbers
}

impl Ends {
    /// Sends frames with the numbers 0 to `count` − 1, one by one. Returns the numbers of the
    /// frames that arrive.
    fn sent(&mut self, count: u32) -> Vec<u32> {
        let mut arrived = Vec::new();
        for next in 0..count {
            assert_eq!(send(&mut self.ours, [next]), 1);
            arrived.extend(take(&mut self.theirs));
        }
        arrived
    }

    fn received(&mut self, count: u32) -> Vec<u32> {
        let mut arrived = Vec::new();
        for next in 0..count {
            send(&mut self.theirs, [next]);
            arrived.extend(take(&mut self.ours));
        }
        arrived
    }

    fn pass(&mut self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }
}

#[test]
fn without_impairments_every_frame_passes_unchanged_in_both_directions() {
    let mut ends = ends("", 1, 64);
    let all: Vec<_> = (0..500).collect();
    assert_eq!(ends.sent(500), all);
    assert_eq!(ends.received(500), all);
    assert_eq!(
        ends.ours.transmitted(),
        &ImpairCounters { offered: 500, ..ImpairCounters::default() }
    );
}

#[test]
fn a_seed_determines_the_affected_frames() {
    let text = "loss=5%,duplicate=5%,reorder=5%,corrupt=5%,delay=1ms,jitter=1ms";
    let run = |seed| {
        let mut ends = ends(text, seed, 64);
        let mut arrived = Vec::new();
        for next in 0..2_000 {
            send(&mut ends.ours, [next]);
            ends.clock.advance(Duration::from_micros(100));
            ends.theirs.receive(99, |frame| arrived.push(frame.bytes.to_vec())).unwrap();
        }
        (arrived, *ends.ours.transmitted())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

#[test]
fn each_impairment_affects_its_share_and_directions_are_independent() {
    let mut ends = ends("loss=1%,duplicate=2%,corrupt=5%,reorder=10%,rx.loss=50%", 1988, 64);
    let sent = ends.sent(10_000);
    let counted = *ends.ours.transmitted();
    let expected = ImpairCounters {
        offered: 10_000,
        lost: 105,
        too_long: 0,
        marked: 0,
        unmarkable: 0,
        duplicated: 201,
        corrupted: 462,
        reordered: 959,
        delayed: 0,
        overflowed: 0,
    };
    assert_eq!(counted, expected);
    assert_eq!(sent.len() as u64, counted.offered - counted.lost + counted.duplicated);
    ends.received(1_000);
    assert_eq!(ends.ours.received().lost, 505);
}

#[test]
fn a_burst_drops_consecutive_frames_and_keeps_the_proportion() {
    for percent in [1_u32, 20, 50, 100] {
        let mut ends = ends(&format!("loss={percent}%,loss-burst=5"), 11, 64);
        let arrived = ends.sent(20_000);
        let lost = u32::try_from(ends.ours.transmitted().lost).unwrap();
        assert_eq!(arrived.len() as u64, 20_000 - u64::from(lost));
        let expected = percent * 200;
        assert!(lost.abs_diff(expected) <= expected / 5, "{percent} %: {lost} lost");
        // The lost frames form bursts of five, and one burst can directly follow another. So
        // between two frames that arrived, the number of lost frames is zero or a multiple of five.
        let gaps = arrived.windows(2).map(|pair| pair[1] - pair[0] - 1);
        assert!(gaps.into_iter().all(|gap| gap % 5 == 0), "{percent} %");
    }
    assert_eq!(ends("loss=10%,loss-burst=1", 3, 64).sent(500), ends("loss=10%", 3, 64).sent(500));
}

#[test]
fn an_impairment_does_not_change_the_frames_that_another_affects() {
    let survivors = |text: &str| {
        let mut numbers = ends(text, 3, 64).sent(1_000);
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    let alone = survivors("loss=10%");
    assert!(alone.len() < 950);
    assert_eq!(survivors("loss=10%,duplicate=30%"), alone);
}

#[test]
fn both_copies_of_a_duplicated_frame_arrive_consecutively() {
    let mut ends = ends("duplicate=100%", 1, 64);
    assert_eq!(ends.sent(3), [0, 0, 1, 1, 2, 2]);
    assert_eq!(ends.received(3), [0, 0, 1, 1, 2, 2]);
}

#[test]
fn a_reordered_frame_is_overtaken_by_the_given_number() {
    let mut ends = ends("reorder=20%,reorder-by=2", 4, 64);
    let order = ends.sent(200);
    let aside = *ends.ours.transmitted();
    assert!(aside.reordered > 20);
    let mut later = order.clone();
    later.sort_unstable();
    later.dedup();
    assert_eq!(order.len(), later.len(), "nothing is lost or duplicated");
    for (place, &frame) in order.iter().enumerate() {
        // The number of frames that were sent after `frame` and arrived before it.
        let passed_by = order[..place].iter().filter(|&&other| other > frame).count();
        assert!(
            passed_by == 0 || passed_by >= 2,
            "frame {frame} was passed by {passed_by} in {order:?}"
        );
    }
    assert!(order.iter().zip(&later).filter(|(a, b)| a != b).count() > 20);
}

#[test]
fn a_held_frame_is_released_after_its_time() {
    let mut ends = ends("reorder=100%,reorder-within=5ms", 1, 64);
    assert!(ends.sent(1).is_empty());
    assert_eq!(ends.ours.next_deadline(), Instant::from_nanos(5_001_000));
    ends.pass(4);
    assert!(ends.sent(0).is_empty());
    ends.pass(1);
    // The link has no timer of its own: it passes on a frame whose time is over only when it is
    // called. This call of `receive` therefore passes the sent frame on to the peer. It returns no
    // frame itself, because the peer has sent none.
    assert!(take(&mut ends.ours).is_empty());
    assert_eq!(take(&mut ends.theirs), [0]);
    assert_eq!(ends.ours.next_deadline(), Instant::NEVER);
}

#[test]
fn a_delayed_frame_arrives_after_its_delay_with_that_time_stamp() {
    let mut ends = ends("delay=10ms", 1, 64);
    send(&mut ends.theirs, [1, 2]);
    assert!(take(&mut ends.ours).is_empty());
    assert_eq!(ends.ours.next_deadline(), Instant::from_nanos(10_001_000));
    ends.pass(9);
    assert!(take(&mut ends.ours).is_empty());
    ends.pass(7);
    let mut arrived = Vec::new();
    ends.ours.receive(9, |frame| arrived.push((number(frame.bytes), frame.arrived))).unwrap();
    let due = Instant::from_nanos(10_001_000);
    assert_eq!(arrived, [(1, due), (2, due)]);
}

#[test]
fn jitter_spreads_the_delay_and_keeps_the_order() {
    let mut ends = ends("delay=10ms,jitter=3ms", 5, 64);
    let mut stamps = Vec::new();
    for next in 0..100 {
        send(&mut ends.theirs, [next]);
        let sent = ends.clock.now();
        assert!(take(&mut ends.ours).is_empty());
        ends.pass(20);
        let mut wait = None;
        ends.ours.receive(1, |frame| wait = Some(frame.arrived.since(sent))).unwrap();
        stamps.push(wait.unwrap());
    }
    let (least, most) = (stamps.iter().min().unwrap(), stamps.iter().max().unwrap());
    assert!((Duration::from_millis(7)..Duration::from_micros(7_500)).contains(least), "{least}");
    assert!((Duration::from_micros(12_500)..Duration::from_millis(13)).contains(most), "{most}");

    send(&mut ends.theirs, 0..50);
    assert!(take(&mut ends.ours).is_empty());
    ends.pass(20);
    let (mut numbers, mut stamps) = (Vec::new(), Vec::new());
    let note = |frame: RxFrame<'_>| {
        numbers.push(number(frame.bytes));
        stamps.push(frame.arrived);
    };
    assert_eq!(ends.ours.receive(64, note), Ok(50));
    assert!(numbers.into_iter().eq(0..50) && stamps.is_sorted(), "{stamps:?}");
}

#[test]
fn a_corrupted_frame_differs_in_one_bit_and_is_unverified() {
    let mut ends = ends("corrupt=100%", 6, 64);
    let mut bits = std::collections::BTreeSet::new();
    for _ in 0..200 {
        send(&mut ends.theirs, [0]);
        ends.ours
            .receive(1, |frame| {
                assert_eq!(frame.checksum, RxChecksum::Unverified);
                let (byte, value) =
                    frame.bytes.iter().enumerate().find(|(_, byte)| **byte != 0).unwrap();
                assert_eq!(frame.bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
                bits.insert(byte * 8 + value.trailing_zeros() as usize);
            })
            .unwrap();
    }
    assert!(
        bits.len() > 150 && *bits.first().unwrap() < 20 && *bits.last().unwrap() > 780,
        "{bits:?}"
    );
    send(&mut ends.ours, [0]);
    let mut ones = 0;
    ends.theirs
        .receive(1, |frame| ones = frame.bytes.iter().map(|byte| byte.count_ones()).sum())
        .unwrap();
    assert_eq!(ones, 1);
}

/// Returns the header of an IP packet without payload, with this ECN field.
fn packet(ether_type: EtherType, ecn: Ecn) -> Vec<u8> {
    let type_of_service = TypeOfService::default().with_ecn(ecn);
    let mut bytes = vec![0; 40];
    let length = if ether_type == EtherType::IPV4 {
        let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        Ipv4Header { type_of_service, ..Ipv4Header::new(source, destination, Protocol::TCP) }
            .emit(0, &mut bytes)
    } else {
        let header = Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, Protocol::TCP);
        Ipv6Header { traffic_class: type_of_service, ..header }.emit(0, &mut bytes)
    };
    bytes.truncate(length);
    bytes
}

#[test]
fn ecn_capable_packets_are_marked_and_others_pass() {
    for medium in [Medium::Ip, Medium::Ethernet] {
        for ether_type in [EtherType::IPV4, EtherType::IPV6] {
            check_marks(medium, ether_type);
        }
    }
}

fn check_marks(medium: Medium, ether_type: EtherType) {
    let clock = ManualClock::new(Instant::from_nanos(1_000));
    let config = MemoryConfig { medium, ..MemoryConfig::default() };
    let (left, mut theirs) = pair_with_clock(config, clock.clone()).unwrap();
    let mut ours = Impair::with_clock(left, "mark=100%".parse().unwrap(), 1, clock);
    let at = medium.header_length();
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ce] {
        let fill = |bytes: &mut [u8]| {
            if at > 0 {
                let (destination, source) = (MacAddress::BROADCAST, MacAddress::ZERO);
                let tags = VlanTags::NONE;
                EthernetHeader { destination, source, tags, ether_type }.emit(bytes);
            }
            let packet = packet(ether_type, ecn);
            bytes[at..at + packet.len()].copy_from_slice(&packet);
            Some(TxFrame::whole(at + packet.len()))
        };
        assert_eq!(ours.transmit(1, fill), Ok(1));
    }
    let mut arrived = Vec::new();
    let seen = |frame: RxFrame<'_>| arrived.push(frame.bytes[at..].to_vec());
    theirs.receive(9, seen).unwrap();
    let expected = [Ecn::NotEct, Ecn::Ce, Ecn::Ce].map(|ecn| packet(ether_type, ecn));
    assert_eq!(arrived, expected, "{medium:?} {ether_type:?}");
    let counted =
        ImpairCounters { offered: 3, marked: 2, unmarkable: 1, ..ImpairCounters::default() };
    assert_eq!(ours.transmitted(), &counted);
}

#[test]
fn jitter_alone_delays_frames_too() {
    let mut ends = ends("jitter=1ms", 5, 64);
    ends.sent(20);
    assert_eq!(ends.ours.transmitted().delayed, 20);
}

#[test]
fn both_copies_of_a_delayed_frame_arrive_consecutively() {
    let mut ends = ends("duplicate=100%,delay=1ms", 1, 64);
    assert!(ends.sent(2).is_empty());
    ends.pass(1);
    assert_eq!(ends.sent(0), []);
    assert_eq!(send(&mut ends.ours, []), 0);
    assert_eq!(take(&mut ends.theirs), [0, 0, 1, 1]);
}

#[test]
fn a_delayed_reordered_frame_is_released_when_it_was_overtaken() {
    let mut ends = ends("delay=1ms,reorder=20%,reorder-by=2", 4, 64);
    send(&mut ends.theirs, 0..50);
    assert!(take(&mut ends.ours).is_empty());
    ends.pass(1);
    let arrived = take(&mut ends.ours);
    assert!(ends.ours.received().reordered > 5);
    assert!((0..45).all(|number| arrived.contains(&number)), "{arrived:?}");
    assert!(!arrived.is_sorted());
}

#[test]
fn a_due_frame_arrives_at_once() {
    let mut ends = ends("delay=1ms", 1, 64);
    send(&mut ends.theirs, [1]);
    ends.pass(5);
    let mut stamps = Vec::new();
    assert_eq!(ends.ours.receive(9, |frame| stamps.push(frame.arrived)), Ok(1));
    assert_eq!(stamps, [Instant::from_nanos(1_001_000)]);
}

#[test]
fn a_held_frame_is_stamped_with_the_time_of_its_release() {
    let mut ends = ends("reorder=100%,reorder-within=5ms", 1, 64);
    send(&mut ends.theirs, [1]);
    assert!(take(&mut ends.ours).is_empty());
    ends.pass(5);
    let mut stamps = Vec::new();
    assert_eq!(ends.ours.receive(9, |frame| stamps.push(frame.arrived)), Ok(1));
    assert_eq!(stamps, [Instant::from_nanos(5_001_000)]);
}

#[test]
fn an_idle_bottleneck_takes_its_time_for_the_next_frame() {
    let mut ends = ends("rate=8Mb/s", 1, 64);
    ends.pass(1_000);
    assert!(ends.sent(1).is_empty());
    ends.clock.advance(Duration::from_micros(99));
    assert!(take(&mut ends.ours).is_empty() && take(&mut ends.theirs).is_empty());
    ends.clock.advance(Duration::from_micros(1));
    assert!(take(&mut ends.ours).is_empty());
    assert_eq!(take(&mut ends.theirs), [0]);
}

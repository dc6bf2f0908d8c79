use super::*;
use crate::memory::{MemoryConfig, MemoryLink, pair_with_clock};
use crate::testing::{Brings, what_a_link_says_is_said_around_it};
use crate::{ManualClock, Waiter};
use linerate_stack::{Medium, RxChecksum};
use linerate_units::Duration;
use linerate_wire::{
    Ecn, EtherType, EthernetHeader, Ipv4Header, MacAddress, Protocol, TypeOfService, VlanTags,
};
use std::net::Ipv4Addr;

type Inner = MemoryLink<ManualClock>;

/// An impaired link, its plain other end, and the time.
struct Bench {
    ours: Impair<Inner, ManualClock>,
    theirs: Inner,
    clock: ManualClock,
}

fn bench(text: &str, seed: u64, capacity: usize) -> Bench {
    let clock = ManualClock::new(Instant::from_nanos(1_000));
    let config =
        MemoryConfig { capacity, checksum: RxChecksum::Verified, ..MemoryConfig::default() };
    let (left, theirs) = pair_with_clock(config, clock.clone()).unwrap();
    Bench {
        ours: Impair::with_clock(left, text.parse().unwrap(), seed, clock.clone()),
        theirs,
        clock,
    }
}

/// Frames that say their number.
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

impl Bench {
    /// What arrives of `count` frames that are sent one by one, in either direction.
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
    let mut bench = bench("", 1, 64);
    let all: Vec<_> = (0..500).collect();
    assert_eq!(bench.sent(500), all);
    assert_eq!(bench.received(500), all);
    assert_eq!(
        bench.ours.transmitted(),
        &ImpairCounters { offered: 500, ..ImpairCounters::default() }
    );
}

#[test]
fn the_same_seed_hits_the_same_frames_and_another_seed_others() {
    let text = "loss=5%,duplicate=5%,reorder=5%,corrupt=5%,delay=1ms,jitter=1ms";
    let run = |seed| {
        let mut bench = bench(text, seed, 64);
        let mut arrived = Vec::new();
        for next in 0..2_000 {
            send(&mut bench.ours, [next]);
            bench.clock.advance(Duration::from_micros(100));
            bench.theirs.receive(99, |frame| arrived.push(frame.bytes.to_vec())).unwrap();
        }
        (arrived, *bench.ours.transmitted())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

#[test]
fn each_impairment_hits_its_share_and_the_two_directions_are_hit_apart() {
    let mut bench = bench("loss=1%,duplicate=2%,corrupt=5%,reorder=10%,rx.loss=50%", 1988, 64);
    let sent = bench.sent(10_000);
    let counted = *bench.ours.transmitted();
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
    bench.received(1_000);
    assert_eq!(bench.ours.received().lost, 505);
}

#[test]
fn switching_one_impairment_on_does_not_change_whom_another_hits() {
    let survivors = |text: &str| {
        let mut numbers = bench(text, 3, 64).sent(1_000);
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    let alone = survivors("loss=10%");
    assert!(alone.len() < 950);
    assert_eq!(survivors("loss=10%,duplicate=30%"), alone);
}

#[test]
fn a_doubled_frame_comes_twice_in_a_row() {
    let mut bench = bench("duplicate=100%", 1, 64);
    assert_eq!(bench.sent(3), [0, 0, 1, 1, 2, 2]);
    assert_eq!(bench.received(3), [0, 0, 1, 1, 2, 2]);
}

#[test]
fn a_frame_that_is_set_aside_is_passed_by_as_many_as_were_asked_for() {
    let mut bench = bench("reorder=20%,reorder-by=2", 4, 64);
    let order = bench.sent(200);
    let aside = *bench.ours.transmitted();
    assert!(aside.reordered > 20);
    let mut later = order.clone();
    later.sort_unstable();
    later.dedup();
    assert_eq!(order.len(), later.len(), "nothing is lost or doubled");
    for (place, &frame) in order.iter().enumerate() {
        // Those that passed it are in front of it and were sent after it.
        let passed_by = order[..place].iter().filter(|&&other| other > frame).count();
        assert!(
            passed_by == 0 || passed_by >= 2,
            "frame {frame} was passed by {passed_by} in {order:?}"
        );
    }
    assert!(order.iter().zip(&later).filter(|(a, b)| a != b).count() > 20);
}

#[test]
fn a_frame_that_nobody_passes_goes_on_when_its_time_is_over() {
    let mut bench = bench("reorder=100%,reorder-within=5ms", 1, 64);
    assert!(bench.sent(1).is_empty());
    assert_eq!(bench.ours.next_deadline(), Instant::from_nanos(5_001_000));
    bench.pass(4);
    assert!(bench.sent(0).is_empty());
    bench.pass(1);
    // Receiving is enough to let it go.
    assert!(take(&mut bench.ours).is_empty());
    assert_eq!(take(&mut bench.theirs), [0]);
    assert_eq!(bench.ours.next_deadline(), Instant::NEVER);
}

#[test]
fn a_delayed_frame_arrives_after_its_delay_and_is_stamped_with_that_time() {
    let mut bench = bench("delay=10ms", 1, 64);
    send(&mut bench.theirs, [1, 2]);
    assert!(take(&mut bench.ours).is_empty());
    assert_eq!(bench.ours.next_deadline(), Instant::from_nanos(10_001_000));
    bench.pass(9);
    assert!(take(&mut bench.ours).is_empty());
    bench.pass(7);
    let mut arrived = Vec::new();
    bench.ours.receive(9, |frame| arrived.push((number(frame.bytes), frame.arrived))).unwrap();
    let due = Instant::from_nanos(10_001_000);
    assert_eq!(arrived, [(1, due), (2, due)]);
}

#[test]
fn jitter_spreads_the_delay_and_lets_nobody_overtake() {
    let mut bench = bench("delay=10ms,jitter=3ms", 5, 64);
    let mut stamps = Vec::new();
    for next in 0..100 {
        send(&mut bench.theirs, [next]);
        let sent = bench.clock.now();
        assert!(take(&mut bench.ours).is_empty());
        bench.pass(20);
        let mut wait = None;
        bench.ours.receive(1, |frame| wait = Some(frame.arrived.since(sent))).unwrap();
        stamps.push(wait.unwrap());
    }
    let (least, most) = (stamps.iter().min().unwrap(), stamps.iter().max().unwrap());
    assert!((Duration::from_millis(7)..Duration::from_micros(7_500)).contains(least), "{least}");
    assert!((Duration::from_micros(12_500)..Duration::from_millis(13)).contains(most), "{most}");

    send(&mut bench.theirs, 0..50);
    assert!(take(&mut bench.ours).is_empty());
    bench.pass(20);
    let (mut numbers, mut stamps) = (Vec::new(), Vec::new());
    let note = |frame: RxFrame<'_>| {
        numbers.push(number(frame.bytes));
        stamps.push(frame.arrived);
    };
    assert_eq!(bench.ours.receive(64, note), Ok(50));
    assert!(numbers.into_iter().eq(0..50) && stamps.is_sorted(), "{stamps:?}");
}

#[test]
fn a_damaged_frame_differs_in_one_bit_and_is_no_longer_called_verified() {
    let mut bench = bench("corrupt=100%", 6, 64);
    let mut bits = std::collections::BTreeSet::new();
    for _ in 0..200 {
        send(&mut bench.theirs, [0]);
        bench
            .ours
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
    send(&mut bench.ours, [0]);
    let mut ones = 0;
    bench
        .theirs
        .receive(1, |frame| ones = frame.bytes.iter().map(|byte| byte.count_ones()).sum())
        .unwrap();
    assert_eq!(ones, 1);
}

/// A packet of 20 bytes of header and nothing else, with these congestion bits.
fn packet(ecn: Ecn) -> [u8; 20] {
    let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
    let type_of_service = TypeOfService::default().with_ecn(ecn);
    let mut bytes = [0; 20];
    Ipv4Header { type_of_service, ..Ipv4Header::new(source, destination, Protocol::TCP) }
        .emit(0, &mut bytes);
    bytes
}

#[test]
fn a_congested_router_marks_what_may_be_marked_and_lets_the_rest_pass() {
    for medium in [Medium::Ip, Medium::Ethernet] {
        let clock = ManualClock::new(Instant::from_nanos(1_000));
        let config = MemoryConfig { medium, ..MemoryConfig::default() };
        let (left, mut theirs) = pair_with_clock(config, clock.clone()).unwrap();
        let mut ours = Impair::with_clock(left, "mark=100%".parse().unwrap(), 1, clock);
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ce] {
            let at = medium.header_length();
            let fill = |bytes: &mut [u8]| {
                if at > 0 {
                    let (destination, source) = (MacAddress::BROADCAST, MacAddress::ZERO);
                    let (tags, ether_type) = (VlanTags::NONE, EtherType::IPV4);
                    EthernetHeader { destination, source, tags, ether_type }.emit(bytes);
                }
                bytes[at..at + 20].copy_from_slice(&packet(ecn));
                Some(TxFrame::whole(at + 20))
            };
            assert_eq!(ours.transmit(1, fill), Ok(1));
        }
        let mut arrived = Vec::new();
        let seen =
            |frame: RxFrame<'_>| arrived.push(frame.bytes[medium.header_length()..].to_vec());
        theirs.receive(9, seen).unwrap();
        assert_eq!(arrived, [packet(Ecn::NotEct), packet(Ecn::Ce), packet(Ecn::Ce)], "{medium:?}");
        let counted =
            ImpairCounters { offered: 3, marked: 2, unmarkable: 1, ..ImpairCounters::default() };
        assert_eq!(ours.transmitted(), &counted);
    }
}

#[test]
fn jitter_alone_delays_frames_too() {
    let mut bench = bench("jitter=1ms", 5, 64);
    bench.sent(20);
    assert_eq!(bench.ours.transmitted().delayed, 20);
}

#[test]
fn a_delayed_frame_that_is_doubled_comes_twice_in_a_row() {
    let mut bench = bench("duplicate=100%,delay=1ms", 1, 64);
    assert!(bench.sent(2).is_empty());
    bench.pass(1);
    assert_eq!(bench.sent(0), []);
    assert_eq!(send(&mut bench.ours, []), 0);
    assert_eq!(take(&mut bench.theirs), [0, 0, 1, 1]);
}

#[test]
fn a_delayed_frame_that_is_set_aside_goes_on_when_it_was_passed() {
    let mut bench = bench("delay=1ms,reorder=20%,reorder-by=2", 4, 64);
    send(&mut bench.theirs, 0..50);
    assert!(take(&mut bench.ours).is_empty());
    bench.pass(1);
    let arrived = take(&mut bench.ours);
    assert!(bench.ours.received().reordered > 5);
    assert!((0..45).all(|number| arrived.contains(&number)), "{arrived:?}");
    assert!(!arrived.is_sorted());
}

#[test]
fn a_frame_that_is_due_when_it_is_looked_for_arrives_at_once() {
    let mut bench = bench("delay=1ms", 1, 64);
    send(&mut bench.theirs, [1]);
    bench.pass(5);
    let mut stamps = Vec::new();
    assert_eq!(bench.ours.receive(9, |frame| stamps.push(frame.arrived)), Ok(1));
    assert_eq!(stamps, [Instant::from_nanos(1_001_000)]);
}

#[test]
fn a_frame_that_was_set_aside_arrives_when_it_is_no_longer() {
    let mut bench = bench("reorder=100%,reorder-within=5ms", 1, 64);
    send(&mut bench.theirs, [1]);
    assert!(take(&mut bench.ours).is_empty());
    bench.pass(5);
    let mut stamps = Vec::new();
    assert_eq!(bench.ours.receive(9, |frame| stamps.push(frame.arrived)), Ok(1));
    assert_eq!(stamps, [Instant::from_nanos(5_001_000)]);
}

#[test]
fn a_line_that_was_idle_takes_its_time_for_the_next_frame_all_the_same() {
    let mut bench = bench("rate=8Mb/s", 1, 64);
    bench.pass(1_000);
    assert!(bench.sent(1).is_empty());
    bench.clock.advance(Duration::from_micros(99));
    assert!(take(&mut bench.ours).is_empty() && take(&mut bench.theirs).is_empty());
    bench.clock.advance(Duration::from_micros(1));
    assert!(take(&mut bench.ours).is_empty());
    assert_eq!(take(&mut bench.theirs), [0]);
}

#[test]
fn frames_that_are_set_aside_and_those_that_nobody_has_taken_count_as_under_way() {
    let mut aside = bench("reorder=100%,reorder-by=9,limit=2", 1, 64);
    assert!(aside.received(5).is_empty());
    assert_eq!((aside.ours.received().reordered, aside.ours.received().overflowed), (2, 3));
    let mut doubled = bench("duplicate=100%,limit=3", 1, 64);
    send(&mut doubled.theirs, 0..8);
    assert_eq!(take(&mut doubled.ours)[..4], [0, 0, 1, 1], "the first is not held up");
    assert!(doubled.ours.received().overflowed > 0);
}

#[test]
fn of_frames_that_fall_due_together_no_more_are_received_than_are_wanted() {
    let mut bench = bench("delay=1ms", 1, 64);
    send(&mut bench.theirs, 0..5);
    assert!(take(&mut bench.ours).is_empty());
    bench.pass(1);
    for (first, expected) in [(0, 2), (2, 2), (4, 1)] {
        let mut next = first;
        let received = bench.ours.receive(2, |frame| {
            assert_eq!(number(frame.bytes), next);
            next += 1;
        });
        assert_eq!(received, Ok(expected));
        let more = next < 5;
        assert_eq!((bench.ours.is_ready(), bench.ours.prepare_to_sleep()), (more, !more));
    }
}

/// A link that brings a super-frame of TCP, of which the segments have 100 bytes, twice, and then nothing.
fn joined() -> Brings {
    let mut bytes = packet(Ecn::NotEct).to_vec();
    bytes.resize(40 + 250, 0);
    let addresses = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
    Ipv4Header::new(addresses[0], addresses[1], Protocol::TCP).emit(270, &mut bytes);
    bytes[32] = 0x50;
    for (byte, number) in bytes[40..].iter_mut().zip(0..) {
        *byte = number;
    }
    Brings { frames: vec![bytes; 2], segment: std::num::NonZeroU16::new(100) }
}

#[test]
fn a_super_frame_is_cut_into_its_segments_and_those_beyond_the_budget_are_kept() {
    let mut link = Impair::with_clock(joined(), Impairments::default(), 1, ManualClock::default());
    let (mut data, mut lengths) = (Vec::new(), Vec::new());
    let mut receive = |budget| {
        link.receive(budget, |frame| {
            assert_eq!((frame.checksum, frame.segment), (RxChecksum::Verified, None));
            assert_eq!(frame.arrived, Instant::from_nanos(7));
            data.extend_from_slice(&frame.bytes[40..]);
            lengths.push(frame.bytes.len());
        })
    };
    assert_eq!([1, 1, 1, 1, 9, 9].map(&mut receive), [1, 1, 1, 1, 2, 0].map(Ok));
    assert_eq!(lengths, [140, 140, 90, 140, 140, 90]);
    assert!(data.into_iter().eq((0..250).chain(0..250)));
}

#[test]
fn nothing_is_left_to_a_link_that_is_impaired() {
    let link = Impair::with_clock(joined(), Impairments::default(), 1, ManualClock::default());
    assert_eq!(link.capabilities(), Capabilities::new(Medium::Ip, 1_500));
}

#[test]
fn what_the_link_inside_says_of_itself_is_said_of_it_impaired() {
    what_a_link_says_is_said_around_it(|link| Impair::new(link, Impairments::default(), 1));
}

#[test]
fn no_more_frames_are_under_way_than_the_limit_says_and_the_rest_is_counted() {
    let mut bench = bench("delay=1ms,limit=5", 1, 64);
    assert_eq!(send(&mut bench.ours, 0..8), 8);
    bench.pass(1);
    assert_eq!(send(&mut bench.ours, []), 0);
    assert_eq!(take(&mut bench.theirs), [0, 1, 2, 3, 4]);
    let counted = bench.ours.transmitted();
    assert_eq!(
        (counted.delayed, counted.overflowed),
        (5, 3),
        "what is thrown away is not under way"
    );
}

#[test]
fn a_frame_for_which_there_is_no_room_takes_no_time_on_the_line() {
    let mut bench = bench("rate=8Mb/s,limit=2", 1, 64);
    assert_eq!(send(&mut bench.ours, 0..5), 5);
    bench.clock.advance(Duration::from_micros(200));
    assert_eq!(send(&mut bench.ours, []), 0);
    assert_eq!(take(&mut bench.theirs), [0, 1]);
    send(&mut bench.ours, [5]);
    bench.clock.advance(Duration::from_micros(100));
    assert_eq!(send(&mut bench.ours, []), 0);
    assert_eq!(take(&mut bench.theirs), [5]);
}

#[test]
fn what_is_thrown_away_for_want_of_room_is_counted_as_nothing_else() {
    for (text, originals, overflowed) in
        [("limit=3", 2, 3), ("rate=80Gb/s,queue=99", 1, 3), ("reorder=100%,limit=3", 2, 3)]
    {
        let mut bench = bench(&format!("delay=1ms,duplicate=100%,corrupt=100%,{text}"), 1, 64);
        send(&mut bench.ours, 0..4);
        let counted = *bench.ours.transmitted();
        assert_eq!(
            (counted.delayed, counted.corrupted, counted.duplicated),
            (originals, originals, 1),
            "{text}"
        );
        assert_eq!(counted.overflowed, overflowed, "{text}");
    }
    let mut bench = bench("reorder=100%,reorder-by=9,duplicate=100%,corrupt=100%,limit=2", 1, 64);
    send(&mut bench.theirs, 0..4);
    assert_eq!(bench.ours.receive(64, |_| ()), Ok(1));
    let counted = *bench.ours.received();
    assert_eq!(
        (counted.reordered, counted.corrupted, counted.duplicated, counted.overflowed),
        (1, 1, 1, 3)
    );
}

#[test]
fn budgets_are_kept_and_nothing_is_left_behind() {
    let mut bench = bench("duplicate=100%", 1, 64);
    send(&mut bench.theirs, [1, 2]);
    assert_eq!(bench.ours.receive(1, |frame| assert_eq!(number(frame.bytes), 1)), Ok(1));
    assert!(!bench.ours.prepare_to_sleep(), "the copy is ready");
    assert_eq!(bench.ours.receive(2, |_| ()), Ok(2));
    assert_eq!(bench.ours.receive(9, |frame| assert_eq!(number(frame.bytes), 2)), Ok(1));
    assert_eq!(bench.ours.transmit(3, |_| Some(TxFrame::whole(60))), Ok(3));
    assert_eq!(bench.theirs.receive(9, |_| ()), Ok(6));
}

#[test]
fn frames_for_which_there_is_no_room_wait_and_the_link_says_what_it_waits_for() {
    let mut bench = bench("tx.delay=1ms", 1, 2);
    assert_eq!(send(&mut bench.ours, 0..5), 5, "a delayed frame needs no room yet");
    bench.pass(1);
    assert_eq!(send(&mut bench.ours, [9]), 0, "there is room for two, and three wait");
    assert_eq!(bench.ours.next_deadline(), Instant::NEVER);
    assert_eq!(take(&mut bench.theirs), [0, 1]);
    let mut waiter = Waiter::new().unwrap();
    assert!(waiter.wait(&mut bench.ours, Instant::NEVER).unwrap().link, "there is room");
    assert!(take(&mut bench.ours).is_empty());
    assert_eq!(take(&mut bench.theirs), [2, 3]);
}

#[test]
fn a_link_that_is_down_is_so_when_its_delayed_frames_have_arrived() {
    let mut bench = bench("delay=1ms", 1, 64);
    send(&mut bench.theirs, [1]);
    assert!(take(&mut bench.ours).is_empty());
    let Bench { mut ours, theirs, clock } = bench;
    drop(theirs);
    assert_eq!(ours.receive(9, |_| ()), Ok(0));
    clock.advance(Duration::from_millis(1));
    assert_eq!(ours.receive(9, |_| ()), Ok(1));
    assert_eq!(ours.receive(9, |_| ()), Err(LinkError::Down));
}

/// Frames of 100 bytes at 8 Mb/s: one in 100 us, and room for five behind the one that is leaving.
#[test]
fn a_line_lets_frames_through_one_after_the_other_and_its_queue_holds_so_many_bytes() {
    let mut bench = bench("rate=8Mb/s,queue=450,delay=1ms", 1, 64);
    assert_eq!(send(&mut bench.ours, 0..20), 20);
    let mut arrived = Vec::new();
    for _ in 0..100 {
        bench.clock.advance(Duration::from_micros(100));
        let mut none = std::iter::empty();
        let _ = send(&mut bench.ours, &mut none);
        let now = take(&mut bench.theirs);
        assert!(now.len() <= 1, "{now:?} at once");
        arrived.extend(now);
    }
    assert_eq!(arrived, [0, 1, 2, 3, 4]);
    assert_eq!(bench.ours.transmitted().overflowed, 15);
}

/// Frames of 100 bytes.
#[test]
fn frames_that_are_too_long_vanish_from_the_one_on_that_was_asked_for() {
    let mut wide = bench("longest=100", 1, 64);
    assert_eq!(wide.sent(20).len(), 20);
    let mut narrow = bench("tx.longest=99,tx.longest-after=5", 1, 64);
    assert_eq!(narrow.sent(20), [0, 1, 2, 3, 4]);
    assert_eq!(narrow.ours.transmitted().too_long, 15);
    assert_eq!(narrow.received(20).len(), 20);
}

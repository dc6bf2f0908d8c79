use super::super::delivery::DeliveryAccount;
use super::*;
use alloc::vec;
use alloc::vec::Vec;
use linerate_units::{Duration, Instant};
use proptest::prelude::*;

const START: SeqNum = SeqNum::new(u32::MAX - 1_000);

fn at(nanos: u64) -> SendRecord {
    DeliveryAccount::new(Instant::ZERO).record_sent(
        Instant::ZERO + Duration::from_nanos(nanos),
        false,
        false,
        0,
    )
}

fn again(nanos: u64) -> SendRecord {
    let mut send_record = at(nanos);
    send_record.again = true;
    send_record
}

fn block(left: u32, right: u32) -> SackBlock {
    SackBlock { left: START + left, right: START + right }
}

/// Five segments of a hundred bytes, each a burst of its own.
fn five() -> Scoreboard {
    let mut board = Scoreboard::new(START);
    for index in 0..5 {
        board.note_sent(START + index * 100, START + index * 100 + 100, at(u64::from(index)));
    }
    board
}

fn delivery() -> Delivery {
    Delivery::new(START)
}

#[test]
fn what_leaves_at_one_instant_is_one_stretch() {
    let mut board = Scoreboard::new(START);
    board.note_sent(START, START + 100, at(7));
    board.note_sent(START + 100, START + 200, at(7));
    board.note_sent(START + 200, START + 300, at(8));
    assert_eq!(board.sent_ranges.len(), 2);
    board.check(START, START + 300);
}

/// A host sends many segments at what its clock says is one time. What is sent again after new data is
/// the later of the two all the same, or the arrival of the new data would show it lost.
#[test]
fn what_leaves_again_is_later_than_new_data_of_the_same_instant() {
    let mut board = Scoreboard::new(START);
    board.note_sent(START, START + 100, at(0));
    board.note_sent(START + 100, START + 200, at(9));
    board.note_sent(START, START + 100, again(9));
    board.note_sent(START + 200, START + 300, at(9));
    let orders: Vec<u64> = board.sent_ranges.iter().map(|range| range.send_record.order).collect();
    assert_eq!(orders, [3, 2, 4]);
}

#[test]
fn a_named_block_is_news_once() {
    let mut board = five();
    let mut first = delivery();
    board.sack(block(200, 400), &mut first);
    assert_eq!((first.bytes, board.sacked(), board.in_flight()), (200, 200, 300));
    assert_eq!(first.newest.unwrap().end, START + 400);
    let mut second = delivery();
    board.sack(block(200, 400), &mut second);
    assert_eq!(second.bytes, 0);
    let mut third = delivery();
    board.acknowledge(START + 450, &mut third);
    assert_eq!((third.bytes, board.sacked()), (250, 0));
    board.check(START + 450, START + 500);
}

/// What a landing tells is what the scoreboard's own account of the same acknowledgement does.
#[test]
fn a_landing_tells_what_an_acknowledgement_of_the_same_number_does() {
    for ack in [100, 150, 200, 250, 499, 500].map(|offset| START + offset) {
        let (mut board, mut twin, mut news) = (five(), five(), delivery());
        twin.acknowledge(ack, &mut news);
        let landing = board.landing_until(ack).unwrap();
        assert_eq!(ack - landing.oldest.left, news.bytes);
        assert_eq!(Some(landing.oldest.send_record.sent), news.oldest_original);
        let newest = news.newest.unwrap();
        assert_eq!((landing.newest.send_record, ack), (newest.send_record, newest.end));
        assert!(!news.reordered);
        board.note_landing_until(ack);
        assert_eq!(board, twin, "{ack}");
        board.check(ack, START + 500);
    }
}

#[test]
fn what_was_sent_again_or_never_is_no_landing() {
    let mut board = five();
    board.note_sent(START + 200, START + 300, again(9));
    for (offset, lands) in [(100, true), (200, true), (201, false), (300, false), (500, false)] {
        assert_eq!(board.landing_until(START + offset).is_some(), lands, "{offset}");
    }
    board.note_landing_until(START + 200);
    assert_eq!(board.landing_until(START + 250), None);
    assert_eq!(five().landing_until(START + 501), None, "beyond all that has left");
    assert_eq!(Scoreboard::new(START).landing_until(START + 1), None);
}

#[test]
fn a_block_outside_the_flight_or_inside_out_means_nothing() {
    let mut board = five();
    let before = board.clone();
    // Of the last, half the circle away, one end lies after the flight, and the other before it.
    let half = 1 << 31;
    for (left, right) in [(0, 600), (500, 600), (300, 200), (100, 100), (half - 100, half + 500)] {
        board.sack(block(left, right), &mut delivery());
    }
    board.sack(SackBlock { left: START - 50, right: START + 50 }, &mut delivery());
    assert_eq!(board, before);
}

#[test]
fn what_is_lost_is_sent_again_in_order_and_then_is_on_its_way() {
    let mut board = five();
    board.sack(block(400, 500), &mut delivery());
    let lost = board.mark_lost(|range| {
        if range.right.after(START + 200) { Verdict::KeepAllFurther } else { Verdict::Lost }
    });
    assert_eq!((lost, board.lost(), board.in_flight()), (200, 200, 200));
    let next = board.next_lost().unwrap();
    assert_eq!((next.left, next.right), (START, START + 100));
    board.note_sent(START, START + 60, again(9));
    board.search_after(START + 60);
    let next = board.next_lost().unwrap();
    assert_eq!((next.left, next.right), (START + 60, START + 100));
    board.check(START, START + 500);
    board.forgive();
    assert_eq!((board.lost(), board.in_flight()), (0, 400));
}

#[test]
fn a_peer_that_forgets_what_it_had_is_noticed_and_not_believed() {
    let mut board = five();
    board.sack(block(100, 300), &mut delivery());
    assert!(!board.is_reneged());
    board.acknowledge(START + 100, &mut delivery());
    assert!(board.is_reneged());
    board.forget_sacks();
    assert_eq!((board.sacked(), board.lost()), (0, 200));
    board.check(START + 100, START + 500);
}

#[test]
fn a_peer_that_names_single_bytes_gets_no_more_room_than_there_is() {
    let mut board = Scoreboard::new(START);
    board.note_sent(START, START + 100_000, at(0));
    for byte in (0..100_000).step_by(2) {
        board.sack(block(byte, byte + 1), &mut delivery());
    }
    assert!(board.refused_blocks > 40_000);
    board.check(START, START + 100_000);
}

#[test]
fn bursts_beyond_the_limit_join_the_last_and_count_as_its_latest() {
    let mut board = Scoreboard::new(START);
    let bursts = u32::try_from(MOST_RANGES).unwrap() + 10;
    for index in 0..bursts {
        board.note_sent(START + index, START + index + 1, at(u64::from(index)));
    }
    assert_eq!(board.sent_ranges.len(), MOST_RANGES);
    assert_eq!(board.sent_ranges.back().unwrap().send_record.sent, at(u64::from(bursts) - 1).sent);
    board.check(START, START + bursts);
}

proptest! {
    /// Against an array of single numbers, each with its fate.
    #[test]
    fn a_scoreboard_is_a_fate_for_every_number(
        steps in prop::collection::vec((0_u8..6, 0_u32..60, 1_u32..60), 1..120),
    ) {
        let mut board = Scoreboard::new(START);
        let mut naive = vec![];
        let mut una = 0_u32;
        for (time, (kind, offset, length)) in steps.into_iter().enumerate() {
            let time = time as u64;
            let nxt = u32::try_from(naive.len()).unwrap();
            let left = una + offset;
            let right = left + length;
            let inside = right <= nxt;
            match kind {
                0 | 1 => {
                    board.note_sent(START + nxt, START + nxt + length, at(time));
                    naive.extend((0..length).map(|_| Fate::InFlight));
                }
                2 if inside => {
                    let mut news = delivery();
                    board.sack(block(left, right), &mut news);
                    let range = &mut naive[left as usize..right as usize];
                    let fresh = range.iter().filter(|&&fate| fate != Fate::Sacked).count();
                    prop_assert_eq!(news.bytes as usize, fresh);
                    range.fill(Fate::Sacked);
                }
                3 if left <= nxt => {
                    let mut news = delivery();
                    board.acknowledge(START + left, &mut news);
                    let range = &naive[una as usize..left as usize];
                    let fresh = range.iter().filter(|&&fate| fate != Fate::Sacked).count();
                    prop_assert_eq!(news.bytes as usize, fresh);
                    una = left;
                }
                4 => {
                    board.mark_lost(|range| {
                        if range.right.after(START + left) { Verdict::KeepAllFurther } else { Verdict::Lost }
                    });
                    let mut at = START + una;
                    for range in board.sent_ranges.iter() {
                        prop_assert_eq!(range.left, at);
                        at = range.right;
                        if !range.right.after(START + left) && range.fate == Fate::Lost {
                            let (from, to) = ((range.left - START) as usize, (range.right - START) as usize);
                            naive[from..to].fill(Fate::Lost);
                        }
                    }
                }
                5 if inside => {
                    board.note_sent(START + left, START + right, again(time));
                    for fate in &mut naive[left as usize..right as usize] {
                        if *fate == Fate::Lost {
                            *fate = Fate::InFlight;
                        }
                    }
                }
                _ => {}
            }
            board.check(START + una, START + u32::try_from(naive.len()).unwrap());
            let of = |fate| naive[una as usize..].iter().filter(|&&each| each == fate).count();
            prop_assert_eq!(board.sacked() as usize, of(Fate::Sacked));
            prop_assert_eq!(board.lost() as usize, of(Fate::Lost));
            let first = naive[una as usize..].iter().position(|&fate| fate == Fate::Lost);
            let found = board.next_lost().map(|range| (range.left - START - una) as usize);
            prop_assert_eq!(found, first);
        }
    }
}

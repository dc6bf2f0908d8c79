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

/// Returns a scoreboard with five segments of 100 bytes. Each of them was sent at another time, so
/// it is a range of its own.
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
fn data_sent_at_one_instant_form_one_range() {
    let mut board = Scoreboard::new(START);
    board.note_sent(START, START + 100, at(7));
    board.note_sent(START + 100, START + 200, at(7));
    board.note_sent(START + 200, START + 300, at(8));
    assert_eq!(board.sent_ranges.len(), 2);
    board.check(START, START + 300);
}

/// New data, a retransmission, and further new data are sent at the same time, in this order. The
/// orders of the ranges must reflect it. If the retransmission had an earlier order than the first
/// new data, the arrival of that data would mark the retransmission as lost.
#[test]
fn a_retransmission_is_later_than_new_data_of_the_same_instant() {
    let mut board = Scoreboard::new(START);
    board.note_sent(START, START + 100, at(0));
    board.note_sent(START + 100, START + 200, at(9));
    board.note_sent(START, START + 100, again(9));
    board.note_sent(START + 200, START + 300, at(9));
    let orders: Vec<u64> = board.sent_ranges.iter().map(|range| range.send_record.order).collect();
    assert_eq!(orders, [3, 2, 4]);
}

#[test]
fn a_sack_block_is_delivered_once() {
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

/// The fast path for data that arrives in order must report the same delivery, and leave the same
/// ranges, as the slow path, [`Scoreboard::acknowledge`].
#[test]
fn an_in_order_arrival_agrees_with_the_general_path() {
    for ack in [100, 150, 200, 250, 499, 500].map(|offset| START + offset) {
        let (mut board, mut twin, mut news) = (five(), five(), delivery());
        twin.acknowledge(ack, &mut news);
        let arrival = board.in_order_arrival_until(ack).unwrap();
        assert_eq!(ack - arrival.oldest.left, news.bytes);
        assert_eq!(Some(arrival.oldest.send_record.sent), news.oldest_original);
        let newest = news.newest.unwrap();
        assert_eq!((arrival.newest.send_record, ack), (newest.send_record, newest.end));
        assert!(!news.reordered);
        board.remove_until(ack);
        assert_eq!(board, twin, "{ack}");
        board.check(ack, START + 500);
    }
}

#[test]
fn retransmitted_or_unsent_data_are_no_in_order_arrival() {
    let mut board = five();
    board.note_sent(START + 200, START + 300, again(9));
    for (offset, is_in_order) in
        [(100, true), (200, true), (201, false), (300, false), (500, false)]
    {
        assert_eq!(board.in_order_arrival_until(START + offset).is_some(), is_in_order, "{offset}");
    }
    board.remove_until(START + 200);
    assert_eq!(board.in_order_arrival_until(START + 250), None);
    assert_eq!(five().in_order_arrival_until(START + 501), None, "beyond all data sent");
    assert_eq!(Scoreboard::new(START).in_order_arrival_until(START + 1), None);
}

#[test]
fn a_sack_block_outside_the_flight_or_reversed_is_ignored() {
    let mut board = five();
    let before = board.clone();
    // The last block lies half the sequence space away from the data in flight. By comparison of
    // sequence numbers, its left edge therefore lies after this data, and its right edge before it.
    let half = 1 << 31;
    for (left, right) in [(0, 600), (500, 600), (300, 200), (100, 100), (half - 100, half + 500)] {
        board.sack(block(left, right), &mut delivery());
    }
    board.sack(SackBlock { left: START - 50, right: START + 50 }, &mut delivery());
    assert_eq!(board, before);
}

#[test]
fn lost_ranges_are_retransmitted_in_order_and_then_in_flight() {
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
fn reneging_is_detected_and_sacks_are_discarded() {
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
fn sacks_of_single_bytes_are_limited_by_the_number_of_ranges() {
    let mut board = Scoreboard::new(START);
    board.note_sent(START, START + 100_000, at(0));
    for byte in (0..100_000).step_by(2) {
        board.sack(block(byte, byte + 1), &mut delivery());
    }
    assert!(board.refused_blocks > 40_000);
    board.check(START, START + 100_000);
}

#[test]
fn bursts_beyond_the_limit_join_the_last_range_with_the_latest_record() {
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
    /// Compares the scoreboard with an array that stores the state of each sequence number.
    #[test]
    fn the_scoreboard_agrees_with_a_fate_for_each_number(
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
                        if range.right.after(START + left) {
                            Verdict::KeepAllFurther
                        } else {
                            Verdict::Lost
                        }
                    });
                    let mut at = START + una;
                    for range in board.sent_ranges.iter() {
                        prop_assert_eq!(range.left, at);
                        at = range.right;
                        if !range.right.after(START + left) && range.fate == Fate::Lost {
                            let from = (range.left - START) as usize;
                            let to = (range.right - START) as usize;
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

use super::*;
use crate::keys::Keys;
use proptest::prelude::*;

const LIMITS: NeighborLimits = NeighborLimits { entries: 6, unresolved: 3, waiting_bytes: 400 };

fn neighbors() -> Neighbors {
    limited_neighbors(LIMITS)
}

fn limited_neighbors(limits: NeighborLimits) -> Neighbors {
    Neighbors::new(limits, Keys::new([5; 32]).table("neighbours"))
}

fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, host)
}

fn station(number: u8) -> MacAddress {
    MacAddress::new([2, 0, 0, 0, 0, number])
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Lets time pass up to `now`, and returns how many packets were given up.
fn pass_time(neighbors: &mut Neighbors, now: Instant) -> usize {
    core::iter::from_fn(|| neighbors.handle_timeout(now)).map(|packets| packets.len()).sum()
}

fn questions(neighbors: &mut Neighbors) -> Vec<Question> {
    core::iter::from_fn(|| neighbors.poll_question()).collect()
}

fn to_all(host: u8) -> Question {
    Question { address: address(host), station: None }
}

#[test]
fn packets_wait_for_the_answer_and_then_leave_in_order() {
    let mut neighbors = neighbors();
    assert_eq!(neighbors.lookup(at(0), address(1)), None);
    neighbors.wait(address(1), b"first");
    assert_eq!(neighbors.lookup(at(0), address(1)), None);
    neighbors.wait(address(1), b"second");
    assert_eq!(questions(&mut neighbors), [to_all(1)]);
    assert_eq!(neighbors.poll_released(), None);

    neighbors.learn(at(0), address(1), station(1), false);
    neighbors.check();
    assert_eq!(neighbors.poll_released(), Some((station(1), b"first".to_vec())));
    assert_eq!(neighbors.poll_released(), Some((station(1), b"second".to_vec())));
    assert!(!neighbors.wants_transmit());
    assert_eq!(neighbors.lookup(at(1), address(1)), Some(station(1)));
}

#[test]
fn no_more_waits_than_the_limit_and_the_rest_is_counted() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    for _ in 0..20 {
        neighbors.wait(address(1), &[0; 36]);
    }
    assert_eq!(neighbors.counted().queue_drops, 16);
    neighbors.check();
}

#[test]
fn a_question_is_asked_once_a_second_and_given_up_after_three() {
    let mut neighbors = neighbors();
    let mut asked = Vec::new();
    for now in (0..30).map(|tenth| Instant::ZERO + Duration::from_millis(100 * tenth)) {
        pass_time(&mut neighbors, now);
        neighbors.lookup(now, address(1));
        neighbors.wait(address(1), b"");
        asked.extend(questions(&mut neighbors).iter().map(|_| now));
    }
    assert_eq!(asked.len(), 3);
    assert_eq!(neighbors.counted().out_requests, 3);
    assert!(asked.windows(2).all(|pair| pair[1].since(pair[0]) >= INTERVAL));
    assert_eq!(pass_time(&mut neighbors, at(4)), 6, "what fitted the queue is given up");
    assert_eq!(neighbors.counted().failures, 1);
    assert_eq!(neighbors.poll_timeout(), Instant::NEVER);
}

#[test]
fn a_question_that_was_answered_before_it_left_is_not_asked() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    neighbors.learn(at(0), address(1), station(1), false);
    assert!(!neighbors.wants_transmit());
    assert_eq!(questions(&mut neighbors), []);
}

#[test]
fn to_doubt_a_neighbour_that_has_not_answered_yet_changes_nothing() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    neighbors.doubt(at(0), address(1));
    neighbors.check();
    assert_eq!(neighbors.lookup(at(0), address(1)), None);
    assert_eq!(questions(&mut neighbors), [to_all(1)]);
}

#[test]
fn to_doubt_a_neighbour_asks_for_it_unless_it_gave_a_sign_within_the_last_second() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), station(1), true);
    let before = neighbors.generation();
    let too_early = at(1) - Duration::from_nanos(1);
    neighbors.doubt(too_early, address(1));
    assert_eq!(neighbors.lookup(too_early, address(1)), Some(station(1)));
    assert_eq!((neighbors.generation(), questions(&mut neighbors)), (before, Vec::new()));
    neighbors.doubt(at(1), address(1));
    assert!(neighbors.generation() > before, "users are told to look again");
    assert_eq!(neighbors.lookup(at(1), address(1)), Some(station(1)));
    assert_eq!(questions(&mut neighbors).len(), 1);
}

#[test]
fn what_nobody_asked_for_makes_no_entry_but_changes_one() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), station(1), false);
    assert_eq!(neighbors.lookup(at(0), address(1)), None);
    neighbors.learn(at(0), address(1), station(1), false);
    assert_eq!(neighbors.lookup(at(0), address(1)), Some(station(1)));

    let before = neighbors.generation();
    neighbors.learn(at(1), address(1), station(9), false);
    assert!(neighbors.generation() > before);
    assert_eq!(neighbors.lookup(at(1), address(1)), Some(station(9)));
    assert_eq!(neighbors.counted().changes, 1);
}

/// Or each sign of a neighbour would have every connection look for its way anew.
#[test]
fn a_sign_of_the_station_that_is_known_is_no_change() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    let before = neighbors.generation();
    neighbors.learn(at(0), address(1), station(1), false);
    neighbors.learn(at(1), address(1), station(1), false);
    assert_eq!((neighbors.generation(), neighbors.counted().changes), (before, 0));
}

#[test]
fn who_has_given_a_sign_has_all_questions_before_it_again() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    pass_time(&mut neighbors, at(2));
    assert_eq!(neighbors.entries.iter().map(|(_, entry)| entry.asked).collect::<Vec<_>>(), [2]);
    neighbors.learn(at(2), address(1), station(1), false);
    pass_time(&mut neighbors, at(33));
    for now in [33, 35, 37] {
        pass_time(&mut neighbors, at(now));
        assert_eq!(neighbors.lookup(at(now), address(1)), Some(station(1)), "at {now} s");
    }
    pass_time(&mut neighbors, at(39));
    assert_eq!(neighbors.lookup(at(39), address(1)), None);
}

#[test]
fn a_neighbour_in_use_is_probed_alone_and_then_before_all() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), station(1), true);
    assert_eq!(neighbors.lookup(at(29), address(1)), Some(station(1)));
    assert_eq!(questions(&mut neighbors), []);
    let before = neighbors.generation();
    pass_time(&mut neighbors, at(31));
    assert!(neighbors.generation() > before, "users are told to look again");

    assert_eq!(neighbors.lookup(at(31), address(1)), Some(station(1)));
    let alone = Question { address: address(1), station: Some(station(1)) };
    for (now, question) in [(31, alone), (33, alone), (35, to_all(1))] {
        pass_time(&mut neighbors, at(now));
        assert_eq!(questions(&mut neighbors), [question]);
        assert_eq!(neighbors.lookup(at(now), address(1)), Some(station(1)));
    }
    pass_time(&mut neighbors, at(37));
    assert_eq!(neighbors.lookup(at(37), address(1)), None);
    assert_eq!(neighbors.counted().failures, 1);
}

#[test]
fn a_neighbour_that_nobody_uses_is_forgotten_without_a_question() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), station(1), true);
    pass_time(&mut neighbors, at(31));
    pass_time(&mut neighbors, at(92));
    neighbors.check();
    assert_eq!((neighbors.table.len(), neighbors.counted().out_requests), (0, 0));
}

#[test]
fn a_full_table_forgets_the_unused_first_and_then_the_longest_unused() {
    let mut neighbors = neighbors();
    for host in 1..=6 {
        neighbors.learn(at(0), address(host), station(host), true);
    }
    for host in [1, 2, 3, 5, 6] {
        neighbors.lookup(at(1), address(host));
    }
    neighbors.learn(at(1), address(7), station(7), true);
    assert_eq!(neighbors.table.get(address(4)), None);
    neighbors.lookup(at(2), address(7));
    neighbors.learn(at(2), address(8), station(8), true);
    assert_eq!(neighbors.table.get(address(1)), None);
    neighbors.check();
    assert_eq!(neighbors.counted().table_overflows, 2);
}

/// Who remembers it would speak to a station that is gone for ever.
#[test]
fn users_are_told_of_a_neighbour_that_is_forgotten_and_not_of_one_that_never_answered() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), station(1), true);
    pass_time(&mut neighbors, at(31));
    neighbors.lookup(at(31), address(1));
    let before = neighbors.generation();
    for now in [33, 35, 37] {
        pass_time(&mut neighbors, at(now));
    }
    assert_eq!(neighbors.table.len(), 0);
    assert!(neighbors.generation() > before, "it was known");

    let before = neighbors.generation();
    neighbors.lookup(at(40), address(2));
    for now in [42, 44, 46] {
        pass_time(&mut neighbors, at(now));
    }
    assert_eq!(
        (neighbors.table.len(), neighbors.generation()),
        (0, before),
        "nobody had an answer"
    );
}

#[test]
fn a_question_that_never_left_is_forgotten_with_its_neighbour() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    for now in [2, 4, 6] {
        pass_time(&mut neighbors, at(now));
    }
    assert_eq!((neighbors.table.len(), neighbors.wants_transmit()), (0, false));
}

#[test]
fn who_was_looked_up_once_is_remembered_longer_than_who_never_was() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), station(1), true);
    neighbors.lookup(at(0), address(1));
    for host in 2..=7 {
        neighbors.learn(at(1), address(host), station(host), true);
    }
    neighbors.check();
    assert_eq!(
        (neighbors.table.get(address(1)).is_some(), neighbors.table.get(address(2))),
        (true, None)
    );
}

#[test]
fn packets_of_a_neighbour_that_makes_room_are_dropped_and_counted() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    neighbors.wait(address(1), b"first");
    neighbors.wait(address(1), b"second");
    neighbors.learn(at(0), address(1), station(1), false);
    for host in 2..=6 {
        neighbors.learn(at(0), address(host), station(host), true);
        neighbors.lookup(at(0), address(host));
    }
    let before = neighbors.generation();
    questions(&mut neighbors);
    neighbors.learn(at(0), address(7), station(7), true);
    neighbors.check();
    assert_eq!((neighbors.table.get(address(1)), neighbors.counted().queue_drops), (None, 2));
    assert!(neighbors.generation() > before && !neighbors.wants_transmit());
    assert_eq!(neighbors.poll_released(), None);
}

#[test]
fn there_is_room_for_a_known_neighbour_beside_all_that_may_be_asked_for() {
    let mut neighbors = limited_neighbors(NeighborLimits { entries: 2, ..LIMITS });
    neighbors.learn(at(0), address(1), station(1), true);
    for host in 10..=12 {
        neighbors.lookup(at(0), address(host));
    }
    neighbors.check();
    assert_eq!(neighbors.lookup(at(0), address(1)), Some(station(1)));
    neighbors.learn(at(0), address(2), station(2), true);
    neighbors.check();
    assert_eq!((neighbors.table.get(address(1)), neighbors.table.len()), (None, 4));
}

#[test]
fn invented_addresses_do_not_push_out_known_neighbours() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), station(1), true);
    for host in 10..60 {
        assert_eq!(neighbors.lookup(at(0), address(host)), None);
        neighbors.wait(address(host), b"reply");
    }
    let refused = 50 - LIMITS.unresolved as u64;
    let counted = neighbors.counted();
    assert_eq!(
        (counted.table_overflows, counted.queue_drops),
        (refused, refused),
        "none of it is forgotten"
    );
    assert_eq!(questions(&mut neighbors).len(), LIMITS.unresolved);
    assert_eq!(neighbors.lookup(at(0), address(1)), Some(station(1)));
    neighbors.check();
}

proptest! {
    /// Whatever happens in whatever order, the invariants hold, and while there is room for all, no
    /// neighbour is asked for twice within a second.
    #[test]
    fn questions_stay_a_second_apart(
        roomy: bool,
        steps in prop::collection::vec((0_u8..5, 1_u8..10, 0_u64..1_200), 1..200),
    ) {
        let entries = if roomy { 20 } else { LIMITS.entries };
        let mut neighbors = limited_neighbors(NeighborLimits { entries, ..LIMITS });
        let mut asked = [None::<Instant>; 10];
        let mut now = Instant::ZERO;
        for (step, host, wait) in steps {
            match step {
                0 => {
                    if neighbors.lookup(now, address(host)).is_none() {
                        neighbors.wait(address(host), &[0; 40]);
                    }
                }
                1 => neighbors.learn(now, address(host), station(host), false),
                2 => neighbors.learn(now, address(host), station(host + 10), true),
                3 => while neighbors.poll_released().is_some() {},
                _ => {
                    now += Duration::from_millis(wait * wait / 40);
                    pass_time(&mut neighbors, now);
                }
            }
            neighbors.check();
            for question in questions(&mut neighbors) {
                let last = asked[usize::from(question.address.octets()[3])].replace(now);
                if let Some(last) = last {
                    // Timers are late by less than a tick, never early.
                    prop_assert!(!roomy || now.since(last) >= INTERVAL, "{question:?}");
                }
            }
        }
    }
}

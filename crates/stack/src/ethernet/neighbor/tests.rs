use super::*;
use crate::keys::Keys;
use proptest::prelude::*;

const LIMITS: NeighborLimits = NeighborLimits { entries: 6, unresolved: 3, waiting_bytes: 400 };

fn neighbors() -> Neighbors {
    limited_neighbors(LIMITS)
}

fn limited_neighbors(limits: NeighborLimits) -> Neighbors {
    let keys = Keys::new([5; 32]);
    Neighbors::new(limits, keys.table("neighbours"), Draws::new(&keys, "reachable times"), 0)
}

fn address(host: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, host])
}

fn mac(number: u8) -> MacAddress {
    MacAddress::new([2, 0, 0, 0, 0, number])
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Runs all timers up to `now`. Returns the number of queued packets that were dropped because
/// their neighbours did not answer.
fn advance_clock(neighbors: &mut Neighbors, now: Instant) -> usize {
    let due = |neighbors: &mut Neighbors| {
        let index = neighbors.take_due(now)?;
        Some(neighbors.end_state(now, index).queued.len())
    };
    core::iter::from_fn(|| due(neighbors)).sum()
}

fn requests(neighbors: &mut Neighbors) -> Vec<NeighborRequest> {
    core::iter::from_fn(|| neighbors.poll_request()).collect()
}

fn to_all(host: u8) -> NeighborRequest {
    NeighborRequest { address: address(host), mac: None }
}

#[test]
fn queued_packets_leave_in_order_after_resolution() {
    let mut neighbors = neighbors();
    assert_eq!(neighbors.lookup(at(0), address(1)), None);
    neighbors.enqueue(address(1), b"first");
    assert_eq!(neighbors.lookup(at(0), address(1)), None);
    neighbors.enqueue(address(1), b"second");
    assert_eq!(requests(&mut neighbors), [to_all(1)]);
    assert_eq!(neighbors.poll_released(), None);

    neighbors.learn(at(0), address(1), mac(1), false);
    neighbors.check();
    assert_eq!(neighbors.poll_released(), Some((mac(1), b"first".to_vec())));
    assert_eq!(neighbors.poll_released(), Some((mac(1), b"second".to_vec())));
    assert!(!neighbors.wants_transmit());
    assert_eq!(neighbors.lookup(at(1), address(1)), Some(mac(1)));
}

#[test]
fn packets_beyond_the_queue_limit_are_counted() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    for _ in 0..20 {
        neighbors.enqueue(address(1), &[0; 36]);
    }
    assert_eq!(neighbors.counters().queue_drops, 16);
    neighbors.check();
}

#[test]
fn requests_are_a_second_apart_and_end_after_three() {
    let mut neighbors = neighbors();
    let mut sent = Vec::new();
    for now in (0..30).map(|tenth| Instant::ZERO + Duration::from_millis(100 * tenth)) {
        advance_clock(&mut neighbors, now);
        neighbors.lookup(now, address(1));
        neighbors.enqueue(address(1), b"");
        sent.extend(requests(&mut neighbors).iter().map(|_| now));
    }
    assert_eq!(sent.len(), 3);
    assert_eq!(neighbors.counters().out_requests, 3);
    assert!(sent.windows(2).all(|pair| pair[1].since(pair[0]) >= INTERVAL));
    assert_eq!(advance_clock(&mut neighbors, at(4)), 6, "the queued packets are dropped");
    assert_eq!(neighbors.counters().failures, 1);
    assert_eq!(neighbors.poll_timeout(), Instant::NEVER);
}

#[test]
fn an_answer_cancels_a_pending_request() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    neighbors.learn(at(0), address(1), mac(1), false);
    assert!(!neighbors.wants_transmit());
    assert_eq!(requests(&mut neighbors), []);
}

#[test]
fn suspecting_an_unresolved_neighbour_changes_nothing() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    neighbors.suspect(at(0), address(1));
    neighbors.check();
    assert_eq!(neighbors.lookup(at(0), address(1)), None);
    assert_eq!(requests(&mut neighbors), [to_all(1)]);
}

#[test]
fn suspecting_a_neighbour_probes_it_unless_confirmed_within_a_second() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), mac(1), true);
    let before = neighbors.generation();
    let too_early = at(1) - Duration::from_nanos(1);
    neighbors.suspect(too_early, address(1));
    assert_eq!(neighbors.lookup(too_early, address(1)), Some(mac(1)));
    assert_eq!((neighbors.generation(), requests(&mut neighbors)), (before, Vec::new()));
    neighbors.suspect(at(1), address(1));
    assert!(neighbors.generation() > before, "users repeat their lookup");
    assert_eq!(neighbors.lookup(at(1), address(1)), Some(mac(1)));
    assert_eq!(requests(&mut neighbors).len(), 1);
}

#[test]
fn an_unsolicited_packet_updates_an_entry_but_creates_none() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), mac(1), false);
    assert_eq!(neighbors.lookup(at(0), address(1)), None);
    neighbors.learn(at(0), address(1), mac(1), false);
    assert_eq!(neighbors.lookup(at(0), address(1)), Some(mac(1)));

    let before = neighbors.generation();
    neighbors.learn(at(1), address(1), mac(9), false);
    assert!(neighbors.generation() > before);
    assert_eq!(neighbors.lookup(at(1), address(1)), Some(mac(9)));
    assert_eq!(neighbors.counters().changes, 1);
}

/// A packet that confirms the known MAC address of a neighbour leaves the generation unchanged. A
/// new generation would make every connection repeat its route lookup.
#[test]
fn confirming_a_known_mac_address_keeps_the_generation() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    let before = neighbors.generation();
    neighbors.learn(at(0), address(1), mac(1), false);
    neighbors.learn(at(1), address(1), mac(1), false);
    assert_eq!((neighbors.generation(), neighbors.counters().changes), (before, 0));
}

#[test]
fn confirmation_resets_the_request_count() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    advance_clock(&mut neighbors, at(2));
    assert_eq!(
        neighbors.entries.iter().map(|(_, entry)| entry.requests_sent).collect::<Vec<_>>(),
        [2]
    );
    neighbors.learn(at(2), address(1), mac(1), false);
    advance_clock(&mut neighbors, at(33));
    for now in [33, 35, 37] {
        advance_clock(&mut neighbors, at(now));
        assert_eq!(neighbors.lookup(at(now), address(1)), Some(mac(1)), "at {now} s");
    }
    advance_clock(&mut neighbors, at(39));
    assert_eq!(neighbors.lookup(at(39), address(1)), None);
}

#[test]
fn a_neighbour_in_use_is_probed_by_unicast_and_then_by_broadcast() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), mac(1), true);
    assert_eq!(neighbors.lookup(at(29), address(1)), Some(mac(1)));
    assert_eq!(requests(&mut neighbors), []);
    let before = neighbors.generation();
    advance_clock(&mut neighbors, at(31));
    assert!(neighbors.generation() > before, "users repeat their lookup");

    assert_eq!(neighbors.lookup(at(31), address(1)), Some(mac(1)));
    let alone = NeighborRequest { address: address(1), mac: Some(mac(1)) };
    for (now, request) in [(31, alone), (33, alone), (35, to_all(1))] {
        advance_clock(&mut neighbors, at(now));
        assert_eq!(requests(&mut neighbors), [request]);
        assert_eq!(neighbors.lookup(at(now), address(1)), Some(mac(1)));
    }
    advance_clock(&mut neighbors, at(37));
    assert_eq!(neighbors.lookup(at(37), address(1)), None);
    assert_eq!(neighbors.counters().failures, 1);
}

#[test]
fn an_unused_neighbour_is_removed_without_a_request() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), mac(1), true);
    advance_clock(&mut neighbors, at(31));
    advance_clock(&mut neighbors, at(92));
    neighbors.check();
    assert_eq!((neighbors.table.len(), neighbors.counters().out_requests), (0, 0));
}

#[test]
fn a_full_table_evicts_unused_then_least_recently_used_entries() {
    let mut neighbors = neighbors();
    for host in 1..=6 {
        neighbors.learn(at(0), address(host), mac(host), true);
    }
    for host in [1, 2, 3, 5, 6] {
        neighbors.lookup(at(1), address(host));
    }
    neighbors.learn(at(1), address(7), mac(7), true);
    assert_eq!(neighbors.table.get(address(4)), None);
    neighbors.lookup(at(2), address(7));
    neighbors.learn(at(2), address(8), mac(8), true);
    assert_eq!(neighbors.table.get(address(1)), None);
    neighbors.check();
    assert_eq!(neighbors.counters().table_overflows, 2);
}

/// The removal of a resolved neighbour begins a new generation. Otherwise, connections would
/// continue to send to the MAC address of the removed neighbour. The removal of an unresolved
/// neighbour does not, because no connection has its MAC address.
#[test]
fn removal_changes_the_generation_only_if_resolved() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), mac(1), true);
    advance_clock(&mut neighbors, at(31));
    neighbors.lookup(at(31), address(1));
    let before = neighbors.generation();
    for now in [33, 35, 37] {
        advance_clock(&mut neighbors, at(now));
    }
    assert_eq!(neighbors.table.len(), 0);
    assert!(neighbors.generation() > before, "the entry was resolved");

    let before = neighbors.generation();
    neighbors.lookup(at(40), address(2));
    for now in [42, 44, 46] {
        advance_clock(&mut neighbors, at(now));
    }
    assert_eq!(
        (neighbors.table.len(), neighbors.generation()),
        (0, before),
        "the entry was never resolved"
    );
}

#[test]
fn a_pending_request_is_removed_with_its_neighbour() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    for now in [2, 4, 6] {
        advance_clock(&mut neighbors, at(now));
    }
    assert_eq!((neighbors.table.len(), neighbors.wants_transmit()), (0, false));
}

#[test]
fn a_used_entry_outlives_unused_ones() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), mac(1), true);
    neighbors.lookup(at(0), address(1));
    for host in 2..=7 {
        neighbors.learn(at(1), address(host), mac(host), true);
    }
    neighbors.check();
    assert_eq!(
        (neighbors.table.get(address(1)).is_some(), neighbors.table.get(address(2))),
        (true, None)
    );
}

#[test]
fn queued_packets_of_an_evicted_neighbour_are_dropped_and_counted() {
    let mut neighbors = neighbors();
    neighbors.lookup(at(0), address(1));
    neighbors.enqueue(address(1), b"first");
    neighbors.enqueue(address(1), b"second");
    neighbors.learn(at(0), address(1), mac(1), false);
    for host in 2..=6 {
        neighbors.learn(at(0), address(host), mac(host), true);
        neighbors.lookup(at(0), address(host));
    }
    let before = neighbors.generation();
    requests(&mut neighbors);
    neighbors.learn(at(0), address(7), mac(7), true);
    neighbors.check();
    assert_eq!((neighbors.table.get(address(1)), neighbors.counters().queue_drops), (None, 2));
    assert!(neighbors.generation() > before && !neighbors.wants_transmit());
    assert_eq!(neighbors.poll_released(), None);
}

#[test]
fn a_resolved_entry_fits_beside_the_limit_of_unresolved_ones() {
    let mut neighbors = limited_neighbors(NeighborLimits { entries: 2, ..LIMITS });
    neighbors.learn(at(0), address(1), mac(1), true);
    for host in 10..=12 {
        neighbors.lookup(at(0), address(host));
    }
    neighbors.check();
    assert_eq!(neighbors.lookup(at(0), address(1)), Some(mac(1)));
    neighbors.learn(at(0), address(2), mac(2), true);
    neighbors.check();
    assert_eq!((neighbors.table.get(address(1)), neighbors.table.len()), (None, 4));
}

#[test]
fn forged_addresses_do_not_evict_resolved_neighbours() {
    let mut neighbors = neighbors();
    neighbors.learn(at(0), address(1), mac(1), true);
    for host in 10..60 {
        assert_eq!(neighbors.lookup(at(0), address(host)), None);
        neighbors.enqueue(address(host), b"reply");
    }
    let refused = 50 - LIMITS.unresolved as u64;
    let counters = neighbors.counters();
    assert_eq!(
        (counters.table_overflows, counters.queue_drops),
        (refused, refused),
        "all refusals are counted"
    );
    assert_eq!(requests(&mut neighbors).len(), LIMITS.unresolved);
    assert_eq!(neighbors.lookup(at(0), address(1)), Some(mac(1)));
    neighbors.check();
}

proptest! {
    /// The invariants hold after any sequence of operations. A neighbour is not requested twice
    /// within a second, if the cache has room for all neighbours (`roomy`). Without that room, an
    /// evicted neighbour is requested anew.
    #[test]
    fn requests_stay_a_second_apart(
        roomy: bool,
        steps in prop::collection::vec((0_u8..5, 1_u8..10, 0_u64..1_200), 1..200),
    ) {
        let entries = if roomy { 20 } else { LIMITS.entries };
        let mut neighbors = limited_neighbors(NeighborLimits { entries, ..LIMITS });
        let mut sent = [None::<Instant>; 10];
        let mut now = Instant::ZERO;
        for (step, host, wait) in steps {
            match step {
                0 => {
                    if neighbors.lookup(now, address(host)).is_none() {
                        neighbors.enqueue(address(host), &[0; 40]);
                    }
                }
                1 => neighbors.learn(now, address(host), mac(host), false),
                2 => neighbors.learn(now, address(host), mac(host + 10), true),
                3 => while neighbors.poll_released().is_some() {},
                _ => {
                    now += Duration::from_millis(wait * wait / 40);
                    advance_clock(&mut neighbors, now);
                }
            }
            neighbors.check();
            for request in requests(&mut neighbors) {
                let IpAddr::V4(host) = request.address else { panic!("{request:?}") };
                let last = sent[usize::from(host.octets()[3])].replace(now);
                if let Some(last) = last {
                    // Timers may be one tick late, but never early. So the interval between two
                    // requests may exceed the nominal interval, but is never shorter.
                    prop_assert!(!roomy || now.since(last) >= INTERVAL, "{request:?}");
                }
            }
        }
    }
}

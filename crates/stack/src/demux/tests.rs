use super::*;
use crate::keys::Keys;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};
use proptest::prelude::*;

fn demux() -> Demux {
    Demux::new(Keys::new([7; 32]).table("flows"))
}

pub(crate) fn flow(remote_port: u16) -> Flow {
    let local = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 80);
    Flow::new(local, SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), remote_port))
}

#[test]
fn a_run_is_hashed_once() {
    let mut demux = demux();
    assert!(demux.insert(&flow(1), 10) && demux.insert(&flow(2), 20));
    for _ in 0..9 {
        assert_eq!(demux.lookup(&flow(1)), Some(10));
    }
    assert_eq!(demux.lookup(&flow(2)), Some(20));
    assert_eq!(demux.repeats(), (8, 10));
}

#[test]
fn a_lookup_after_an_insertion_needs_no_hash() {
    let mut demux = demux();
    assert!(demux.is_free(&flow(1)) && demux.insert(&flow(1), 10) && !demux.is_free(&flow(1)));
    assert_eq!((demux.lookup(&flow(1)), demux.repeats()), (Some(10), (1, 1)));
    assert!(demux.is_free(&flow(2)) && demux.insert(&flow(2), 20));
    assert_eq!((demux.lookup(&flow(1)), demux.repeats()), (Some(10), (1, 2)));
}

#[test]
fn a_removed_flow_is_not_found_in_the_cache() {
    let mut demux = demux();
    assert!(demux.insert(&flow(1), 10));
    assert_eq!(demux.lookup(&flow(1)), Some(10));
    demux.remove(&flow(1), 10);
    assert_eq!(demux.lookup(&flow(1)), None);
    assert!(demux.insert(&flow(1), 11) && !demux.insert(&flow(1), 12));
    assert_eq!(demux.lookup(&flow(1)), Some(11));
}

#[test]
fn flows_differ_in_each_address_and_port() {
    let at = |address: u8, port| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, address), port);
    let flows = [
        Flow::new(at(1, 1), at(2, 2)),
        Flow::new(at(2, 2), at(1, 1)),
        Flow::new(at(1, 2), at(2, 1)),
        Flow::new(at(1, 1), at(2, 1)),
        Flow::bound(at(1, 1)),
    ];
    for (index, one) in flows.iter().enumerate() {
        assert!(flows[..index].iter().all(|other| other != one));
    }
}

/// The table selects a bucket by the lower bits of a hash. Before it compares flows, it compares
/// the upper seven bits of their hashes. If the lower or the upper bits varied too little, lookups
/// would degrade to a linear search.
#[test]
fn hashes_spread_in_lower_and_upper_bits() {
    let mut demux = demux();
    let hashes: Vec<u64> = (0..1_024).map(|port| demux.hash(&flow(port)).wide()).collect();
    let distinct = |part: fn(u64) -> u64| {
        let mut parts: Vec<_> = hashes.iter().map(|&hash| part(hash)).collect();
        parts.sort_unstable();
        parts.dedup();
        parts.len()
    };
    // 1,024 random hashes have about 650 different values modulo 1,024, so more than 512 are
    // demanded. Their upper seven bits should have nearly all 128 values, so more than 96 are
    // demanded.
    assert!(distinct(|hash| hash % 1_024) > 512);
    assert!(distinct(|hash| hash >> 57) > 96);
}

/// Announces frames with the flows `noted`; `None` is a frame without a TCP segment. Checks that
/// flows 0 and 1 are in the one-entry cache when their frames are handled. Flow 2 is in the table
/// but must not use the flow cache, and flow 3 is not in the table.
fn check_announced(noted: &[Option<u16>]) {
    let mut demux = demux();
    for port in 0..3 {
        assert!(demux.insert(&flow(port), port.into()));
    }
    for &port in noted {
        demux.announce(port.map(flow));
    }
    let runs = noted.chunk_by(PartialEq::eq).count();
    assert_eq!(demux.look_up_announced(|socket| socket != 2), runs > 1);
    if runs < 2 {
        return assert!(
            demux.step_to_announced(noted.first().copied().flatten().map(flow)).is_none()
        );
    }
    for (at, &port) in noted.iter().enumerate() {
        let Some(port) = port else {
            assert!(demux.step_to_announced(None).is_none());
            continue;
        };
        let before = demux.last.map(|last| last.flow);
        let outcome = demux.step_to_announced(Some(flow(port)));
        let is_expected = port < 2 && before != Some(flow(port));
        assert_eq!(
            outcome.is_some(),
            is_expected,
            "a known flow enters the cache, unless it is there already"
        );
        if let Some(outcome) = outcome {
            assert_eq!(demux.last(&flow(port)), Some(port.into()));
            demux.restore(outcome);
            assert_eq!(demux.last.map(|last| last.flow), before);
        }
        let next = noted.get(at + 1);
        assert_eq!(demux.is_last_of_run(), next.is_some_and(|&next| next != Some(port)));
        demux.lookup(&flow(port));
    }
    demux.end_batch();
    assert!(demux.step_to_announced(Some(flow(0))).is_none());
}

proptest! {
    #[test]
    fn announced_flows_are_found_in_the_cache(
        noted in prop::collection::vec(prop::option::of(0_u16..4), 0..12),
    ) {
        check_announced(&noted);
    }

    /// A lookup never finds a removed socket. This holds even if the handled frames differ from the
    /// announced frames, and flows are inserted and removed between two frames.
    #[test]
    fn an_unexpected_sequence_never_finds_a_removed_socket(
        noted in prop::collection::vec(prop::option::of(0_u16..4), 2..12),
        come in prop::collection::vec((0_u16..4, any::<bool>()), 1..16),
    ) {
        let mut demux = demux();
        let mut list: [Option<u32>; 4] = [Some(0), Some(1), Some(2), None];
        for port in 0..3 {
            prop_assert!(demux.insert(&flow(port), port.into()));
        }
        for port in noted {
            demux.announce(port.map(flow));
        }
        demux.look_up_announced(|_| true);
        for (socket, (port, changes)) in (10..).zip(come) {
            demux.step_to_announced(Some(flow(port)));
            for port in 0..4 {
                let last = demux.last(&flow(port));
                prop_assert!(last.is_none() || last == list[usize::from(port)]);
            }
            let known = &mut list[usize::from(port)];
            match known.filter(|_| changes) {
                Some(socket) => {
                    demux.remove(&flow(port), socket);
                    *known = None;
                }
                None => {
                    prop_assert_eq!(demux.insert(&flow(port), socket), known.is_none());
                    known.get_or_insert(socket);
                }
            }
        }
    }

    #[test]

    #[test]
    fn the_table_agrees_with_a_list(
        steps in prop::collection::vec((0_u16..8, 0_u8..4), 0..100),
    ) {
        let (mut demux, mut list) = (demux(), Vec::<(u16, u32)>::new());
        for (number, (port, step)) in (0..).zip(steps) {
            let known = list.iter().find(|entry| entry.0 == port).map(|entry| entry.1);
            match (step, known) {
                (0, _) => prop_assert_eq!(demux.lookup(&flow(port)), known),
                (1, _) => {
                    prop_assert_eq!(demux.insert(&flow(port), number), known.is_none());
                    list.extend(known.is_none().then_some((port, number)));
                }
                (2, Some(socket)) => demux.remove(&flow(port), socket + 1_000),
                (_, Some(socket)) => {
                    demux.remove(&flow(port), socket);
                    list.retain(|entry| entry.0 != port);
                }
                (_, None) => demux.remove(&flow(port), 0),
            }
            prop_assert_eq!(demux.len(), list.len());
        }
    }
}

use super::*;
use alloc::vec;
use core::net::IpAddr;
use linerate_wire::Ipv4Packet;

const HEADERS: [u8; 20] = [0x45, 0, 0, 0, 0, 9, 0x20, 0, 64, 17, 0, 0, 192, 0, 2, 2, 192, 0, 2, 1];

const LIMITS: ReassemblyLimits = ReassemblyLimits { bytes: 4_096, datagrams: 4, fragments: 8 };

fn key(identification: u32) -> DatagramKey {
    let hosts = Hosts::new(IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
    DatagramKey { hosts, identification, protocol: Protocol::UDP }
}

fn fragment(identification: u32, offset: usize, payload: &[u8], more: bool) -> Fragment<'_> {
    Fragment {
        key: key(identification),
        offset,
        more,
        ecn: Ecn::NotEct,
        headers: &HEADERS,
        header: None,
        payload,
        is_broadcast: false,
    }
}

fn insert(reassembly: &mut Reassembly, fragment: &Fragment<'_>) -> Insertion {
    let inserted = reassembly.insert(Instant::ZERO, fragment, || {});
    reassembly.check();
    inserted
}

#[test]
fn fragments_in_any_order_complete_the_datagram() {
    let payload: Vec<u8> = (0..24).collect();
    let parts = [(0, &payload[..8], true), (8, &payload[8..16], true), (16, &payload[16..], false)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut reassembly = Reassembly::new(LIMITS);
        let mut results = order.map(|index| {
            let (offset, part, more) = parts[index];
            insert(&mut reassembly, &fragment(9, offset, part, more))
        });
        let Insertion::Complete(packet) =
            core::mem::replace(&mut results[2], Insertion::Incomplete)
        else {
            panic!("{results:?}")
        };
        let parsed = Ipv4Packet::parse(&packet).unwrap();
        assert_eq!((parsed.payload, parsed.header.is_fragment()), (&payload[..], false));
        assert_eq!(results, [const { Insertion::Incomplete }; 3]);
        assert_eq!((reassembly.bytes, reassembly.poll_timeout()), (0, Instant::NEVER));
    }
}

#[test]
fn exact_repetitions_are_ignored() {
    let mut reassembly = Reassembly::new(LIMITS);
    for _ in 0..3 {
        assert_eq!(insert(&mut reassembly, &fragment(9, 8, &[1; 8], true)), Insertion::Incomplete);
        assert_eq!(
            insert(&mut reassembly, &fragment(9, 16, &[2; 3], false)),
            Insertion::Incomplete
        );
    }
    let last = insert(&mut reassembly, &fragment(9, 0, &[0; 8], true));
    assert!(matches!(last, Insertion::Complete(_)));
}

#[test]
fn an_overlap_discards_the_datagram_and_what_follows() {
    // A fragment with the bytes 16 to 32 of the datagram has arrived; it is not the final fragment.
    // Each fragment of this list overlaps or contradicts it.
    for (offset, payload, more) in [
        (8, &[0; 16][..], true),
        (24, &[0; 16], true),
        (16, &[9; 16], true),
        (16, &[1; 8], true),
        (8, &[0; 40], true),
        (8, &[0; 8], false),
        (16, &[1; 16], false),
    ] {
        let mut reassembly = Reassembly::new(LIMITS);
        insert(&mut reassembly, &fragment(9, 16, &[1; 16], true));
        let conflicting = fragment(9, offset, payload, more);
        assert_eq!(insert(&mut reassembly, &conflicting), Insertion::Overlap, "{conflicting:?}");
        assert_eq!(reassembly.bytes, DATAGRAM);
        assert_eq!(insert(&mut reassembly, &fragment(9, 0, &[0; 8], true)), Insertion::Discarded);
        let expired = reassembly.expire(Instant::ZERO + TIMEOUT).unwrap();
        assert_eq!(expired, Expired { is_incomplete: false, first: None });
    }
}

#[test]
fn fragments_beyond_the_last_one_or_a_second_last_one_are_conflicts() {
    for (offset, payload, more) in
        [(24, &[0; 8][..], true), (8, &[0; 3], false), (24, &[0; 3], false), (16, &[1; 8], true)]
    {
        let mut reassembly = Reassembly::new(LIMITS);
        insert(&mut reassembly, &fragment(9, 16, &[1; 8], false));
        let conflicting = fragment(9, offset, payload, more);
        assert_eq!(insert(&mut reassembly, &conflicting), Insertion::Overlap, "{conflicting:?}");
    }
}

#[test]
fn the_oldest_datagram_is_evicted_at_the_limits() {
    let mut reassembly = Reassembly::new(LIMITS);
    let mut evicted = 0;
    for identification in 0..6 {
        let part = fragment(identification, 0, &[0; 8], true);
        let _ = reassembly.insert(Instant::ZERO, &part, || evicted += 1);
        reassembly.check();
    }
    assert_eq!((evicted, reassembly.datagrams.len()), (2, 4));
    assert!(!reassembly.datagrams.contains_key(&key(1)));
    // The byte limit has room for two of these datagrams, each of which is charged about 2,000
    // bytes.
    for identification in 10..14 {
        let part = fragment(identification, 0, &[0; 1_400], true);
        let _ = reassembly.insert(Instant::ZERO, &part, || evicted += 1);
        reassembly.check();
    }
    assert_eq!((evicted, reassembly.datagrams.len()), (8, 2));
    let large = fragment(20, 0, &[0; 3_600], true);
    assert_eq!(insert(&mut reassembly, &large), Insertion::AtLimit);
    assert_eq!(reassembly.datagrams.len(), 2, "a fragment that never fits evicts nothing");
}

#[test]
fn a_datagram_that_needs_the_whole_memory_is_dropped() {
    let mut reassembly = Reassembly::new(LIMITS);
    insert(&mut reassembly, &fragment(9, 0, &[0; 2_000], true));
    assert_eq!(insert(&mut reassembly, &fragment(9, 2_000, &[0; 2_000], true)), Insertion::AtLimit);
    assert_eq!(reassembly.bytes, 0);
}

#[test]
fn fragments_of_a_datagram_are_limited() {
    let mut reassembly = Reassembly::new(LIMITS);
    for index in 0..8 {
        let part = fragment(9, index * 16, &[0; 8], true);
        assert_eq!(insert(&mut reassembly, &part), Insertion::Incomplete);
    }
    assert_eq!(insert(&mut reassembly, &fragment(9, 8, &[0; 8], true)), Insertion::AtLimit);
    assert_eq!(insert(&mut reassembly, &fragment(9, 8, &[0; 8], true)), Insertion::Discarded);
}

#[test]
fn a_datagram_expires_after_a_minute_with_its_first_fragment() {
    let mut reassembly = Reassembly::new(LIMITS);
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    reassembly.insert(at(1), &fragment(1, 0, &[7; 8], true), || {});
    reassembly.insert(at(2), &fragment(2, 8, &[7; 8], true), || {});
    reassembly.insert(at(30), &fragment(1, 8, &[7; 8], true), || {});
    assert_eq!((reassembly.poll_timeout(), reassembly.expire(at(60))), (at(61), None));
    let expired = reassembly.expire(at(61)).unwrap();
    let packet = [&HEADERS[..], &[7; 8]].concat();
    assert_eq!(expired, Expired { is_incomplete: true, first: Some((key(1).hosts, packet)) });
    assert_eq!(reassembly.expire(at(62)), Some(Expired { is_incomplete: true, first: None }));
    assert_eq!((reassembly.expire(at(100)), reassembly.bytes), (None, 0));
}

#[test]
fn congestion_marks_are_kept_and_never_given_to_packets_without_ecn() {
    for (marks, expected) in [
        ([Ecn::Ect0, Ecn::Ect0], Some(Ecn::Ect0)),
        ([Ecn::Ect0, Ecn::Ce], Some(Ecn::Ce)),
        ([Ecn::Ce, Ecn::Ect1], Some(Ecn::Ce)),
        ([Ecn::NotEct, Ecn::NotEct], Some(Ecn::NotEct)),
        ([Ecn::NotEct, Ecn::Ce], None),
        ([Ecn::Ce, Ecn::NotEct], None),
    ] {
        let mut reassembly = Reassembly::new(LIMITS);
        let mut headers = HEADERS;
        headers[1] = marks[0] as u8;
        let first = Fragment { ecn: marks[0], headers: &headers, ..fragment(9, 0, &[0; 8], true) };
        let last = Fragment { ecn: marks[1], ..fragment(9, 8, &[0; 8], false) };
        insert(&mut reassembly, &first);
        let mark = match insert(&mut reassembly, &last) {
            Insertion::Complete(packet) => {
                Some(Ipv4Packet::parse(&packet).unwrap().header.type_of_service.ecn())
            }
            _ => None,
        };
        assert_eq!(mark, expected, "{marks:?}");
    }
}

#[test]
fn a_packet_longer_than_its_length_field_is_invalid() {
    let mut reassembly = Reassembly::new(ReassemblyLimits::default());
    let payload = vec![0; 65_512];
    // The datagram's payload of 65,515 bytes would fit behind the 20-byte header of the final
    // fragment. But the whole packet gets the 60-byte header of the first fragment, and so exceeds
    // 65,535 bytes.
    let headers = [&[0x4f][..], &HEADERS[1..], &[1; 40]].concat();
    let first = Fragment { headers: &headers, ..fragment(9, 0, &payload, true) };
    insert(&mut reassembly, &first);
    assert_eq!(insert(&mut reassembly, &fragment(9, 65_512, &[0; 3], false)), Insertion::Invalid);
}

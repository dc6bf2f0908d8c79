use super::*;
use alloc::vec;
use linerate_wire::{GroupMessage, Sum};

const LIMITS: GroupLimits = GroupLimits { groups: 3, sources: 2 };
const GROUP: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(239, 1, 1, 1));

fn groups(seed: u8) -> Groups {
    Groups::new(LIMITS, &Keys::new([seed; 32]))
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn source(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

/// Lets the host receive an IGMP query with these bytes. A query of eight bytes is IGMPv1 or
/// IGMPv2.
fn query(groups: &mut Groups, now: Instant, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    let checksum = Sum::of(&bytes).finish();
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    let Ok(Some(GroupMessage::Query(query))) = igmp::parse(&bytes) else { panic!("a query") };
    groups.handle_query(now, false, &query);
    groups.check(|_| true);
}

/// Lets the host receive a general IGMPv3 query whose maximum response time is `tenths` tenths of a
/// second.
fn general(groups: &mut Groups, now: Instant, tenths: u8) {
    query(groups, now, &[0x11, tenths, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0]);
}

fn record(kind: GroupRecordKind, sources: &[u8]) -> GroupReportDue {
    let sources = sources.iter().map(|&last| source(last)).collect();
    GroupReportDue::Record { kind, group: GROUP, sources }
}

/// Advances to the next timeout and handles it. Returns the time and the due reports.
fn next(groups: &mut Groups) -> (Instant, Vec<GroupReportDue>) {
    let now = groups.poll_timeout();
    assert_ne!(now, Instant::NEVER, "nothing is due");
    let due = groups.handle_timeout(now);
    groups.check(|_| true);
    (now, due)
}

fn join(groups: &mut Groups, now: Instant, socket: u32) {
    groups.change(now, GROUP, socket, MembershipChange::Join).unwrap();
}

/// RFC 3376 §5.1: a change of membership is reported at once, and the report is repeated after a
/// random time.
#[test]
fn a_change_is_reported_at_once_and_repeated_after_a_random_delay() {
    use GroupRecordKind::{ToExclude, ToInclude};
    let mut groups = groups(1);
    join(&mut groups, at(5), 1);
    assert_eq!(next(&mut groups), (at(5), vec![record(ToExclude, &[])]));
    let (again, due) = next(&mut groups);
    assert_eq!(due, [record(ToExclude, &[])]);
    assert!(at(5) < again && again <= at(1_005), "{again:?}");
    assert_eq!(groups.poll_timeout(), Instant::NEVER);
    // The sockets 1 and 2 are members. The host remains a member until both have left, so only the
    // second departure is reported.
    join(&mut groups, at(2_000), 2);
    groups.remove_socket(at(2_000), 1);
    assert_eq!(groups.poll_timeout(), Instant::NEVER);
    groups.remove_socket(at(3_000), 2);
    assert!(!groups.contains(GROUP));
    assert_eq!(next(&mut groups), (at(3_000), vec![record(ToInclude, &[])]));
    assert_eq!(next(&mut groups).1, [record(ToInclude, &[])]);
    assert!(groups.groups.is_empty(), "a left group is forgotten after its last report");
}

#[test]
fn changes_of_sources_are_merged_with_those_that_are_still_reported() {
    use GroupRecordKind::{Allow, Block};
    let mut groups = groups(1);
    for (last, socket) in [(1, 1), (2, 2)] {
        groups.change(at(0), GROUP, socket, MembershipChange::JoinSource(source(last))).unwrap();
    }
    assert_eq!(next(&mut groups).1, [record(Allow, &[1, 2])]);
    groups.change(at(0), GROUP, 1, MembershipChange::LeaveSource(source(1))).unwrap();
    assert_eq!(next(&mut groups).1, [record(Allow, &[2]), record(Block, &[1])]);
    assert_eq!(next(&mut groups).1, [record(Block, &[1])]);
    assert_eq!(groups.poll_timeout(), Instant::NEVER);
    assert!(groups.members(GROUP, source(2)).eq([2]) && groups.members(GROUP, source(1)).eq([]));
}

#[test]
fn a_membership_in_all_sources_can_exclude_some() {
    use GroupRecordKind::{Allow, Block};
    let mut groups = groups(1);
    join(&mut groups, at(0), 1);
    next(&mut groups);
    next(&mut groups);
    groups.change(at(2_000), GROUP, 1, MembershipChange::Block(source(9))).unwrap();
    assert_eq!(next(&mut groups).1, [record(Block, &[9])]);
    assert!(groups.members(GROUP, source(9)).eq([]) && groups.members(GROUP, source(8)).eq([1]));
    groups.change(at(2_000), GROUP, 1, MembershipChange::Unblock(source(9))).unwrap();
    assert_eq!(next(&mut groups).1, [record(Allow, &[9])]);
    let wrong = [
        (MembershipChange::Unblock(source(9)), Error::NotJoined(GROUP)),
        (MembershipChange::LeaveSource(source(9)), Error::AlreadyJoined(GROUP)),
        (MembershipChange::JoinSource(source(9)), Error::AlreadyJoined(GROUP)),
        (MembershipChange::Join, Error::AlreadyJoined(GROUP)),
    ];
    for (change, error) in wrong {
        assert_eq!(groups.change(at(0), GROUP, 1, change), Err(error), "{change:?}");
    }
    let none = groups.change(at(0), GROUP, 2, MembershipChange::Leave);
    assert_eq!(none, Err(Error::NotJoined(GROUP)));
}

/// RFC 3376 §5.2: the response to a query is delayed by a random time, at most the maximum response
/// time of the query.
#[test]
fn a_general_query_is_answered_once_within_its_delay() {
    let mut groups = groups(1);
    general(&mut groups, at(0), 100);
    assert_eq!(groups.poll_timeout(), Instant::NEVER, "there is nothing to report");
    join(&mut groups, at(0), 1);
    next(&mut groups);
    next(&mut groups);
    general(&mut groups, at(2_000), 100);
    let first = groups.poll_timeout();
    assert!(at(2_000) < first && first <= at(12_000), "{first:?}");
    general(&mut groups, at(2_001), 250);
    assert!(groups.poll_timeout() <= first, "the sooner response answers both");
    assert_eq!(next(&mut groups).1, [record(GroupRecordKind::IsExclude, &[])]);
    assert_eq!(groups.poll_timeout(), Instant::NEVER);
}

#[test]
fn delays_are_drawn_from_the_seed() {
    let delay = |seed| {
        let mut groups = groups(seed);
        join(&mut groups, at(0), 1);
        (next(&mut groups), next(&mut groups)).1.0
    };
    assert_eq!(delay(1), delay(1));
    assert_ne!(delay(1), delay(2));
}

#[test]
fn a_query_about_sources_is_answered_with_those_that_are_received() {
    let specific = [0x11, 10, 0, 0, 239, 1, 1, 1, 2, 125, 0];
    let about = |sources: &[u8]| {
        let mut bytes = specific.to_vec();
        bytes.push(u8::try_from(sources.len()).unwrap());
        sources.iter().for_each(|&last| bytes.extend([10, 0, 0, last]));
        bytes
    };
    let mut groups = groups(1);
    groups.change(at(0), GROUP, 1, MembershipChange::JoinSource(source(1))).unwrap();
    next(&mut groups);
    next(&mut groups);
    query(&mut groups, at(5_000), &about(&[1, 2]));
    assert_eq!(next(&mut groups).1, [record(GroupRecordKind::IsInclude, &[1])]);
    query(&mut groups, at(10_000), &about(&[2]));
    assert_eq!(next(&mut groups).1, [], "none of them is received");
    query(&mut groups, at(20_000), &about(&[2]));
    query(&mut groups, at(20_000), &about(&[]));
    assert_eq!(next(&mut groups).1, [record(GroupRecordKind::IsInclude, &[1])]);
    // A query about three sources exceeds the limit of sources that the host stores. It is answered
    // like a query about all sources.
    query(&mut groups, at(30_000), &about(&[2, 3, 4]));
    assert_eq!(next(&mut groups).1, [record(GroupRecordKind::IsInclude, &[1])]);
    let other = [0x11, 10, 0, 0, 239, 1, 1, 2, 2, 125, 0, 0];
    query(&mut groups, at(40_000), &other);
    assert_eq!(groups.poll_timeout(), Instant::NEVER, "the group has no members");
}

/// RFC 3376 §7.2.1: while an older querier is present, the host sends the messages of the querier's
/// version.
#[test]
fn an_older_querier_gets_messages_of_its_version_until_it_is_gone() {
    let mut groups = groups(1);
    join(&mut groups, at(0), 1);
    query(&mut groups, at(1), &[0x11, 100, 0, 0, 0, 0, 0, 0]);
    let report = |version| GroupReportDue::OldReport { version, group: GROUP };
    assert_eq!(next(&mut groups).1, [report(GroupVersion::V2)], "only the response is left");
    assert_eq!(groups.poll_timeout(), Instant::NEVER);
    groups.change(at(20_000), GROUP, 1, MembershipChange::Leave).unwrap();
    assert_eq!(next(&mut groups).1, [GroupReportDue::Leave { group: GROUP }]);
    assert_eq!(groups.poll_timeout(), Instant::NEVER);
    groups.change(at(30_000), GROUP, 1, MembershipChange::JoinSource(source(1))).unwrap();
    assert_eq!(next(&mut groups), (at(30_000), vec![report(GroupVersion::V2)]));
    assert_eq!(next(&mut groups).1, [report(GroupVersion::V2)]);
    query(&mut groups, at(50_000), &[0x11, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(next(&mut groups).1, [report(GroupVersion::V1)]);
    groups.change(at(60_000), GROUP, 1, MembershipChange::Leave).unwrap();
    assert_eq!(next(&mut groups).1, [], "IGMPv1 has no message for it");
    // The old querier counts as gone after twice the query interval plus the maximum response time.
    join(&mut groups, at(50_000 + 260_000), 1);
    assert_eq!(next(&mut groups).1, [record(GroupRecordKind::ToExclude, &[])]);
}

#[test]
fn the_robustness_of_the_querier_counts() {
    let mut groups = groups(1);
    query(&mut groups, at(0), &[0x11, 10, 0, 0, 0, 0, 0, 0, 4, 125, 0, 0]);
    join(&mut groups, at(0), 1);
    for _ in 0..4 {
        assert_eq!(next(&mut groups).1.len(), 1);
    }
    assert_eq!(groups.poll_timeout(), Instant::NEVER);
}

/// RFC 3376 §4.1.6: a Robustness Variable of zero means that the querier does not specify one.
#[test]
fn a_querier_without_a_robustness_has_the_default() {
    let mut groups = groups(1);
    query(&mut groups, at(0), &[0x11, 10, 0, 0, 0, 0, 0, 0, 4, 125, 0, 0]);
    query(&mut groups, at(1), &[0x11, 10, 0, 0, 0, 0, 0, 0, 0, 125, 0, 0]);
    join(&mut groups, at(1), 1);
    for _ in 0..2 {
        assert_eq!(next(&mut groups).1.len(), 1);
    }
    assert_eq!(groups.poll_timeout(), Instant::NEVER);
}

/// RFC 3376 §2: a limit on the length of a source list must be at least 64.
#[test]
fn the_default_limit_of_sources_is_that_of_the_rfc() {
    assert!(crate::config::Limits::default().group_sources >= 64);
}

#[test]
fn groups_and_sources_are_limited() {
    let mut groups = groups(1);
    let group = |last| IpAddr::from([239, 1, 1, last]);
    for last in 0..3 {
        assert_eq!(groups.change(at(0), group(last), 1, MembershipChange::Join), Ok(()));
    }
    let many = groups.change(at(0), group(3), 1, MembershipChange::Join);
    assert_eq!(many, Err(Error::TooManyGroups { limit: 3 }));
    groups.change(at(0), group(0), 1, MembershipChange::Leave).unwrap();
    for last in 0..2 {
        let change = MembershipChange::JoinSource(source(last));
        assert_eq!(groups.change(at(0), group(0), u32::from(last), change), Ok(()));
    }
    let many = groups.change(at(0), group(0), 7, MembershipChange::JoinSource(source(2)));
    assert_eq!(many, Err(Error::TooManySources { limit: 2 }));
    assert!(groups.members(group(0), source(2)).eq([]));
    groups.check(|_| true);
}

#[test]
fn the_group_of_all_hosts_is_received_and_never_reported() {
    let mut groups = groups(1);
    for all in [IpAddr::V4(igmp::ALL_HOSTS), ipv6_multicast::ALL_NODES.into()] {
        assert!(groups.contains(all));
        groups.change(at(0), all, 1, MembershipChange::Join).unwrap();
        assert_eq!(groups.poll_timeout(), Instant::NEVER);
        general(&mut groups, at(0), 10);
        assert_eq!(groups.poll_timeout(), Instant::NEVER);
        groups.remove_socket(at(0), 1);
        assert!(groups.contains(all));
    }
}

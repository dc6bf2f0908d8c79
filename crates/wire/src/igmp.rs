//! The Internet Group Management Protocol, versions 1 to 3 (RFC 1112, RFC 2236, RFC 3376).

use crate::group_membership::{GroupRecords, GroupSources, decode_byte};
use crate::layout::{half, octets, room, split_fixed};
use crate::{GroupMessage, GroupQuery, GroupVersion, Malformed, Sum};
use core::net::{IpAddr, Ipv4Addr};

/// The group of all hosts on the network. Every host is always a member, so this membership is not
/// reported (RFC 1112 §4).
pub const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// The group of all routers on the network. A host that leaves another group announces this to the
/// routers by a message to this group.
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// The multicast address to which hosts send reports of IGMPv3 (RFC 3376 §4.2.14).
pub const REPORT_RECEIVERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
/// The Router Alert option of IPv4, which makes routers examine the packet (RFC 2113).
pub const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];
/// The length of a message of IGMPv1 or IGMPv2, in bytes.
pub(crate) const SHORT_LENGTH: usize = 8;

const QUERY: u8 = 0x11;
pub(crate) const V1_REPORT: u8 = 0x12;
pub(crate) const V2_REPORT: u8 = 0x16;
pub(crate) const LEAVE: u8 = 0x17;
pub(crate) const V3_REPORT: u8 = 0x22;
/// The length of an IGMPv3 query without sources, in bytes.
const V3_QUERY: usize = 12;

/// Parses the message that fills `bytes`. Returns `None` for a message of an unknown type, which
/// hosts ignore.
///
/// # Errors
/// [`Malformed`] if the message is truncated, its checksum is wrong, or a query has an invalid
/// length (RFC 3376 §7.1).
pub fn parse(bytes: &[u8]) -> Result<Option<GroupMessage<'_>>, Malformed> {
    let (fixed, rest) = split_fixed::<SHORT_LENGTH>("IGMP message", bytes)?;
    if !Sum::of(bytes).is_valid() {
        return Err(Malformed::Checksum { what: "IGMP message" });
    }
    let group = Ipv4Addr::from_octets(octets(fixed, 4));
    Ok(Some(match fixed[0] {
        QUERY => GroupMessage::Query(parse_query(fixed[1], group, bytes)?),
        V1_REPORT => GroupMessage::OldReport { version: GroupVersion::V1, group: group.into() },
        V2_REPORT => GroupMessage::OldReport { version: GroupVersion::V2, group: group.into() },
        LEAVE => GroupMessage::Leave { group: group.into() },
        V3_REPORT => GroupMessage::Report(GroupRecords::parse(rest, half(fixed, 6), false)?),
        _ => return Ok(None),
    }))
}

/// Do the options of an IPv4 header contain a Router Alert?
#[must_use]
pub fn has_router_alert(options: &[u8]) -> bool {
    let mut rest = options;
    loop {
        rest = match *rest {
            [] | [0, ..] => return false,
            [1, ..] => &rest[1..],
            [kind, ..] if kind == ROUTER_ALERT[0] => return true,
            [_, length, ..] if length >= 2 => rest.get(length.into()..).unwrap_or_default(),
            _ => return false,
        };
    }
}

fn parse_query(code: u8, group: Ipv4Addr, bytes: &[u8]) -> Result<GroupQuery<'_>, Malformed> {
    /// The unit of the response time on the wire, a tenth of a second, in milliseconds.
    const TENTH: u32 = 100;
    let group = (!group.is_unspecified()).then_some(IpAddr::V4(group));
    let old = |version, tenths| GroupQuery {
        version,
        max_response: tenths * TENTH,
        group,
        robustness: 0,
        interval: 0,
        sources: GroupSources::default(),
    };
    // Queries of IGMPv1 and IGMPv2 have eight bytes, and those of IGMPv3 have more (RFC 3376 §7.1).
    // In the short queries, the code is the response time in tenths of a second. IGMPv1 sends zero,
    // which means ten seconds, or 100 tenths (RFC 3376 §7.2.1).
    match (bytes.len(), code) {
        (SHORT_LENGTH, 0) => return Ok(old(GroupVersion::V1, 100)),
        (SHORT_LENGTH, code) => return Ok(old(GroupVersion::V2, code.into())),
        _ => {}
    }
    let (fixed, rest) = split_fixed::<V3_QUERY>("IGMPv3 query", bytes)?;
    let (sources, _) = GroupSources::split(rest, half(fixed, 10), false)?;
    Ok(GroupQuery {
        version: GroupVersion::V3,
        max_response: decode_byte(code) * TENTH,
        group,
        robustness: fixed[8] & 7,
        interval: decode_byte(fixed[9]),
        sources,
    })
}

/// Writes a message of IGMPv1 or IGMPv2, and returns its length.
pub(crate) fn emit_short(kind: u8, group: Ipv4Addr, bytes: &mut [u8]) -> usize {
    let [a, b, c, d] = group.octets();
    *room::<SHORT_LENGTH>(bytes) = [kind, 0, 0, 0, a, b, c, d];
    finish(&mut bytes[..SHORT_LENGTH])
}

/// Writes the checksum into `message`, and returns the length of `message` in bytes.
pub(crate) fn finish(message: &mut [u8]) -> usize {
    let checksum = Sum::of(message).finish();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupRecordKind, GroupReport, IpHeader, Protocol, group_membership};

    /// Fills in the checksum, and parses the message.
    fn parsed(bytes: &mut [u8]) -> Result<Option<GroupMessage<'_>>, Malformed> {
        finish(bytes);
        parse(bytes)
    }

    fn query(bytes: &mut [u8]) -> GroupQuery<'_> {
        match parsed(bytes) {
            Ok(Some(GroupMessage::Query(query))) => query,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_length_of_a_query_determines_its_version() {
        let mut first = [0x11, 0, 0, 0, 0, 0, 0, 0];
        let found = query(&mut first);
        assert_eq!(
            (found.version, found.max_response, found.group),
            (GroupVersion::V1, 10_000, None)
        );
        let mut second = [0x11, 200, 0, 0, 239, 1, 2, 3];
        let found = query(&mut second);
        let group = Some(IpAddr::from([239, 1, 2, 3]));
        assert_eq!(
            (found.version, found.max_response, found.group),
            (GroupVersion::V2, 20_000, group)
        );
        let mut third = [0x11, 100, 0, 0, 239, 1, 2, 3, 0x0a, 125, 0, 1, 10, 0, 0, 7];
        let found = query(&mut third);
        assert_eq!((found.version, found.max_response), (GroupVersion::V3, 10_000));
        assert_eq!((found.robustness, found.interval, found.sources.len()), (2, 125, 1));
        assert!(found.sources.iter().eq([IpAddr::from([10, 0, 0, 7])]));
        assert!(parsed(&mut third[..10]).is_err(), "no version has this length");
        assert!(parsed(&mut third[..14]).is_err(), "a source is missing");
    }

    #[test]
    fn messages_of_all_versions_are_parsed_as_they_were_emitted() {
        let group = Ipv4Addr::new(239, 1, 2, 3);
        let mut bytes = [0; 64];
        let receivers = REPORT_RECEIVERS.into();
        let header = IpHeader::new([10, 0, 0, 1].into(), receivers, Protocol::IGMP).unwrap();
        for version in [GroupVersion::V1, GroupVersion::V2] {
            let length =
                group_membership::emit_old_report(&header, version, group.into(), &mut bytes);
            let expected = GroupMessage::OldReport { version, group: group.into() };
            assert_eq!(parse(&bytes[..length]), Ok(Some(expected)));
        }
        let length = group_membership::emit_leave(&header, group.into(), &mut bytes);
        assert_eq!(parse(&bytes[..length]), Ok(Some(GroupMessage::Leave { group: group.into() })));
        let mut report = GroupReport::new(&mut bytes);
        let source = [IpAddr::from([10, 0, 0, 7])];
        assert_eq!(report.record(GroupRecordKind::ToExclude, group.into(), &source), Some(1));
        let length = report.finish(&header);
        assert_eq!((length, &bytes[..2], &bytes[4..8]), (20, &[0x22, 0][..], &[0, 0, 0, 1][..]));
        let Ok(Some(GroupMessage::Report(records))) = parse(&bytes[..length]) else { panic!() };
        let record = records.iter().next().unwrap();
        assert_eq!((record.kind, record.group), (GroupRecordKind::ToExclude, group.into()));
        assert!(record.sources.iter().eq(source));
    }

    /// RFC 3376 §4.1.10 and §4.2.11: bytes after the last field of a query or report are included
    /// in the checksum, and otherwise ignored.
    #[test]
    fn bytes_behind_a_message_are_covered_by_its_checksum_and_ignored() {
        let mut bytes = [0x11, 100, 0, 0, 239, 1, 2, 3, 2, 125, 0, 0, 7, 7, 7, 7, 7, 8];
        let found = query(&mut bytes);
        assert_eq!((found.version, found.sources.len()), (GroupVersion::V3, 0));
        bytes[17] = 9;
        assert!(parse(&bytes).is_err(), "the checksum is that of other bytes");
        let mut bytes = [0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 239, 1, 2, 3, 7, 7, 7, 7];
        let Ok(Some(GroupMessage::Report(records))) = parsed(&mut bytes) else { panic!() };
        assert_eq!(records.iter().count(), 1);
        bytes[19] = 9;
        assert!(parse(&bytes).is_err(), "the checksum is that of other bytes");
    }

    #[test]
    fn a_router_alert_is_found_among_options() {
        assert!(has_router_alert(&ROUTER_ALERT));
        assert!(has_router_alert(&[1, 7, 3, 0, 0x94, 4, 0, 0]));
        for options in [&[][..], &[0, 0x94, 4, 0], &[7, 0, 0x94, 4], &[7, 9, 0x94, 4], &[7]] {
            assert!(!has_router_alert(options), "{options:?}");
        }
    }

    #[test]
    fn wrong_checksums_are_refused_and_unknown_types_ignored() {
        let mut bytes = [0x11, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(parse(&bytes), Err(Malformed::Checksum { what: "IGMP message" }));
        bytes[0] = 0x30;
        assert_eq!(parsed(&mut bytes), Ok(None));
        assert!(parse(&bytes[..7]).is_err());
    }
}

//! Multicast Listener Discovery (MLD), versions 1 and 2 (RFC 2710, RFC 3810). Its messages are
//! ICMPv6 messages.

use crate::group_membership::{GroupRecords, GroupSources, decode_byte, decode_half};
use crate::layout::{half, octets, room, split_fixed};
use crate::{
    GroupMessage, GroupQuery, GroupReport, GroupVersion, Ipv6Header, Malformed, Protocol, Sum,
};
use core::net::{IpAddr, Ipv6Addr};

/// The multicast address to which hosts send reports of MLDv2 (RFC 3810 §5.2.14).
pub const REPORT_RECEIVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
/// The Hop-by-Hop Options header of packets with an MLD message. Its Router Alert option makes
/// routers examine the packet (RFC 2711).
pub const ROUTER_ALERT: [u8; 8] = [Protocol::ICMPV6.number(), 0, 5, 2, 0, 0, 1, 0];
/// The hop limit of all MLD messages, which must not leave the link.
pub const HOP_LIMIT: u8 = 1;
/// The length of an MLDv1 message in bytes.
pub(crate) const SHORT_LENGTH: usize = 24;

const QUERY: u8 = 130;
pub(crate) const V1_REPORT: u8 = 131;
pub(crate) const DONE: u8 = 132;
pub(crate) const V2_REPORT: u8 = 143;
/// The length of an MLDv2 query without sources, in bytes.
const V2_QUERY: usize = 28;

/// Parses the ICMPv6 message that fills `bytes`. Returns `None` if it is not an MLD message. The
/// caller must have verified the checksum. [`Icmpv6Message::parse`](crate::Icmpv6Message::parse)
/// verifies it, and returns MLD messages as [`Icmpv6Message::Other`](crate::Icmpv6Message::Other).
///
/// The caller must also check the source address and the Router Alert option.
///
/// # Errors
/// [`Malformed`] if the message is truncated, or a query has an invalid length (RFC 3810 §8.1).
pub fn parse(bytes: &[u8]) -> Result<Option<GroupMessage<'_>>, Malformed> {
    let Some(&kind) = bytes.first() else { return Ok(None) };
    if kind == V2_REPORT {
        let (fixed, rest) = split_fixed::<{ GroupReport::HEADER }>("MLDv2 report", bytes)?;
        let records = GroupRecords::parse(rest, half(fixed, 6), true)?;
        return Ok(Some(GroupMessage::Report(records)));
    }
    if ![QUERY, V1_REPORT, DONE].contains(&kind) {
        return Ok(None);
    }
    let (fixed, _) = split_fixed::<SHORT_LENGTH>("MLD message", bytes)?;
    let group = Ipv6Addr::from_octets(octets(fixed, 8));
    Ok(Some(match kind {
        QUERY => GroupMessage::Query(parse_query(half(fixed, 4), group, bytes)?),
        V1_REPORT => GroupMessage::OldReport { version: GroupVersion::V2, group: group.into() },
        _ => GroupMessage::Leave { group: group.into() },
    }))
}

/// Do these extension headers begin with a Hop-by-Hop Options header that contains a Router Alert
/// option for MLD?
#[must_use]
pub fn has_router_alert(extensions: &[u8]) -> bool {
    let length = extensions.get(1).map_or(0, |&units| (usize::from(units) + 1) * 8);
    let mut rest = extensions.get(2..length).unwrap_or_default();
    loop {
        rest = match *rest {
            [5, 2, 0, 0, ..] => return true,
            [0, ..] => &rest[1..],
            [_, length, ..] => rest.get(usize::from(length) + 2..).unwrap_or_default(),
            _ => return false,
        };
    }
}

fn parse_query(code: u16, group: Ipv6Addr, bytes: &[u8]) -> Result<GroupQuery<'_>, Malformed> {
    let group = (!group.is_unspecified()).then_some(IpAddr::V6(group));
    // The length of a query determines its version (RFC 3810 §8.1): MLDv1 queries have 24 bytes,
    // MLDv2 queries at least 28. `GroupVersion` is named after the versions of IGMP, in which `V2`
    // corresponds to MLDv1.
    if bytes.len() == SHORT_LENGTH {
        return Ok(GroupQuery {
            version: GroupVersion::V2,
            max_response: code.into(),
            group,
            robustness: 0,
            interval: 0,
            sources: GroupSources::default(),
        });
    }
    let (fixed, rest) = split_fixed::<V2_QUERY>("MLDv2 query", bytes)?;
    let (sources, _) = GroupSources::split(rest, half(fixed, 26), true)?;
    Ok(GroupQuery {
        version: GroupVersion::V3,
        max_response: decode_half(code),
        group,
        robustness: fixed[24] & 7,
        interval: decode_byte(fixed[25]),
        sources,
    })
}

/// Writes an MLDv1 message, and returns its length.
pub(crate) fn emit_short(
    header: &Ipv6Header,
    kind: u8,
    group: Ipv6Addr,
    bytes: &mut [u8],
) -> usize {
    let fixed = room::<SHORT_LENGTH>(bytes);
    fixed[..8].copy_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    fixed[8..].copy_from_slice(&group.octets());
    finish(header, fixed)
}

/// Writes the checksum into `message`, and returns the length of `message` in bytes.
pub(crate) fn finish(header: &Ipv6Header, message: &mut [u8]) -> usize {
    let pseudo = header.pseudo_header(Protocol::ICMPV6, message.len());
    let checksum = (pseudo + Sum::of(message)).finish();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupRecordKind, Icmpv6Message, IpHeader, group_membership};

    fn header() -> Ipv6Header {
        let source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        Ipv6Header::new(source, REPORT_RECEIVERS, Protocol::ICMPV6)
    }

    fn parsed(bytes: &[u8]) -> GroupMessage<'_> {
        let message = Icmpv6Message::parse(&header(), bytes);
        assert!(matches!(message, Ok(Icmpv6Message::Other { .. })), "{message:?}");
        parse(bytes).unwrap().unwrap()
    }

    /// RFC 3810 §5.1.12 and §5.2.11: bytes after the last field of a query or report are included
    /// in the checksum, and otherwise ignored.
    #[test]
    fn bytes_behind_a_message_are_ignored() {
        let mut bytes = [0; V2_QUERY + 6];
        bytes[0] = QUERY;
        bytes[24..28].copy_from_slice(&[2, 125, 0, 0]);
        bytes[28..].fill(7);
        finish(&header(), &mut bytes);
        let GroupMessage::Query(query) = parsed(&bytes) else { panic!() };
        assert_eq!((query.version, query.sources.len()), (GroupVersion::V3, 0));
        let mut bytes = [0; 8 + 20 + 5];
        (bytes[0], bytes[7], bytes[8]) = (V2_REPORT, 1, 4);
        bytes[28..].fill(7);
        finish(&header(), &mut bytes);
        let GroupMessage::Report(records) = parsed(&bytes) else { panic!() };
        assert_eq!(records.iter().count(), 1);
        bytes[32] = 8;
        assert!(Icmpv6Message::parse(&header(), &bytes).is_err(), "the checksum covers all");
    }

    #[test]
    fn messages_of_both_versions_are_parsed_as_they_were_emitted() {
        let group: Ipv6Addr = "ff05::7".parse().unwrap();
        let (ip, mut bytes) = (IpHeader::V6(header()), [0; 80]);
        let length =
            group_membership::emit_old_report(&ip, GroupVersion::V2, group.into(), &mut bytes);
        let version = GroupVersion::V2;
        let expected = GroupMessage::OldReport { version, group: group.into() };
        assert_eq!((parsed(&bytes[..length]), bytes[0]), (expected, 131));
        let length = group_membership::emit_leave(&ip, group.into(), &mut bytes);
        assert_eq!(parsed(&bytes[..length]), GroupMessage::Leave { group: group.into() });
        let mut report = GroupReport::new(&mut bytes);
        let source = [IpAddr::from([1; 16])];
        assert_eq!(report.record(GroupRecordKind::Allow, group.into(), &source), Some(1));
        let length = report.finish(&ip);
        let GroupMessage::Report(records) = parsed(&bytes[..length]) else { panic!() };
        let record = records.iter().next().unwrap();
        assert_eq!((length, record.kind, record.group), (44, GroupRecordKind::Allow, group.into()));
        assert!(record.sources.iter().eq(source));
    }

    #[test]
    fn a_router_alert_is_found_among_options() {
        assert!(has_router_alert(&ROUTER_ALERT));
        assert!(has_router_alert(&[58, 0, 0, 0, 5, 2, 0, 0]));
        for header in
            [&[][..], &[58, 0, 1, 4, 5, 2, 0, 0], &[58, 0, 5, 2, 0, 1, 1, 0], &[58, 9, 5, 2]]
        {
            assert!(!has_router_alert(header), "{header:?}");
        }
    }

    #[test]
    fn the_length_of_a_query_determines_its_version() {
        let mut bytes = [0; 44];
        bytes[..6].copy_from_slice(&[QUERY, 0, 0, 0, 0x80, 1]);
        bytes[24..28].copy_from_slice(&[3, 125, 0, 1]);
        for (length, version, max_response) in
            [(24, GroupVersion::V2, 32_769), (44, GroupVersion::V3, 32_776)]
        {
            bytes[2..4].fill(0);
            finish(&header(), &mut bytes[..length]);
            let GroupMessage::Query(query) = parsed(&bytes[..length]) else { panic!() };
            assert_eq!((query.version, query.max_response), (version, max_response));
            assert_eq!((query.group, query.sources.len()), (None, (length - 24) / 20));
        }
        assert!(parse(&bytes[..27]).is_err(), "no version has this length");
        assert_eq!(parse(&[128; 8]), Ok(None));
    }
}

//! Queries and reports of memberships in multicast groups, which IGMP and MLD share (RFC 3376, RFC
//! 3810). `igmp` and `icmpv6::mld` encode them.

use crate::icmpv6::mld;
use crate::{IpHeader, Malformed, igmp};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A version of IGMP or MLD. The variants are named after the versions of IGMP; MLDv1 corresponds
/// to IGMPv2, and MLDv2 to IGMPv3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupVersion {
    /// IGMPv1 (RFC 1112): hosts report the groups that they join, and do not announce leaving.
    V1,
    /// IGMPv2 (RFC 2236) and MLDv1 (RFC 2710): hosts also announce that they leave a group.
    V2,
    /// IGMPv3 (RFC 3376) and MLDv2 (RFC 3810): hosts can also select the sources of a group.
    V3,
}

/// The kind of a group record in a report (RFC 3376 §4.2.12, RFC 3810 §5.2.12). The discriminants
/// are the types on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRecordKind {
    /// The current state: only the listed sources are received.
    IsInclude = 1,
    /// The current state: all but the listed sources are received.
    IsExclude = 2,
    /// A change of the filter mode: from now on only the listed sources are received.
    ToInclude = 3,
    /// A change of the filter mode: from now on all but the listed sources are received.
    ToExclude = 4,
    /// A change of the sources: the listed sources are received in addition to those received
    /// before.
    Allow = 5,
    /// A change of the sources: the listed sources are no longer received.
    Block = 6,
}

impl GroupRecordKind {
    const ALL: [Self; 6] = [
        Self::IsInclude,
        Self::IsExclude,
        Self::ToInclude,
        Self::ToExclude,
        Self::Allow,
        Self::Block,
    ];

    fn read(kind: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&known| known as u8 == kind)
    }
}

/// The source addresses in a received query or record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSources<'a> {
    bytes: &'a [u8],
    is_ipv6: bool,
}

impl<'a> GroupSources<'a> {
    /// Splits the addresses of `count` sources from the rest of `bytes`.
    pub(crate) fn split(
        bytes: &'a [u8],
        count: u16,
        is_ipv6: bool,
    ) -> Result<(Self, &'a [u8]), Malformed> {
        let needed = usize::from(count) * address_length(is_ipv6);
        let what = "sources of a group";
        let (bytes, rest) = bytes.split_at_checked(needed).ok_or(Malformed::Truncated {
            what,
            needed,
            had: bytes.len(),
        })?;
        Ok((Self { bytes, is_ipv6 }, rest))
    }

    /// Returns an iterator over the source addresses.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> + 'a {
        let is_ipv6 = self.is_ipv6;
        self.bytes.chunks_exact(address_length(is_ipv6)).filter_map(move |octets| {
            if is_ipv6 {
                octets.first_chunk().map(|octets| Ipv6Addr::from_octets(*octets).into())
            } else {
                octets.first_chunk().map(|octets| Ipv4Addr::from_octets(*octets).into())
            }
        })
    }

    /// Returns the number of source addresses.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len() / address_length(self.is_ipv6)
    }

    /// Is the list of addresses empty?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A query of a router for the groups that hosts have joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupQuery<'a> {
    /// The version of the protocol that the router supports.
    pub version: GroupVersion,
    /// The longest time for which a host may delay its response, in milliseconds.
    pub max_response: u32,
    /// The group to which the query refers; `None` for all groups.
    pub group: Option<IpAddr>,
    /// The router's robustness variable: the number of times that hosts should send the report of a
    /// change. Zero if the router does not specify it.
    pub robustness: u8,
    /// The time between two general queries of the router, in seconds; zero if the router does not
    /// specify it.
    pub interval: u32,
    /// The sources to which the query refers; empty for all sources.
    pub sources: GroupSources<'a>,
}

/// A record of a received report: the state of one group, or its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRecord<'a> {
    /// The kind of the record: the group's current state, or a change of it.
    pub kind: GroupRecordKind,
    /// The address of the group.
    pub group: IpAddr,
    /// The sources that the record lists.
    pub sources: GroupSources<'a>,
}

/// The records of a received report. Records of unknown kinds are skipped (RFC 3376 §4.2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRecords<'a> {
    bytes: &'a [u8],
    count: u16,
    is_ipv6: bool,
}

impl<'a> GroupRecords<'a> {
    /// Parses `count` records at the start of `bytes`.
    pub(crate) fn parse(bytes: &'a [u8], count: u16, is_ipv6: bool) -> Result<Self, Malformed> {
        let mut rest = bytes;
        for _ in 0..count {
            (_, rest) = split_record(rest, is_ipv6)?;
        }
        Ok(Self { bytes, count, is_ipv6 })
    }

    /// Returns an iterator over the records whose kind is known.
    pub fn iter(&self) -> impl Iterator<Item = GroupRecord<'a>> + 'a {
        let (mut rest, is_ipv6) = (self.bytes, self.is_ipv6);
        let records = (0..self.count).map_while(move |_| {
            let (record, after) = split_record(rest, is_ipv6).ok()?;
            rest = after;
            Some(record)
        });
        records.flatten()
    }
}

/// Splits a record from the rest of `bytes`. The record is `None` if its kind is unknown.
fn split_record(
    bytes: &[u8],
    is_ipv6: bool,
) -> Result<(Option<GroupRecord<'_>>, &[u8]), Malformed> {
    let needed = GroupReport::RECORD + address_length(is_ipv6);
    let truncated = Malformed::Truncated { what: "group record", needed, had: bytes.len() };
    let (head, rest) = bytes.split_at_checked(needed).ok_or(truncated)?;
    let (fixed, group) = head.split_first_chunk::<{ GroupReport::RECORD }>().ok_or(truncated)?;
    let [kind, auxiliary, high, low] = *fixed;
    let (sources, rest) = GroupSources::split(rest, u16::from_be_bytes([high, low]), is_ipv6)?;
    let auxiliary = usize::from(auxiliary) * 4;
    let rest = rest.get(auxiliary..).ok_or(Malformed::Truncated {
        what: "auxiliary data of a group record",
        needed: auxiliary,
        had: rest.len(),
    })?;
    let group = GroupSources { bytes: group, is_ipv6 }.iter().next().ok_or(truncated)?;
    let kind = GroupRecordKind::read(kind);
    Ok((kind.map(|kind| GroupRecord { kind, group, sources }), rest))
}

/// A message of IGMP or MLD about memberships.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupMessage<'a> {
    /// A query of a router.
    Query(GroupQuery<'a>),
    /// A report of IGMPv3 or MLDv2.
    Report(GroupRecords<'a>),
    /// A report of IGMPv1, IGMPv2 or MLDv1, about one group.
    OldReport {
        /// The version of the message.
        version: GroupVersion,
        /// The group that the host has joined.
        group: IpAddr,
    },
    /// The announcement of IGMPv2 or MLDv1 that a host leaves a group.
    Leave {
        /// The group that the host leaves.
        group: IpAddr,
    },
}

/// A writer for a report of IGMPv3 or MLDv2. It leaves space for the header before the records.
#[derive(Debug)]
pub struct GroupReport<'a> {
    bytes: &'a mut [u8],
    length: usize,
    records: u16,
}

impl<'a> GroupReport<'a> {
    /// The length of the header of a report in bytes.
    pub const HEADER: usize = 8;
    /// The length of a record in bytes, without the addresses of its group and of its sources.
    pub const RECORD: usize = 4;

    /// Creates a writer for a report in the buffer `bytes`. The report will not be longer than this
    /// buffer.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`GroupReport::HEADER`].
    #[must_use]
    pub fn new(bytes: &'a mut [u8]) -> Self {
        assert!(bytes.len() >= Self::HEADER, "room for the header of a report");
        Self { bytes, length: Self::HEADER, records: 0 }
    }

    /// Appends a record with as many of the `sources` as fit. Returns the number of sources
    /// written, or `None` if there is no room for a record without sources.
    pub fn record(
        &mut self,
        kind: GroupRecordKind,
        group: IpAddr,
        sources: &[IpAddr],
    ) -> Option<usize> {
        let size = address_length(group.is_ipv6());
        let room = self.bytes.len().checked_sub(self.length + Self::RECORD + size)?;
        let fitting = sources.len().min(room / size);
        let count = u16::try_from(fitting).ok()?;
        let [high, low] = count.to_be_bytes();
        self.append(&[kind as u8, 0, high, low]);
        for address in [group].iter().chain(&sources[..fitting]) {
            match address {
                IpAddr::V4(address) => self.append(&address.octets()),
                IpAddr::V6(address) => self.append(&address.octets()),
            }
        }
        self.records += 1;
        Some(fitting)
    }

    fn append(&mut self, part: &[u8]) {
        let end = self.length + part.len();
        self.bytes[self.length..end].copy_from_slice(part);
        self.length = end;
    }

    /// Completes the report with its header and checksum, and returns its length in bytes. `header`
    /// is the IP header of the packet that will carry the report.
    #[must_use]
    pub fn finish(self, header: &IpHeader) -> usize {
        match header {
            IpHeader::V4(_) => igmp::finish(self.with_header(igmp::V3_REPORT)),
            IpHeader::V6(header) => mld::finish(header, self.with_header(mld::V2_REPORT)),
        }
    }

    /// Writes the header of the report, without a checksum. Returns the whole report.
    fn with_header(self, kind: u8) -> &'a mut [u8] {
        let [high, low] = self.records.to_be_bytes();
        self.bytes[..Self::HEADER].copy_from_slice(&[kind, 0, 0, 0, 0, 0, high, low]);
        &mut self.bytes[..self.length]
    }
}

/// The length of the longest message of IGMPv1, IGMPv2 and MLDv1, in bytes.
pub const OLD_MESSAGE_LENGTH: usize = mld::SHORT_LENGTH;

/// Writes a report of IGMPv1, IGMPv2 or MLDv1 that a host has joined `group`. Returns its length,
/// or zero if the group and the IP header are of different IP versions.
///
/// # Panics
/// If `bytes` is shorter than [`OLD_MESSAGE_LENGTH`].
pub fn emit_old_report(
    header: &IpHeader,
    version: GroupVersion,
    group: IpAddr,
    bytes: &mut [u8],
) -> usize {
    match (header, group) {
        (IpHeader::V4(_), IpAddr::V4(group)) if version == GroupVersion::V1 => {
            igmp::emit_short(igmp::V1_REPORT, group, bytes)
        }
        (IpHeader::V4(_), IpAddr::V4(group)) => igmp::emit_short(igmp::V2_REPORT, group, bytes),
        (IpHeader::V6(header), IpAddr::V6(group)) => {
            mld::emit_short(header, mld::V1_REPORT, group, bytes)
        }
        _ => 0,
    }
}

/// Writes the announcement of IGMPv2 or MLDv1 that a host leaves `group`. Returns its length, or
/// zero if the group and the IP header are of different IP versions.
///
/// # Panics
/// If `bytes` is shorter than [`OLD_MESSAGE_LENGTH`].
pub fn emit_leave(header: &IpHeader, group: IpAddr, bytes: &mut [u8]) -> usize {
    match (header, group) {
        (IpHeader::V4(_), IpAddr::V4(group)) => igmp::emit_short(igmp::LEAVE, group, bytes),
        (IpHeader::V6(header), IpAddr::V6(group)) => {
            mld::emit_short(header, mld::DONE, group, bytes)
        }
        _ => 0,
    }
}

/// Returns the length of an address in bytes.
const fn address_length(is_ipv6: bool) -> usize {
    if is_ipv6 { 16 } else { 4 }
}

/// Decodes a time or interval in eight bits: a number up to 127, or a floating-point number (RFC
/// 3376 §4.1.1, §4.1.7).
pub(crate) const fn decode_byte(code: u8) -> u32 {
    let code = code as u32;
    if code < 0x80 { code } else { (code & 0xf | 0x10) << ((code >> 4 & 7) + 3) }
}

/// Decodes a time in sixteen bits: a number up to 32,767, or a floating-point number (RFC 3810
/// §5.1.3).
pub(crate) const fn decode_half(code: u16) -> u32 {
    let code = code as u32;
    if code < 0x8000 { code } else { (code & 0xfff | 0x1000) << ((code >> 12 & 7) + 3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_linear_and_then_exponential() {
        assert_eq!([0, 127, 0x80, 0xff].map(decode_byte), [0, 127, 128, 31_744]);
        assert_eq!([0, 0x7fff, 0x8000, 0xffff].map(decode_half), [0, 32_767, 32_768, 8_387_584]);
    }

    #[test]
    fn a_record_takes_the_sources_that_fit() {
        let sources: [IpAddr; 3] = [1, 2, 3].map(|last| [192, 0, 2, last].into());
        let mut bytes = [0; 8 + 8 + 8 + 7];
        let mut report = GroupReport::new(&mut bytes);
        let group = [239, 1, 1, 1].into();
        assert_eq!(report.record(GroupRecordKind::Allow, group, &sources[..1]), Some(1));
        assert_eq!(report.record(GroupRecordKind::Block, group, &sources), Some(0));
        assert_eq!(report.record(GroupRecordKind::Block, group, &sources), None);
        let written = report.with_header(0x22);
        assert_eq!(written[..8], [0x22, 0, 0, 0, 0, 0, 0, 2]);
        let records = GroupRecords::parse(&written[8..], 2, false).unwrap();
        let mut found = records.iter();
        let first = found.next().unwrap();
        assert_eq!((first.kind, first.group), (GroupRecordKind::Allow, group));
        assert!(first.sources.iter().eq([sources[0]]));
        assert!(found.next().is_some_and(|record| record.sources.is_empty()));
        assert!(GroupRecords::parse(&written[8..], 3, false).is_err());
    }

    #[test]
    fn unknown_records_are_skipped_with_their_auxiliary_data() {
        let bytes = [9, 1, 0, 1, 239, 0, 0, 1, 10, 0, 0, 1, 7, 7, 7, 7, 2, 0, 0, 0, 239, 0, 0, 2];
        let records = GroupRecords::parse(&bytes, 2, false).unwrap();
        assert!(records.iter().map(|record| record.group).eq([IpAddr::from([239, 0, 0, 2])]));
        assert!(GroupRecords::parse(&bytes[..14], 1, false).is_err());
    }
}

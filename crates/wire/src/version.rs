//! Types that represent the IP versions. The code that recognises common packets has such a type as
//! a parameter, so it is compiled once for each version.

use crate::ipv4::fixed_header;
use crate::plain_packet::{add, is_valid, low_word};
use crate::{Ipv4Header, Ipv6Header, Protocol, TcpFlags, TcpHeader, TcpOptions, TypeOfService};
use core::fmt::Debug;

/// The length of a TCP header whose only option is timestamps, in bytes.
pub(crate) const TIMESTAMPED: usize = TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;

/// The length of an IPv4 header and a TCP header, both without options, in bytes.
pub(crate) const HEAD_V4: usize = Ipv4Header::LENGTH + TcpHeader::LENGTH;
pub(crate) const HEAD_V6: usize = Ipv6Header::LENGTH + TcpHeader::LENGTH;
/// The length of an IPv4 header without options and a TCP header with timestamps only, in bytes.
pub(crate) const TIMESTAMPED_V4: usize = Ipv4Header::LENGTH + TIMESTAMPED;
pub(crate) const TIMESTAMPED_V6: usize = Ipv6Header::LENGTH + TIMESTAMPED;

/// IPv4 as a type argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum V4 {}

/// IPv6 as a type argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum V6 {}

/// An IP version as a type parameter. It describes the layout of TCP packets without IP options and
/// extension headers. Generic code is compiled for each version, so offsets and lengths are
/// constants.
pub trait IpVersion: Copy + Debug + Eq + 'static {
    /// The length of the IP header without options, in bytes.
    const HEADER: usize;
    /// The source and destination addresses, as bytes of the packet.
    type Addresses: Copy + Debug + Eq;
    /// The source and destination addresses, then the source and destination ports, as bytes of the
    /// packet.
    type Ends: Copy + Debug + Eq;
    /// The IP and TCP headers without options.
    type Head: AsRef<[u8]>;
    /// The IP header and a TCP header with timestamps and no other option.
    type Headers: Copy + Debug + AsRef<[u8]> + AsMut<[u8]>;
    /// Headers of zeros, which no packet matches.
    const NO_HEADERS: Self::Headers;

    /// Returns the IP and TCP headers at the start of `bytes`; `None` if `bytes` is too short.
    fn head(bytes: &[u8]) -> Option<&Self::Head>;
    /// Returns the length of the packet, if its IP header is valid and has no options, and its
    /// payload is an unfragmented TCP segment.
    fn plain_length(head: &Self::Head) -> Option<usize>;
    /// Does this look like an unfragmented TCP packet without IP options? Verifies neither lengths
    /// nor checksums.
    fn is_plain(head: &Self::Head) -> bool;
    /// Returns the type of service or the traffic class.
    fn type_of_service(head: &Self::Head) -> TypeOfService;
    /// Returns the TTL or hop limit.
    fn time_to_live(head: &Self::Head) -> u8;
    /// Returns both addresses, as bytes of the packet.
    fn addresses(head: &Self::Head) -> Self::Addresses;
    /// Returns both addresses, then both ports, as bytes of the packet.
    fn ends(head: &Self::Head) -> Self::Ends;
    /// Returns the addresses and ports in headers with timestamps, in the form of
    /// [`ends`](Self::ends).
    fn ends_of(headers: &Self::Headers) -> Self::Ends;
    /// Returns the contribution of both addresses to the checksum: their ones'-complement sum, not
    /// yet folded to 16 bits.
    fn address_sum(addresses: &Self::Addresses) -> u64;
    /// Splits headers with timestamps from the rest of `bytes`; `None` if `bytes` is too short.
    fn split(bytes: &[u8]) -> Option<(&Self::Headers, &[u8])>;
    /// Can `found` be the headers of the next data packet of a flow? `known` are the expected
    /// headers: those of the previous packet, but with the next sequence number. All fields are
    /// compared except the checksum of the segment.
    fn is_next_data(known: &Self::Headers, found: &Self::Headers) -> bool;
    /// Can `found` be the headers of a later ACK of a flow? `known` are the headers of an earlier
    /// ACK of this flow. The checksum of the segment is not verified.
    fn is_later_ack(known: &Self::Headers, found: &Self::Headers) -> bool;
}

impl IpVersion for V4 {
    const HEADER: usize = Ipv4Header::LENGTH;
    type Addresses = [u8; 8];
    type Ends = [u8; 12];
    type Head = [u8; HEAD_V4];
    type Headers = [u8; TIMESTAMPED_V4];
    const NO_HEADERS: Self::Headers = [0; TIMESTAMPED_V4];

    #[inline(always)]
    fn head(bytes: &[u8]) -> Option<&Self::Head> {
        bytes.first_chunk()
    }

    #[inline(always)]
    fn plain_length(head: &Self::Head) -> Option<usize> {
        /// A mask for the first eight bytes: version, header length and fragment fields.
        const SHAPE: u64 = u64::from_ne_bytes([0xff, 0, 0, 0, 0, 0, 0x3f, 0xff]);
        /// The value of the masked bytes in a packet without options and fragmentation: version 4,
        /// a header of five words, and zero in the fragment fields.
        const PLAIN: u64 = u64::from_ne_bytes([0x45, 0, 0, 0, 0, 0, 0, 0]);
        let (words, _) = head.as_chunks::<8>();
        let first = u64::from_ne_bytes(words[0]);
        if first & SHAPE != PLAIN || head[9] != Protocol::TCP.number() {
            return None;
        }
        let sum = add(add(first, u64::from_ne_bytes(words[1])), low_word(words[2]));
        is_valid(sum).then_some(usize::from(u16::from_be_bytes([head[2], head[3]])))
    }

    #[inline(always)]
    fn is_plain(head: &Self::Head) -> bool {
        head[0] == 0x45 && head[9] == Protocol::TCP.number()
    }

    #[inline(always)]
    fn type_of_service(head: &Self::Head) -> TypeOfService {
        TypeOfService::from_byte(head[1])
    }

    #[inline(always)]
    fn time_to_live(head: &Self::Head) -> u8 {
        head[8]
    }

    #[inline(always)]
    fn addresses(head: &Self::Head) -> Self::Addresses {
        Self::ends(head).as_chunks().0[0]
    }

    #[inline(always)]
    fn ends(head: &Self::Head) -> Self::Ends {
        head[12..].first_chunk().copied().unwrap_or_default()
    }

    #[inline(always)]
    fn ends_of(headers: &Self::Headers) -> Self::Ends {
        headers[12..].first_chunk().copied().unwrap_or_default()
    }

    #[inline(always)]
    fn address_sum(addresses: &Self::Addresses) -> u64 {
        u64::from_ne_bytes(*addresses)
    }

    #[inline(always)]
    fn split(bytes: &[u8]) -> Option<(&Self::Headers, &[u8])> {
        bytes.split_first_chunk()
    }

    #[inline(always)]
    fn is_next_data(known: &Self::Headers, found: &Self::Headers) -> bool {
        is_like_v4(
            known,
            found,
            &const { mask(Self::HEADER, DATA, &[]) },
            &const { mask(Self::HEADER, DATA, IPV4) },
        )
    }

    #[inline(always)]
    fn is_later_ack(known: &Self::Headers, found: &Self::Headers) -> bool {
        is_like_v4(
            known,
            found,
            &const { mask(Self::HEADER, ACK, &[]) },
            &const { mask(Self::HEADER, ACK, IPV4) },
        )
    }
}

impl V4 {
    /// Parses the IPv4 header.
    #[inline]
    pub(crate) fn header(head: &[u8; HEAD_V4]) -> Ipv4Header {
        let (fixed, _) = head
            .split_first_chunk()
            .unwrap_or_else(|| unreachable!("the first bytes of the head are the header"));
        fixed_header(fixed)
    }
}

impl IpVersion for V6 {
    const HEADER: usize = Ipv6Header::LENGTH;
    type Addresses = [u8; 32];
    type Ends = [u8; 36];
    type Head = [u8; HEAD_V6];
    type Headers = [u8; TIMESTAMPED_V6];
    const NO_HEADERS: Self::Headers = [0; TIMESTAMPED_V6];

    #[inline(always)]
    fn head(bytes: &[u8]) -> Option<&Self::Head> {
        bytes.first_chunk()
    }

    #[inline(always)]
    fn plain_length(head: &Self::Head) -> Option<usize> {
        let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
        Self::is_plain(head).then_some(Self::HEADER + length)
    }

    #[inline(always)]
    fn is_plain(head: &Self::Head) -> bool {
        head[0] >> 4 == 6 && head[6] == Protocol::TCP.number()
    }

    #[inline(always)]
    fn type_of_service(head: &Self::Head) -> TypeOfService {
        TypeOfService::from_byte(head[0] << 4 | head[1] >> 4)
    }

    #[inline(always)]
    fn time_to_live(head: &Self::Head) -> u8 {
        head[7]
    }

    #[inline(always)]
    fn addresses(head: &Self::Head) -> Self::Addresses {
        head[8..].first_chunk().copied().unwrap_or_default()
    }

    #[inline(always)]
    fn ends(head: &Self::Head) -> Self::Ends {
        head[8..].first_chunk().copied().unwrap_or([0; 36])
    }

    #[inline(always)]
    fn ends_of(headers: &Self::Headers) -> Self::Ends {
        headers[8..].first_chunk().copied().unwrap_or([0; 36])
    }

    #[inline(always)]
    fn address_sum(addresses: &Self::Addresses) -> u64 {
        let words = addresses.as_chunks::<8>().0;
        words.iter().fold(0, |sum, word| add(sum, u64::from_ne_bytes(*word)))
    }

    #[inline(always)]
    fn split(bytes: &[u8]) -> Option<(&Self::Headers, &[u8])> {
        bytes.split_first_chunk()
    }

    #[inline(always)]
    fn is_next_data(known: &Self::Headers, found: &Self::Headers) -> bool {
        differ_only(known, found, &const { mask(Self::HEADER, DATA, &[]) })
    }

    #[inline(always)]
    fn is_later_ack(known: &Self::Headers, found: &Self::Headers) -> bool {
        differ_only(known, found, &const { mask(Self::HEADER, ACK, &[]) })
    }
}

/// The offset of a byte in a header, and a mask of the bits of this byte in which two packets may
/// differ.
type Difference = (usize, u8);

#[allow(clippy::cast_possible_truncation, reason = "the flag is in the lower eight bits")]
const PUSH: u8 = TcpFlags::PSH.bits() as u8;

/// The bits in which the TCP header of a data packet may differ from the expected header: PSH and
/// the checksum. The sequence number must not differ, because the expected header contains the next
/// one.
const DATA: &[Difference] = &[(13, PUSH), (16, 0xff), (17, 0xff)];
/// The bits in which the TCP headers of consecutive ACKs of a flow may differ: acknowledgement
/// number, window and checksum.
const ACK: &[Difference] =
    &[(8, 0xff), (9, 0xff), (10, 0xff), (11, 0xff), (14, 0xff), (15, 0xff), (16, 0xff), (17, 0xff)];
/// The bits in which the IPv4 headers of consecutive packets of a flow may differ: identification
/// and header checksum.
const IPV4: &[Difference] = &[(4, 0xff), (5, 0xff), (10, 0xff), (11, 0xff)];

/// Returns a mask of the bits in which two packets may differ in their IP and TCP headers. `ip` and
/// `tcp` list these bits for each header. The TCP header is at offset `tcp_at`.
const fn mask<const LENGTH: usize>(
    tcp_at: usize,
    tcp: &[Difference],
    ip: &[Difference],
) -> [u8; LENGTH] {
    let mut mask = [0; LENGTH];
    let mut next = 0;
    while next < tcp.len() {
        mask[tcp_at + tcp[next].0] = tcp[next].1;
        next += 1;
    }
    next = 0;
    while next < ip.len() {
        mask[ip[next].0] = ip[next].1;
        next += 1;
    }
    mask
}

/// Do the headers `found` differ from the valid headers `known` only in permitted bits? The mask
/// `with_equal_ip` permits no differences in the IPv4 header. It is tried first, because
/// consecutive packets mostly have equal IPv4 headers. The mask `with_other_ip` permits such
/// differences, so the IPv4 checksum of `found` must then be verified.
#[inline(always)]
fn is_like_v4(
    known: &[u8; TIMESTAMPED_V4],
    found: &[u8; TIMESTAMPED_V4],
    with_equal_ip: &[u8; TIMESTAMPED_V4],
    with_other_ip: &[u8; TIMESTAMPED_V4],
) -> bool {
    differ_only(known, found, with_equal_ip)
        || (differ_only(known, found, with_other_ip) && is_header_intact(found))
}

/// Do the headers `known` and `found` differ only in bits of the mask `may_differ`?
#[inline(always)]
fn differ_only<const LENGTH: usize>(
    known: &[u8; LENGTH],
    found: &[u8; LENGTH],
    may_differ: &[u8; LENGTH],
) -> bool {
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let wrong = |known: &[u8; 8], found: &[u8; 8], may_differ: &[u8; 8]| {
        (word(known) ^ word(found)) & !word(may_differ)
    };
    let words = known.as_chunks().0.iter().zip(found.as_chunks().0).zip(may_differ.as_chunks().0);
    let mut any = words.fold(0, |any, ((known, found), may)| any | wrong(known, found, may));
    // The length of the headers need not be a multiple of eight: IPv4 and TCP with timestamps have
    // 52 bytes. The loop above leaves out the remaining four bytes. Comparing the last eight bytes
    // includes them.
    if let (Some(known), Some(found), Some(may)) =
        (known.last_chunk(), found.last_chunk(), may_differ.last_chunk())
    {
        any |= wrong(known, found, may);
    }
    any == 0
}

/// Is the checksum of the IPv4 header correct? This function is not inlined, because it is rarely
/// called: most IPv4 headers are equal to the header of the previous packet.
#[cold]
#[inline(never)]
fn is_header_intact(headers: &[u8; TIMESTAMPED_V4]) -> bool {
    let (words, _) = headers.as_chunks::<8>();
    let [first, second] = [words[0], words[1]].map(u64::from_ne_bytes);
    is_valid(add(add(first, second), low_word(words[2])))
}

/// Returns the eight bytes at offset `at` as a number in native byte order.
#[inline(always)]
pub(crate) fn word_at(headers: &[u8], at: usize) -> u64 {
    headers.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u64::from_ne_bytes)
}

//! IPv4 packets (RFC 791).

use crate::layout::{half, octets, room, split_fixed, word};
use crate::{Ecn, Malformed, Protocol, Sum, TypeOfService, checksum};
use core::net::Ipv4Addr;

/// The fixed part of a header. Its lengths come from the payload, its checksum from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// How routers should treat the packet, and whether one was congested.
    pub type_of_service: TypeOfService,
    /// What the fragments of one datagram have in common.
    pub identification: u16,
    /// DF: routers drop the packet where it does not fit, and say so.
    pub dont_fragment: bool,
    /// MF: fragments of the same datagram follow.
    pub more_fragments: bool,
    /// Where in the datagram's payload this one begins, in bytes. A multiple of eight.
    pub fragment_offset: u16,
    /// Routers that the packet may still pass.
    pub ttl: u8,
    /// What the payload is.
    pub protocol: Protocol,
    /// Who sent it.
    pub source: Ipv4Addr,
    /// Whom it is for.
    pub destination: Ipv4Addr,
}

impl Ipv4Header {
    /// Bytes of a header without options.
    pub const LENGTH: usize = 20;
    /// Bytes of a header with the most options that a header length can express.
    pub const MAX_LENGTH: usize = 60;
    /// The TTL of what this host sends (RFC 1122 §3.2.1.7 wants it large enough for the Internet).
    pub const DEFAULT_TTL: u8 = 64;

    /// The header of a whole datagram that routers shall not cut up.
    #[must_use]
    pub fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: Protocol) -> Self {
        Self {
            type_of_service: TypeOfService::default(),
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: Self::DEFAULT_TTL,
            protocol,
            source,
            destination,
        }
    }

    /// Is this a part of a datagram and not the whole?
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// Source and destination as they stand in the packet.
    #[must_use]
    pub fn addresses(&self) -> [u8; 8] {
        let mut addresses = [0; 8];
        addresses[..4].copy_from_slice(&self.source.octets());
        addresses[4..].copy_from_slice(&self.destination.octets());
        addresses
    }

    /// The sum over the pseudo-header of a segment or datagram of `length` bytes that this header
    /// carries.
    #[must_use]
    pub fn pseudo_header(&self, length: usize) -> Sum {
        checksum::pseudo_header_v4(self.source, self.destination, self.protocol, length)
    }

    /// Marks the packet at the start of `bytes` as a congested router does: CE in place of the ECN bits,
    /// and a checksum that fits again (RFC 3168 §5, RFC 1624).
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Ipv4Header::LENGTH`].
    pub fn mark_congestion(bytes: &mut [u8]) {
        let fixed = room::<{ Self::LENGTH }>(bytes);
        let old = half(fixed, 0);
        fixed[1] = TypeOfService::from_byte(fixed[1]).with_ecn(Ecn::Ce).byte();
        let checksum = checksum::update(half(fixed, 10), old, half(fixed, 0));
        fixed[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Writes the header of a packet without options to the start of `bytes`, with its checksum, and
    /// returns its length; `payload_length` bytes of payload go behind it.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Ipv4Header::LENGTH`], the packet longer than 65,535 bytes, or
    /// the fragment offset no multiple of eight.
    pub fn emit(&self, payload_length: usize, bytes: &mut [u8]) -> usize {
        self.emit_with_options(&[], payload_length, bytes)
    }

    /// Writes the header like [`Ipv4Header::emit`], with `options` behind the fixed part.
    ///
    /// # Panics
    /// Like [`Ipv4Header::emit`], and if `options` is no multiple of four bytes, or more than forty.
    pub fn emit_with_options(
        &self,
        options: &[u8],
        payload_length: usize,
        bytes: &mut [u8],
    ) -> usize {
        assert!(
            options.len().is_multiple_of(4) && options.len() <= 40,
            "options fill words, up to ten"
        );
        assert!(
            self.fragment_offset.is_multiple_of(8),
            "fragments begin at multiples of eight bytes"
        );
        let header_length = Self::LENGTH + options.len();
        let Ok(total_length) = u16::try_from(header_length + payload_length) else {
            panic!("a packet of {header_length} + {payload_length} bytes exceeds 65,535");
        };
        let words = self.words(total_length, header_length);
        let sum = header_sum(words, options);
        for (place, word) in room::<{ Self::LENGTH }>(bytes).as_chunks_mut().0.iter_mut().zip(words)
        {
            *place = word.to_be_bytes();
        }
        bytes[10..12].copy_from_slice(&sum.finish().to_be_bytes());
        bytes[Self::LENGTH..header_length].copy_from_slice(options);
        header_length
    }

    /// The fixed part word by word, with a checksum of zero. In words, and not read back from where
    /// they were written: the CPU would have to wait until the narrower stores are done.
    #[inline]
    fn words(&self, total_length: u16, header_length: usize) -> [u32; 5] {
        let [total_high, total_low] = total_length.to_be_bytes();
        #[allow(clippy::cast_possible_truncation, reason = "at most fifteen words")]
        let version = 4 << 4 | (header_length / 4) as u8;
        let fragment = u32::from(self.dont_fragment) << 14
            | u32::from(self.more_fragments) << 13
            | u32::from(self.fragment_offset / 8);
        [
            u32::from_be_bytes([version, self.type_of_service.byte(), total_high, total_low]),
            u32::from(self.identification) << 16 | fragment,
            u32::from_be_bytes([self.ttl, self.protocol.number(), 0, 0]),
            self.source.to_bits(),
            self.destination.to_bits(),
        ]
    }
}

/// A packet as it came, without what a link may have padded it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Packet<'a> {
    /// The fixed part of the header.
    pub header: Ipv4Header,
    /// The options with their padding; a multiple of four bytes, at most forty.
    pub options: &'a [u8],
    /// What the packet carries.
    pub payload: &'a [u8],
}

impl<'a> Ipv4Packet<'a> {
    /// Reads the packet at the start of `bytes`; what follows its total length is padding, and left
    /// out.
    ///
    /// # Errors
    /// [`Malformed`] if the version is not 4, a length points into the header or beyond `bytes`, the
    /// header's checksum is wrong (RFC 1122 §3.2.1.2), or the packet is a fragment that no datagram
    /// can have: one that would end beyond 65,535 bytes, or one in the middle that is no multiple of
    /// eight bytes.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (head, rest) = Head::read(bytes)?;
        let header_length = Ipv4Header::LENGTH + head.options.len();
        if !head.sum.is_valid() {
            return Err(Malformed::Checksum { what: "IPv4 header" });
        }
        let total_length = usize::from(head.total_length);
        let Some(payload_length) = total_length.checked_sub(header_length) else {
            return Err(field("total length", total_length));
        };
        let Some(payload) = rest.get(..payload_length) else {
            return Err(Malformed::Truncated {
                what: "IPv4 packet",
                needed: total_length,
                had: bytes.len(),
            });
        };
        check_fragment(&head.header, header_length, payload)?;
        Ok(Self { header: head.header, options: head.options, payload })
    }
}

/// Can a datagram have this fragment?
#[inline]
fn check_fragment(
    header: &Ipv4Header,
    header_length: usize,
    payload: &[u8],
) -> Result<(), Malformed> {
    let end = usize::from(header.fragment_offset) + payload.len();
    if header_length + end > usize::from(u16::MAX) {
        return Err(field("end of fragment", end));
    }
    if header.more_fragments && !payload.len().is_multiple_of(8) {
        return Err(field("fragment length", payload.len()));
    }
    Ok(())
}

/// The header with its options, of a packet that may be cut short and whose checksum nobody judged.
pub(crate) struct Head<'a> {
    pub(crate) header: Ipv4Header,
    pub(crate) options: &'a [u8],
    pub(crate) total_length: u16,
    /// Over the header and the options.
    sum: Sum,
}

impl<'a> Head<'a> {
    /// The header at the start of `bytes`, and all that follows it.
    #[inline]
    pub(crate) fn read(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let (fixed, rest) = split_fixed::<{ Ipv4Header::LENGTH }>("IPv4 header", bytes)?;
        if fixed[0] >> 4 != 4 {
            return Err(field("version", usize::from(fixed[0] >> 4)));
        }
        let header_length = usize::from(fixed[0] & 15) * 4;
        let Some(options_length) = header_length.checked_sub(Ipv4Header::LENGTH) else {
            return Err(field("header length", header_length));
        };
        let Some((options, rest)) = rest.split_at_checked(options_length) else {
            return Err(Malformed::Truncated {
                what: "IPv4 options",
                needed: header_length,
                had: bytes.len(),
            });
        };
        let sum = header_sum(core::array::from_fn(|at| word(fixed, 4 * at)), options);
        Ok((Self { header: fixed_header(fixed), options, total_length: half(fixed, 2), sum }, rest))
    }
}

/// The sum over the words of the fixed part and the options, of which most packets have none.
#[inline]
fn header_sum(words: [u32; 5], options: &[u8]) -> Sum {
    let sum = Sum::of_words(words);
    if options.is_empty() { sum } else { sum + Sum::of(options) }
}

#[inline]
pub(crate) fn fixed_header(fixed: &[u8; Ipv4Header::LENGTH]) -> Ipv4Header {
    let fragment = half(fixed, 6);
    Ipv4Header {
        type_of_service: TypeOfService::from_byte(fixed[1]),
        identification: half(fixed, 4),
        dont_fragment: fragment & 0x4000 != 0,
        more_fragments: fragment & 0x2000 != 0,
        fragment_offset: (fragment & 0x1fff) * 8,
        ttl: fixed[8],
        protocol: Protocol::new(fixed[9]),
        source: Ipv4Addr::from_octets(octets(fixed, 12)),
        destination: Ipv4Addr::from_octets(octets(fixed, 16)),
    }
}

fn field(field: &'static str, value: usize) -> Malformed {
    Malformed::Field { what: "IPv4 header", field, value: u32::try_from(value).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const DESTINATION: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

    fn header() -> Ipv4Header {
        Ipv4Header::new(SOURCE, DESTINATION, Protocol::TCP)
    }

    /// The bytes of a packet after `spoil`, with a fitting checksum again.
    fn spoilt(spoil: impl FnOnce(&mut [u8; 32])) -> [u8; 32] {
        let mut bytes = [0; 32];
        header().emit(12, &mut bytes);
        spoil(&mut bytes);
        bytes[10..12].fill(0);
        let checksum = Sum::of(&bytes[..20]).finish();
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    #[test]
    fn the_bytes_stand_where_rfc_791_draws_them() {
        let mut bytes = [0; 20];
        let service = TypeOfService::from_byte(0x10);
        let header = Ipv4Header { identification: 0x1234, type_of_service: service, ..header() };
        assert_eq!(header.emit(1_460, &mut bytes), 20);
        assert_eq!(bytes[..10], [0x45, 0x10, 0x05, 0xc8, 0x12, 0x34, 0x40, 0, 64, 6]);
        assert_eq!(bytes[12..], [192, 0, 2, 1, 198, 51, 100, 2]);
        assert!(Sum::of(&bytes).is_valid());
    }

    #[test]
    fn the_padding_of_a_short_frame_is_no_payload() {
        let mut bytes = [0xee; 46];
        header().emit(3, &mut bytes);
        let packet = Ipv4Packet::parse(&bytes).unwrap();
        assert_eq!(
            (packet.header, packet.options, packet.payload),
            (header(), &[][..], &[0xee; 3][..])
        );
    }

    #[test]
    fn options_are_skipped_whatever_they_hold() {
        let mut bytes = [0xee; 61];
        assert_eq!(header().emit_with_options(&[0x94, 4, 0, 0], 2, &mut bytes), 24);
        let packet = Ipv4Packet::parse(&bytes).unwrap();
        assert_eq!((packet.options, packet.payload), (&[0x94, 4, 0, 0][..], &[0xee; 2][..]));
        assert_eq!(header().emit_with_options(&[7; 40], 1, &mut bytes), 60);
        assert_eq!(Ipv4Packet::parse(&bytes).unwrap().payload.len(), 1);
    }

    #[test]
    fn a_wrong_version_header_length_or_total_length_is_malformed() {
        let field = |bytes: &[u8]| match Ipv4Packet::parse(bytes) {
            Err(Malformed::Field { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        assert_eq!(field(&spoilt(|bytes| bytes[0] = 0x65)), "version");
        assert_eq!(field(&spoilt(|bytes| bytes[0] = 0x44)), "header length");
        assert_eq!(field(&spoilt(|bytes| bytes[3] = 19)), "total length");
        let truncated =
            |bytes: &[u8]| matches!(Ipv4Packet::parse(bytes), Err(Malformed::Truncated { .. }));
        assert!(truncated(&spoilt(|bytes| bytes[3] = 33)));
        assert!(truncated(&spoilt(|bytes| bytes[0] = 0x49)));
        assert!(truncated(&[0x45; 19]) && truncated(&[]));
    }

    #[test]
    fn a_wrong_checksum_is_found() {
        let mut bytes = spoilt(|_| {});
        bytes[8] -= 1;
        assert_eq!(Ipv4Packet::parse(&bytes), Err(Malformed::Checksum { what: "IPv4 header" }));
        let old = u16::from_be_bytes([64, 6]);
        let checksum =
            checksum::update(u16::from_be_bytes([bytes[10], bytes[11]]), old, old - 0x0100);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(Ipv4Packet::parse(&bytes).unwrap().header.ttl, 63);
    }

    #[test]
    fn a_router_marks_a_packet_without_spoiling_its_checksum() {
        for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            let type_of_service = TypeOfService::from_byte(0xb8).with_ecn(ecn);
            let mut bytes = [0; 32];
            Ipv4Header { type_of_service, ..header() }.emit(12, &mut bytes);
            Ipv4Header::mark_congestion(&mut bytes);
            let marked = Ipv4Packet::parse(&bytes).unwrap().header.type_of_service;
            assert_eq!((marked.ecn(), marked.dscp()), (Ecn::Ce, 0x2e));
        }
    }

    #[test]
    fn a_fragment_says_where_it_belongs() {
        let part = Ipv4Header {
            dont_fragment: false,
            more_fragments: true,
            fragment_offset: 1_480,
            ..header()
        };
        let mut bytes = [0; 28];
        part.emit(8, &mut bytes);
        let packet = Ipv4Packet::parse(&bytes).unwrap();
        assert_eq!(packet.header, part);
        assert!(packet.header.is_fragment() && !header().is_fragment());
    }

    #[test]
    fn a_fragment_that_no_datagram_can_have_is_malformed() {
        let beyond = spoilt(|bytes| bytes[6..8].copy_from_slice(&[0x1f, 0xff]));
        assert!(matches!(
            Ipv4Packet::parse(&beyond),
            Err(Malformed::Field { field: "end of fragment", .. })
        ));
        let uneven = spoilt(|bytes| bytes[6..8].copy_from_slice(&[0x20, 0]));
        assert!(matches!(
            Ipv4Packet::parse(&uneven),
            Err(Malformed::Field { field: "fragment length", .. })
        ));
    }
}

//! IPv4 packets (RFC 791).

use crate::layout::{half, octets, room, split_fixed, word};
use crate::{Ecn, Malformed, Protocol, Sum, TypeOfService, checksum};
use core::net::Ipv4Addr;

/// The fixed part of an IPv4 header, without the lengths and the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// The differentiated services code point and the ECN field.
    pub type_of_service: TypeOfService,
    /// The number that all fragments of a datagram share.
    pub identification: u16,
    /// DF: routers must not fragment the packet. If it is too long for a link, they drop it and
    /// report an error.
    pub dont_fragment: bool,
    /// MF: further fragments of the datagram follow.
    pub more_fragments: bool,
    /// The offset of the payload in the datagram, in bytes. A multiple of eight.
    pub fragment_offset: u16,
    /// The time to live: the number of routers that may still forward the packet.
    pub ttl: u8,
    /// The protocol of the payload.
    pub protocol: Protocol,
    /// The address of the sender.
    pub source: Ipv4Addr,
    /// The address of the receiver.
    pub destination: Ipv4Addr,
}

impl Ipv4Header {
    /// The length of a header without options, in bytes.
    pub const LENGTH: usize = 20;
    /// The length of the longest header in bytes, options included.
    pub const MAX_LENGTH: usize = 60;
    /// The default TTL of sent packets, which is large enough for the Internet (RFC 1122 §3.2.1.7).
    pub const DEFAULT_TTL: u8 = 64;

    /// Creates the header of an unfragmented datagram. DF is set, so routers must not fragment it.
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

    /// Is the packet a fragment of a datagram?
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// Returns the octets of the source and destination addresses, as in the packet.
    #[must_use]
    pub fn addresses(&self) -> [u8; 8] {
        let mut addresses = [0; 8];
        addresses[..4].copy_from_slice(&self.source.octets());
        addresses[4..].copy_from_slice(&self.destination.octets());
        addresses
    }

    /// Returns the ones'-complement sum over the pseudo-header, for a payload of `length` bytes.
    #[must_use]
    pub fn pseudo_header(&self, length: usize) -> Sum {
        checksum::pseudo_header_v4(self.source, self.destination, self.protocol, length)
    }

    /// Sets the ECN field of the packet at the start of `bytes` to CE, as a congested router does
    /// (RFC 3168 §5). Updates the checksum (RFC 1624).
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

    /// Completes the header of a reassembled datagram. `bytes` is the whole datagram, and begins
    /// with the header of the first fragment. Writes the total length, the fragment fields and the
    /// checksum. Returns false if the datagram is too long for the length field.
    ///
    /// # Panics
    /// If `bytes` is shorter than its header.
    pub fn complete(bytes: &mut [u8]) -> bool {
        let Ok(length) = u16::try_from(bytes.len()) else { return false };
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes[6..8].fill(0);
        bytes[10..12].fill(0);
        let header_length = usize::from(bytes[0] & 15) * 4;
        let sum = Sum::of(&bytes[..header_length]).finish();
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        true
    }

    /// Writes the header of a packet without options, including its checksum, to the start of
    /// `bytes`. Returns its length. The packet has `payload_length` bytes of payload.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Ipv4Header::LENGTH`], the packet is longer than 65,535 bytes,
    /// or the fragment offset is not a multiple of eight.
    pub fn emit(&self, payload_length: usize, bytes: &mut [u8]) -> usize {
        self.emit_with_options(&[], payload_length, bytes)
    }

    /// Writes the header of a packet with `options` after the fixed part, including its checksum,
    /// to the start of `bytes`. Returns the header's length in bytes. The packet has
    /// `payload_length` bytes of payload.
    ///
    /// # Panics
    /// If `bytes` is shorter than the header, or the packet is longer than 65,535 bytes. Also if
    /// the fragment offset is not a multiple of eight, or the length of `options` is not a multiple
    /// of four bytes or exceeds forty.
    pub fn emit_with_options(
        &self,
        options: &[u8],
        payload_length: usize,
        bytes: &mut [u8],
    ) -> usize {
        assert!(
            options.len().is_multiple_of(4) && options.len() <= 40,
            "options are up to ten words of four bytes"
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

    /// Returns the words of the fixed part, with zero for the checksum. The checksum is computed
    /// from these words: loading words from bytes that were just stored in smaller units would
    /// stall the CPU.
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

/// A received packet, without the padding of an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Packet<'a> {
    /// The fixed part of the header.
    pub header: Ipv4Header,
    /// The options with their padding: a multiple of four bytes, at most forty.
    pub options: &'a [u8],
    /// The payload: the bytes after the options, up to the total length.
    pub payload: &'a [u8],
}

impl<'a> Ipv4Packet<'a> {
    /// Parses the packet at the start of `bytes`, and ignores padding after its total length.
    ///
    /// # Errors
    /// [`Malformed`] if the version is not 4, a length is too small or exceeds `bytes`, or the
    /// header checksum is wrong (RFC 1122 §3.2.1.2). Also if the packet is an impossible fragment:
    /// one that ends beyond 65,535 bytes, or one other than the last whose length is not a multiple
    /// of eight.
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

/// Checks that the fragment ends within the 65,535 bytes of a datagram, and that its length is a
/// multiple of eight if other fragments follow.
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

/// The header of a packet that may be truncated, such as the quoted packet in an ICMP error. Its
/// checksum is not verified.
pub(crate) struct Head<'a> {
    pub(crate) header: Ipv4Header,
    pub(crate) options: &'a [u8],
    pub(crate) total_length: u16,
    /// The ones'-complement sum over the header and the options.
    sum: Sum,
}

impl<'a> Head<'a> {
    /// Parses the header at the start of `bytes`. Returns it with the bytes after it.
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

/// Returns the sum over the fixed part and the options of a header. `Sum::of` is called only if
/// there are options, because it is slower and most packets have none.
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

    /// Emits a packet, lets `spoil` change it, and recomputes the header checksum.
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
    fn header_fields_are_at_the_offsets_of_rfc_791() {
        let mut bytes = [0; 20];
        let service = TypeOfService::from_byte(0x10);
        let header = Ipv4Header { identification: 0x1234, type_of_service: service, ..header() };
        assert_eq!(header.emit(1_460, &mut bytes), 20);
        assert_eq!(bytes[..10], [0x45, 0x10, 0x05, 0xc8, 0x12, 0x34, 0x40, 0, 64, 6]);
        assert_eq!(bytes[12..], [192, 0, 2, 1, 198, 51, 100, 2]);
        assert!(Sum::of(&bytes).is_valid());
    }

    #[test]
    fn the_padding_of_a_short_frame_is_ignored() {
        let mut bytes = [0xee; 46];
        header().emit(3, &mut bytes);
        let packet = Ipv4Packet::parse(&bytes).unwrap();
        assert_eq!(
            (packet.header, packet.options, packet.payload),
            (header(), &[][..], &[0xee; 3][..])
        );
    }

    #[test]
    fn options_of_any_content_are_skipped() {
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
    fn a_wrong_checksum_is_detected() {
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
    fn marking_congestion_updates_the_checksum() {
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
    fn a_fragment_keeps_its_offset_and_flags() {
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
    fn an_impossible_fragment_is_malformed() {
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

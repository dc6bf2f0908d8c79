//! IPv6 packets and their extension headers (RFC 8200).

mod examination;
mod extensions;
mod options;

pub use examination::{Ipv6Content, Ipv6Piece, Ipv6Refusal};
pub use extensions::{Ipv6Extension, Ipv6Extensions, Ipv6Fragment};
pub use options::{Ipv6Option, Ipv6OptionAction, Ipv6Options};

use crate::layout::{half, octets, room, split_fixed, word};
use crate::{Malformed, Protocol, Sum, TypeOfService, checksum};
use core::net::Ipv6Addr;

/// The fixed header of an IPv6 packet, without the payload length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// The traffic class: the differentiated services code point and the ECN field.
    pub traffic_class: TypeOfService,
    /// The flow label: twenty bits (RFC 6437).
    pub flow_label: u32,
    /// The protocol of the payload, or the number of the first extension header.
    pub next_header: Protocol,
    /// The number of routers that may still forward the packet.
    pub hop_limit: u8,
    /// The address of the sender.
    pub source: Ipv6Addr,
    /// The address of the receiver.
    pub destination: Ipv6Addr,
}

impl Ipv6Header {
    /// The length of the header in bytes.
    pub const LENGTH: usize = 40;
    /// The default hop limit of sent packets.
    pub const DEFAULT_HOP_LIMIT: u8 = 64;
    /// The smallest MTU of a link that carries IPv6 (RFC 8200 §5).
    pub const MIN_MTU: usize = 1_280;
    /// The offset of the Next Header field in the header, in bytes.
    pub const NEXT_HEADER_OFFSET: usize = 6;

    /// Creates a header with the default hop limit and a flow label of zero.
    #[must_use]
    pub fn new(source: Ipv6Addr, destination: Ipv6Addr, next_header: Protocol) -> Self {
        Self {
            traffic_class: TypeOfService::default(),
            flow_label: 0,
            next_header,
            hop_limit: Self::DEFAULT_HOP_LIMIT,
            source,
            destination,
        }
    }

    /// Returns the ones'-complement sum over the pseudo-header, for `length` bytes of `protocol`
    /// (RFC 8200 §8.1). `protocol` is the protocol of the payload, after any extension headers.
    #[must_use]
    pub fn pseudo_header(&self, protocol: Protocol, length: usize) -> Sum {
        checksum::pseudo_header_v6(self.source, self.destination, protocol, length)
    }

    /// Writes the header to the start of `bytes`, and returns its length. The packet has
    /// `payload_length` bytes after the header, extension headers included.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Ipv6Header::LENGTH`], the payload is longer than 65,535 bytes,
    /// or the flow label exceeds twenty bits.
    pub fn emit(&self, payload_length: usize, bytes: &mut [u8]) -> usize {
        assert!(self.flow_label < 1 << 20, "a flow label has twenty bits");
        let Ok(payload_length) = u16::try_from(payload_length) else {
            panic!("a payload of {payload_length} bytes exceeds 65,535");
        };
        let fixed = room::<{ Self::LENGTH }>(bytes);
        let first = 6 << 28 | u32::from(self.traffic_class.byte()) << 20 | self.flow_label;
        fixed[..4].copy_from_slice(&first.to_be_bytes());
        fixed[4..6].copy_from_slice(&payload_length.to_be_bytes());
        fixed[6] = self.next_header.number();
        fixed[7] = self.hop_limit;
        fixed[8..24].copy_from_slice(&self.source.octets());
        fixed[24..].copy_from_slice(&self.destination.octets());
        Self::LENGTH
    }

    /// Sets the ECN field of the packet at the start of `bytes` to CE, as a congested router does
    /// (RFC 3168 §5).
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Ipv6Header::LENGTH`].
    pub fn mark_congestion(bytes: &mut [u8]) {
        let fixed = room::<{ Self::LENGTH }>(bytes);
        // The ECN field is the lowest two bits of the traffic class, which are bits 4 and 5 of this
        // byte.
        fixed[1] |= 0x30;
    }

    /// Completes the headers of a reassembled packet that fills `bytes`. Writes the payload length.
    /// Also writes `next` to the byte at `named_at`: the Next Header field that announced the
    /// fragment header, which the packet no longer has (RFC 8200 §4.5). Returns false if the packet
    /// is too long for the length field.
    ///
    /// # Panics
    /// If `bytes` is shorter than a header.
    pub fn complete(bytes: &mut [u8], named_at: usize, next: Protocol) -> bool {
        let Ok(length) = u16::try_from(bytes.len() - Self::LENGTH) else { return false };
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        bytes[named_at] = next.number();
        true
    }
}

/// The fixed header of a packet whose payload may be truncated.
pub(crate) struct Head {
    /// The fixed header of the packet.
    pub(crate) header: Ipv6Header,
    /// The payload length field: the number of bytes after the header.
    pub(crate) payload_length: u16,
}

impl Head {
    /// Parses the fixed header. Returns it with the bytes after it.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (fixed, rest) = split_fixed::<{ Ipv6Header::LENGTH }>("IPv6 header", bytes)?;
        let first = word(fixed, 0);
        if first >> 28 != 6 {
            return Err(field("version", first >> 28));
        }
        let header = Ipv6Header {
            traffic_class: TypeOfService::from_byte(first.to_be_bytes()[0] << 4 | fixed[1] >> 4),
            flow_label: first & 0xf_ffff,
            next_header: Protocol::new(fixed[6]),
            hop_limit: fixed[7],
            source: octets::<16, _>(fixed, 8).into(),
            destination: octets::<16, _>(fixed, 24).into(),
        };
        Ok((Self { header, payload_length: half(fixed, 4) }, rest))
    }
}

/// A received packet, without the padding of an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Packet<'a> {
    /// The fixed header.
    pub header: Ipv6Header,
    /// The extension headers, as received.
    pub extensions: &'a [u8],
    /// The fragment header, if there is one.
    pub fragment: Option<Ipv6Fragment>,
    /// The protocol of the payload. Only the first fragment contains the header of this protocol.
    /// In other fragments, it is the value of the fragment header's Next Header field.
    pub protocol: Protocol,
    /// The payload: the bytes after the extension headers, up to the payload length.
    pub payload: &'a [u8],
}

impl<'a> Ipv6Packet<'a> {
    /// Parses the packet at the start of `bytes`, and ignores padding after its payload length.
    /// Options inside extension headers are not examined.
    ///
    /// # Errors
    /// [`Malformed`] if the version is not 6, a length exceeds `bytes`, or a Hop-by-Hop Options
    /// header is not the first extension header (RFC 8200 §4.1). Also if there are more than
    /// [`Ipv6Extensions::MOST`] extension headers or two fragment headers, or the extension headers
    /// do not end within the first fragment (RFC 7112 §5). Also if a fragment ends beyond 65,535
    /// bytes, or a fragment before the last has a length that is not a multiple of eight (RFC 8200
    /// §4.5). The header of the payload is not checked.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let fixed = Self::parse_fixed(bytes)?;
        let mut extensions = Self::extensions(bytes)?;
        let mut fragment = None;
        while let Some(header) = extensions.next() {
            if let Some(found) = header?.fragment() {
                check_fragment(found, extensions.payload().len())?;
                fragment = Some(found);
            }
        }
        Ok(Self {
            header: fixed.header,
            extensions: extensions.returned(),
            fragment,
            protocol: extensions.protocol(),
            payload: extensions.payload(),
        })
    }

    /// Returns an iterator over the extension headers of the packet at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] if the version is not 6, or a length exceeds `bytes`.
    pub fn extensions(bytes: &'a [u8]) -> Result<Ipv6Extensions<'a>, Malformed> {
        let fixed = Self::parse_fixed(bytes)?;
        let bytes = &bytes[..Ipv6Header::LENGTH + fixed.payload.len()];
        Ok(Ipv6Extensions::new(bytes, fixed.protocol))
    }

    /// Parses only the fixed header of the packet at the start of `bytes`, and ignores padding. All
    /// bytes after it are the payload, whose protocol may be an extension header
    /// ([`Protocol::is_ipv6_extension`]).
    ///
    /// # Errors
    /// [`Malformed`] if the version is not 6, or a length exceeds `bytes`.
    #[inline]
    pub fn parse_fixed(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (Head { header, payload_length }, rest) = Head::read(bytes)?;
        let length = usize::from(payload_length);
        let payload = rest.get(..length).ok_or(Malformed::Truncated {
            what: "IPv6 packet",
            needed: Ipv6Header::LENGTH + length,
            had: bytes.len(),
        })?;
        let protocol = header.next_header;
        Ok(Self { header, extensions: &[], fragment: None, protocol, payload })
    }
}

/// Checks that a fragment with `length` bytes of payload can be part of a packet.
fn check_fragment(fragment: Ipv6Fragment, length: usize) -> Result<(), Malformed> {
    #[allow(clippy::cast_possible_truncation, reason = "the payload length has sixteen bits")]
    let length = length as u32;
    if fragment.more && !length.is_multiple_of(8) {
        return Err(field("length of a fragment before the last", length));
    }
    let end = u32::from(fragment.offset) + length;
    if end > u32::from(u16::MAX) {
        return Err(field("end of a fragment", end));
    }
    Ok(())
}

/// Creates the error of a field with an invalid value.
const fn field(field: &'static str, value: u32) -> Malformed {
    Malformed::Field { what: "IPv6 header", field, value }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    /// Returns a packet with the Next Header field `next`, and `body` after the fixed header.
    fn packet(next: Protocol, body: &[u8]) -> Vec<u8> {
        let header = Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, next);
        let mut bytes = vec![0; Ipv6Header::LENGTH];
        header.emit(body.len(), &mut bytes);
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn fields_are_at_their_places() {
        let header = Ipv6Header {
            traffic_class: TypeOfService::from_byte(0xb9),
            flow_label: 0xa_bcde,
            hop_limit: 3,
            ..Ipv6Header::new("2001:db8::1".parse().unwrap(), Ipv6Addr::LOCALHOST, Protocol::TCP)
        };
        let mut bytes = [0; 45];
        assert_eq!(header.emit(4, &mut bytes), 40);
        assert_eq!(bytes[..8], [0x6b, 0x9a, 0xbc, 0xde, 0, 4, 6, 3]);
        let parsed = Ipv6Packet::parse(&bytes).unwrap();
        assert_eq!((parsed.header, parsed.payload.len()), (header, 4), "padding is cut");
        assert_eq!((parsed.protocol, parsed.extensions), (Protocol::TCP, &[][..]));
    }

    #[test]
    fn extension_headers_are_skipped_in_any_order() {
        let mut body = vec![43, 0, 1, 4, 0, 0, 0, 0];
        body.extend([60, 0, 0, 0, 0, 0, 0, 0]);
        body.extend([17, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        body.extend([7; 8]);
        let bytes = packet(Protocol::HOP_BY_HOP, &body);
        let parsed = Ipv6Packet::parse(&bytes).unwrap();
        assert_eq!((parsed.protocol, parsed.payload), (Protocol::UDP, &[7; 8][..]));
        assert_eq!(parsed.extensions.len(), 32);
    }

    #[test]
    fn chains_that_are_too_long_or_misordered_are_refused() {
        let options = |count: usize, last: u8| {
            let mut body = [60, 0, 1, 4, 0, 0, 0, 0].repeat(count);
            body[(count - 1) * 8] = last;
            packet(Protocol::DESTINATION_OPTIONS, &body)
        };
        assert!(Ipv6Packet::parse(&options(8, 6)).is_ok());
        assert!(Ipv6Packet::parse(&options(9, 6)).is_err());
        let mut late = options(2, 6);
        late[40] = 0;
        assert!(Ipv6Packet::parse(&late).is_err(), "Hop-by-Hop Options come first");
    }

    #[test]
    fn first_fragments_hold_the_whole_chain_and_later_ones_none() {
        let body = [60, 0, 0, 1, 0, 0, 0, 9];
        assert!(Ipv6Packet::parse(&packet(Protocol::FRAGMENT, &body)).is_err());
        let later = [60, 0, 0, 8, 0, 0, 0, 9, 1];
        let bytes = packet(Protocol::FRAGMENT, &later);
        let parsed = Ipv6Packet::parse(&bytes).unwrap();
        let fragment = Ipv6Fragment { offset: 8, more: false, identification: 9 };
        assert_eq!((parsed.fragment, parsed.payload), (Some(fragment), &[1][..]));
        let odd = [6, 0, 0, 9, 0, 0, 0, 9, 1];
        assert!(Ipv6Packet::parse(&packet(Protocol::FRAGMENT, &odd)).is_err());
        let beyond = [6, 0, 0xff, 0xf8, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8];
        assert!(Ipv6Packet::parse(&packet(Protocol::FRAGMENT, &beyond)).is_err());
    }

    #[test]
    fn pseudo_header_is_that_of_its_forty_bytes() {
        let header = Ipv6Header::new(
            "2001:db8::1:2".parse().unwrap(),
            "fe80::ff:fe00:1".parse().unwrap(),
            Protocol::HOP_BY_HOP,
        );
        let mut bytes = [header.source.octets(), header.destination.octets()].concat();
        bytes.extend([0, 1, 0x11, 0x70, 0, 0, 0, 58]);
        let sum = header.pseudo_header(Protocol::ICMPV6, 70_000);
        assert_eq!(sum.finish(), Sum::of(&bytes).finish());
    }

    proptest! {
        #[test]
        fn hostile_bytes_do_not_panic(
            next in prop::sample::select(vec![0_u8, 43, 44, 60, 6]),
            body in prop::collection::vec(
                prop::sample::select(vec![0_u8, 1, 6, 43, 44, 60]),
                0..200,
            ),
            cut in 0_usize..240,
        ) {
            let bytes = packet(Protocol::new(next), &body);
            if let Ok(parsed) = Ipv6Packet::parse(&bytes) {
                prop_assert_eq!(parsed.extensions.len() + parsed.payload.len(), body.len());
            }
            if cut < bytes.len() {
                prop_assert!(Ipv6Packet::parse(&bytes[..cut]).is_err());
            }
        }
    }
}

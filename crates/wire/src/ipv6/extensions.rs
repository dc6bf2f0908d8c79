//! An iterator over the extension headers of an IPv6 packet (RFC 8200 §4).

use super::{Ipv6Header, field};
use crate::layout::{half, word};
use crate::{Malformed, Protocol};

/// An extension header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Extension<'a> {
    /// The type of the extension header.
    pub kind: Protocol,
    /// The offset in the packet of the Next Header field that announces this header, in bytes.
    pub named_at: usize,
    /// The offset of this header in the packet, in bytes.
    pub at: usize,
    /// The whole header, at least eight bytes.
    pub bytes: &'a [u8],
}

/// The fields of a fragment header (RFC 8200 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Fragment {
    /// The offset of the fragment's data in the fragmentable part of the packet, in bytes. A
    /// multiple of eight.
    pub offset: u16,
    /// M: further fragments of the packet follow.
    pub more: bool,
    /// The number that all fragments of a packet share.
    pub identification: u32,
}

impl Ipv6Fragment {
    /// The length of a fragment header in bytes.
    pub const LENGTH: usize = 8;

    /// Is this the header of an atomic fragment, which contains the whole packet (RFC 6946)?
    #[must_use]
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more
    }

    /// Writes a fragment header to the start of `bytes`, and returns its length. `next` is the type
    /// of the header that follows it.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Ipv6Fragment::LENGTH`], or the offset is not a multiple of
    /// eight.
    pub fn emit(&self, next: Protocol, bytes: &mut [u8]) -> usize {
        assert!(self.offset.is_multiple_of(8), "fragments begin at multiples of eight bytes");
        let [high, low] = (self.offset | u16::from(self.more)).to_be_bytes();
        let fixed = crate::layout::room::<{ Self::LENGTH }>(bytes);
        fixed[..4].copy_from_slice(&[next.number(), 0, high, low]);
        fixed[4..].copy_from_slice(&self.identification.to_be_bytes());
        Self::LENGTH
    }

    fn read(header: [u8; Self::LENGTH]) -> Self {
        let bits = half(&header, 2);
        Self { offset: bits & !7, more: bits & 1 != 0, identification: word(&header, 4) }
    }
}

impl Ipv6Extension<'_> {
    /// Returns the fields of a fragment header; `None` for other headers.
    #[must_use]
    pub fn fragment(&self) -> Option<Ipv6Fragment> {
        let header = self.bytes.first_chunk().filter(|_| self.kind == Protocol::FRAGMENT)?;
        Some(Ipv6Fragment::read(*header))
    }
}

/// An iterator over the extension headers of a packet. It ends before the header of the payload,
/// before an authentication header and before ESP. It also ends after the fragment header of a
/// fragment other than the first, which contains no further headers (RFC 7112 §5).
#[derive(Clone, Debug)]
pub struct Ipv6Extensions<'a> {
    packet: &'a [u8],
    next: Protocol,
    named_at: usize,
    at: usize,
    count: u32,
    has_fragment: bool,
    has_ended: bool,
}

impl<'a> Ipv6Extensions<'a> {
    /// The maximum number of extension headers of a packet. RFC 8200 sets no maximum. This one
    /// limits the time that a hostile packet with many headers can take.
    pub const MOST: u32 = 8;

    /// Creates an iterator over the headers of `packet`, which begins with a fixed header and ends
    /// at its payload length. `next` is the type of the first extension header.
    pub(crate) fn new(packet: &'a [u8], next: Protocol) -> Self {
        Self {
            packet,
            next,
            named_at: Ipv6Header::NEXT_HEADER_OFFSET,
            at: Ipv6Header::LENGTH.min(packet.len()),
            count: 0,
            has_fragment: false,
            has_ended: false,
        }
    }

    /// Returns the type of the next header. After the iterator has ended, this is the protocol of
    /// the payload.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.next
    }

    /// Returns the offset in the packet of the Next Header field that contains
    /// [`Ipv6Extensions::protocol`].
    #[must_use]
    pub const fn named_at(&self) -> usize {
        self.named_at
    }

    /// Returns the bytes after the headers that the iterator has returned.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.packet[self.at..]
    }

    /// Returns the headers that the iterator has returned, as bytes.
    pub(super) fn returned(&self) -> &'a [u8] {
        &self.packet[Ipv6Header::LENGTH.min(self.at)..self.at]
    }

    /// Parses the header at `self.at`.
    fn read(&mut self) -> Result<Ipv6Extension<'a>, Malformed> {
        if self.count == Self::MOST {
            return Err(field("number of extension headers", self.count + 1));
        }
        if self.next == Protocol::HOP_BY_HOP && self.count > 0 {
            return Err(field("position of Hop-by-Hop Options", self.count));
        }
        if self.next == Protocol::FRAGMENT && self.has_fragment {
            return Err(field("number of fragment headers", 2));
        }
        let rest = self.payload();
        let length = match rest {
            _ if self.next == Protocol::FRAGMENT => Ipv6Fragment::LENGTH,
            [_, words, ..] => (usize::from(*words) + 1) * 8,
            _ => 8,
        };
        let truncated =
            Malformed::Truncated { what: "IPv6 extension header", needed: length, had: rest.len() };
        let bytes = rest.get(..length).ok_or(truncated)?;
        let (kind, named_at, at) = (self.next, self.named_at, self.at);
        let header = Ipv6Extension { kind, named_at, at, bytes };
        (self.next, self.named_at) = (Protocol::new(bytes[0]), at);
        self.at += length;
        self.count += 1;
        if let Some(fragment) = header.fragment() {
            self.has_fragment = true;
            self.has_ended = fragment.offset != 0;
        }
        Ok(header)
    }
}

impl<'a> Iterator for Ipv6Extensions<'a> {
    type Item = Result<Ipv6Extension<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended || !self.next.is_ipv6_extension() {
            return None;
        }
        let header = self.read();
        self.has_ended |= header.is_err();
        Some(header)
    }
}

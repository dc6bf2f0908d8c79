//! ICMPv6 messages (RFC 4443), including those of Neighbour Discovery.

mod error;
pub mod mld;
mod quote;

pub use error::{Icmpv6Error, Icmpv6Problem, Icmpv6Unreachable};
pub use quote::Ipv6Quote;

use crate::layout::{half, room, split_fixed};
use crate::{Echo, Ipv6Header, Malformed, NdMessage, Protocol, Sum};

/// An ICMPv6 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmpv6Message<'a> {
    /// An echo request.
    EchoRequest(Echo<'a>),
    /// An echo reply.
    EchoReply(Echo<'a>),
    /// A report of a problem with a packet. Hosts must not answer it by another error (RFC 4443
    /// §2.4 e.1).
    Error {
        /// The problem that the message reports.
        error: Icmpv6Error,
        /// The beginning of the packet that caused the problem.
        quote: Ipv6Quote<'a>,
    },
    /// A valid message of Neighbour Discovery (RFC 4861).
    NeighborDiscovery(NdMessage<'a>),
    /// An informational message that this type does not represent, such as one that [`mld::parse`]
    /// parses. A host discards the types that it does not implement (RFC 4443 §2.4 b).
    Other {
        /// The ICMPv6 type of the message, at least 128.
        kind: u8,
        /// The ICMPv6 code of the message.
        code: u8,
        /// The bytes after the checksum, at least four.
        body: &'a [u8],
    },
}

/// The smallest type of an informational message; errors have smaller types.
const FIRST_INFORMATIONAL: u8 = 128;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

impl<'a> Icmpv6Message<'a> {
    /// The length of the header that all messages share, in bytes.
    pub const HEADER_LENGTH: usize = 8;

    /// Parses the message that fills `bytes`, the payload of a packet with `header`.
    ///
    /// The caller must discard messages of Neighbour Discovery that arrived in fragments (RFC 6980
    /// §5). The message does not show whether its packet was fragmented.
    ///
    /// # Errors
    /// [`Malformed`] if the message is truncated, its checksum is wrong, or an error does not quote
    /// an IPv6 header. Also if a message of Neighbour Discovery fails the checks of RFC 4861 §6.1,
    /// §7.1 and §8.1: for example, its hop limit must be 255.
    pub fn parse(header: &Ipv6Header, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, rest) = split_fixed::<{ Icmpv6Message::HEADER_LENGTH }>("ICMPv6", bytes)?;
        let pseudo = header.pseudo_header(Protocol::ICMPV6, bytes.len());
        if !(pseudo + Sum::of(bytes)).is_valid() {
            return Err(Malformed::Checksum { what: "ICMPv6 message" });
        }
        let [kind, code, _, _, a, b, c, d] = *fixed;
        if kind < FIRST_INFORMATIONAL {
            let error = Icmpv6Error::read(kind, code, [a, b, c, d]);
            return Ok(Self::Error { error, quote: Ipv6Quote::parse(rest)? });
        }
        let echo = Echo { identifier: half(fixed, 4), sequence: half(fixed, 6), data: rest };
        Ok(match (kind, code) {
            (ECHO_REQUEST, 0) => Self::EchoRequest(echo),
            (ECHO_REPLY, 0) => Self::EchoReply(echo),
            _ => match NdMessage::parse(header, kind, code, &bytes[4..])? {
                Some(message) => Self::NeighborDiscovery(message),
                None => Self::Other { kind, code, body: &bytes[4..] },
            },
        })
    }

    /// Returns the number of bytes that [`Icmpv6Message::emit`] writes.
    #[must_use]
    pub const fn length(&self) -> usize {
        match self {
            Self::EchoRequest(echo) | Self::EchoReply(echo) => {
                Self::HEADER_LENGTH + echo.data.len()
            }
            Self::Error { quote, .. } => Self::HEADER_LENGTH + quote.bytes().len(),
            Self::NeighborDiscovery(message) => 4 + message.length(),
            Self::Other { body, .. } => 4 + body.len(),
        }
    }

    /// Writes the message, including its checksum, to the start of `bytes`. Returns its length.
    /// `header` is the IPv6 header of the packet that will carry the message. For Neighbour
    /// Discovery, its hop limit must be 255 ([`NdMessage::HOP_LIMIT`]).
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Icmpv6Message::length`].
    pub fn emit(&self, header: &Ipv6Header, bytes: &mut [u8]) -> usize {
        let length = self.length();
        let message = &mut bytes[..length];
        let (kind, code) = match *self {
            Self::EchoRequest(echo) => (ECHO_REQUEST, fill(message, echo.identifiers(), echo.data)),
            Self::EchoReply(echo) => (ECHO_REPLY, fill(message, echo.identifiers(), echo.data)),
            Self::Error { error, quote } => {
                let (kind, code, field) = error.fields();
                fill(message, field, quote.bytes());
                (kind, code)
            }
            Self::NeighborDiscovery(nd) => (nd.emit(&mut message[4..]), 0),
            Self::Other { kind, code, body } => {
                message[4..].copy_from_slice(body);
                (kind, code)
            }
        };
        *room(message) = [kind, code, 0, 0];
        let pseudo = header.pseudo_header(Protocol::ICMPV6, length);
        let checksum = (pseudo + Sum::of(message)).finish();
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        length
    }
}

/// Writes the second word of the ICMPv6 header and the bytes after it into `message`. Returns zero,
/// the ICMPv6 code of echo messages.
fn fill(message: &mut [u8], field: [u8; 4], rest: &[u8]) -> u8 {
    message[4..8].copy_from_slice(&field);
    message[8..].copy_from_slice(rest);
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv6Addr;

    const A: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

    fn header() -> Ipv6Header {
        Ipv6Header::new(A, B, Protocol::ICMPV6)
    }

    #[test]
    fn an_echo_request_has_the_layout_of_rfc_4443_and_the_reply_repeats_it() {
        let echo = Echo { identifier: 0x1234, sequence: 7, data: b"abc" };
        let mut bytes = [0; 11];
        assert_eq!(Icmpv6Message::EchoRequest(echo).emit(&header(), &mut bytes), 11);
        assert_eq!((&bytes[..2], &bytes[4..]), (&[128, 0][..], &b"\x12\x34\0\x07abc"[..]));
        let parsed = Icmpv6Message::parse(&header(), &bytes);
        assert_eq!(parsed, Ok(Icmpv6Message::EchoRequest(echo)));
        Icmpv6Message::EchoReply(echo).emit(&header(), &mut bytes);
        assert_eq!(bytes[0], 129);
    }

    #[test]
    fn the_checksum_covers_the_addresses() {
        let echo = Icmpv6Message::EchoRequest(Echo { identifier: 1, sequence: 2, data: &[] });
        let mut bytes = [0; 8];
        echo.emit(&header(), &mut bytes);
        // The checksum is computed by hand: 0xfe80 + 1 + 0xfe80 + 2 + 8 + 58 + 0x8000 + 1 + 2 =
        // 0x27d48, folded and inverted.
        assert_eq!(bytes[2..4], [0x82, 0xb5]);
        let other = Ipv6Header { source: B, destination: B, ..header() };
        let wrong = Err(Malformed::Checksum { what: "ICMPv6 message" });
        assert_eq!(Icmpv6Message::parse(&other, &bytes), wrong);
        assert!(Icmpv6Message::parse(&header(), &bytes[..7]).is_err());
    }

    #[test]
    fn packet_too_big_quotes_the_packet() {
        let mut packet = [9; 1_500];
        Ipv6Header::new(A, B, Protocol::TCP).emit(1_460, &mut packet);
        let error = Icmpv6Error::PacketTooBig { mtu: 1_400 };
        let message = Icmpv6Message::Error { error, quote: Ipv6Quote::of(&packet).unwrap() };
        let mut bytes = [0; 1_280];
        let length = message.emit(&header(), &mut bytes);
        assert_eq!((length, bytes[0], &bytes[4..8]), (1_240, 2, &[0, 0, 0x05, 0x78][..]));
        assert_eq!(Icmpv6Message::parse(&header(), &bytes[..length]), Ok(message));
    }

    #[test]
    fn unknown_errors_quote_a_packet_and_unknown_informational_messages_are_kept() {
        let mut bytes = [0; 48];
        let message = Icmpv6Message::Other { kind: 143, code: 1, body: &[1, 2, 3, 4, 5] };
        let length = message.emit(&header(), &mut bytes);
        assert_eq!(Icmpv6Message::parse(&header(), &bytes[..length]), Ok(message));
        let mut packet = [0; 40];
        header().emit(0, &mut packet);
        let error = Icmpv6Error::Unknown { kind: 101, code: 3, field: [1, 2, 3, 4] };
        let message = Icmpv6Message::Error { error, quote: Ipv6Quote::of(&packet).unwrap() };
        let length = message.emit(&header(), &mut bytes);
        assert_eq!(Icmpv6Message::parse(&header(), &bytes[..length]), Ok(message));
    }
}

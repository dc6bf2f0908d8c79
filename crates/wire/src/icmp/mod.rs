//! ICMP messages (RFC 792).

mod error;
mod quote;

pub use error::{IcmpError, Redirect, TimeExceeded, Unreachable};
pub use quote::Quote;

use crate::layout::{half, room, split_fixed};
use crate::{Malformed, Sum};

/// The content of an echo request, or of the echo reply that repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo<'a> {
    /// A number that distinguishes the programs which send requests.
    pub identifier: u16,
    /// A number that distinguishes the requests of a program.
    pub sequence: u16,
    /// The data to be repeated in the reply.
    pub data: &'a [u8],
}

/// An ICMP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpMessage<'a> {
    /// An echo request.
    EchoRequest(Echo<'a>),
    /// An echo reply.
    EchoReply(Echo<'a>),
    /// A report of a problem with a packet. Hosts must not answer it by another error (RFC 1122
    /// §3.2.2).
    Error {
        /// The problem that the message reports.
        error: IcmpError,
        /// The beginning of the packet that caused the problem.
        quote: Quote<'a>,
    },
    /// A message that this stack does not implement, and silently discards (RFC 1122 §3.2.2).
    Other {
        /// The ICMP type of the message.
        kind: u8,
        /// The ICMP code of the message.
        code: u8,
        /// The bytes after the checksum, at least four.
        body: &'a [u8],
    },
}

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;

impl<'a> IcmpMessage<'a> {
    /// The length of the header that all messages share, in bytes.
    pub const HEADER_LENGTH: usize = quote::HEADER_LENGTH;

    /// Parses the message that fills `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] if the header is cut short, the checksum is wrong, or an error does not quote
    /// an IPv4 header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, rest) = split_fixed::<{ IcmpMessage::HEADER_LENGTH }>("ICMP header", bytes)?;
        if !Sum::of(bytes).is_valid() {
            return Err(Malformed::Checksum { what: "ICMP message" });
        }
        let [kind, code, _, _, a, b, c, d] = *fixed;
        let echo = Echo { identifier: half(fixed, 4), sequence: half(fixed, 6), data: rest };
        Ok(match (kind, code) {
            (ECHO_REQUEST, 0) => Self::EchoRequest(echo),
            (ECHO_REPLY, 0) => Self::EchoReply(echo),
            _ => match IcmpError::read(kind, code, [a, b, c, d]) {
                Some(error) => Self::Error { error, quote: Quote::parse(rest)? },
                None => Self::Other { kind, code, body: &bytes[4..] },
            },
        })
    }

    /// Returns the number of bytes that [`IcmpMessage::emit`] writes.
    #[must_use]
    pub const fn length(&self) -> usize {
        let body = match self {
            Self::EchoRequest(echo) | Self::EchoReply(echo) => {
                Self::HEADER_LENGTH - 4 + echo.data.len()
            }
            Self::Error { quote, .. } => Self::HEADER_LENGTH - 4 + quote.bytes().len(),
            Self::Other { body, .. } => body.len(),
        };
        4 + body
    }

    /// Writes the message, including its checksum, to the start of `bytes`. Returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`IcmpMessage::length`].
    pub fn emit(&self, bytes: &mut [u8]) -> usize {
        match *self {
            Self::EchoRequest(echo) => emit(ECHO_REQUEST, 0, &echo.identifiers(), echo.data, bytes),
            Self::EchoReply(echo) => emit(ECHO_REPLY, 0, &echo.identifiers(), echo.data, bytes),
            Self::Error { error, quote } => {
                let (kind, code, field) = error.fields();
                emit(kind, code, &field, quote.bytes(), bytes)
            }
            Self::Other { kind, code, body } => emit(kind, code, &[], body, bytes),
        }
    }
}

impl Echo<'_> {
    /// Returns the second word of an echo message's header: identifier and sequence number.
    pub(crate) const fn identifiers(&self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.identifier.to_be_bytes(), self.sequence.to_be_bytes());
        [a, b, c, d]
    }
}

fn emit(kind: u8, code: u8, field: &[u8], rest: &[u8], bytes: &mut [u8]) -> usize {
    *room(bytes) = [kind, code, 0, 0];
    let (field_end, end) = (4 + field.len(), 4 + field.len() + rest.len());
    bytes[4..field_end].copy_from_slice(field);
    bytes[field_end..end].copy_from_slice(rest);
    let checksum = Sum::of(&bytes[..end]).finish();
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ipv4Header, Protocol};
    use core::net::Ipv4Addr;

    #[test]
    fn an_echo_request_has_the_layout_of_rfc_792_and_the_reply_repeats_it() {
        let echo = Echo { identifier: 0x1234, sequence: 7, data: b"abc" };
        let mut bytes = [0; 11];
        assert_eq!(IcmpMessage::EchoRequest(echo).emit(&mut bytes), 11);
        assert_eq!((&bytes[..2], &bytes[4..]), (&[8, 0][..], &b"\x12\x34\0\x07abc"[..]));
        assert_eq!(IcmpMessage::parse(&bytes), Ok(IcmpMessage::EchoRequest(echo)));
        IcmpMessage::EchoReply(echo).emit(&mut bytes);
        assert_eq!(IcmpMessage::parse(&bytes), Ok(IcmpMessage::EchoReply(echo)));
    }

    #[test]
    fn an_all_zero_reply_has_a_checksum_of_all_ones() {
        let mut bytes = [0; 8];
        IcmpMessage::EchoReply(Echo { identifier: 0, sequence: 0, data: &[] }).emit(&mut bytes);
        assert_eq!(bytes, [0, 0, 0xff, 0xff, 0, 0, 0, 0]);
        assert!(IcmpMessage::parse(&bytes).is_ok() && IcmpMessage::parse(&[0; 8]).is_err());
    }

    #[test]
    fn fragmentation_needed_contains_the_mtu_and_quotes_the_packet() {
        let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        let mut packet = [9; 1_500];
        Ipv4Header::new(source, destination, Protocol::TCP).emit(1_480, &mut packet);
        let error = IcmpError::FragmentationNeeded { next_hop_mtu: 1_400 };
        let message = IcmpMessage::Error { error, quote: Quote::of(&packet).unwrap() };
        let mut bytes = [0; 576];
        let length = message.emit(&mut bytes);
        assert_eq!((length, message.length()), (556, 556));
        assert_eq!(bytes[..2], [3, 4]);
        assert_eq!(bytes[4..8], [0, 0, 0x05, 0x78]);
        assert_eq!(IcmpMessage::parse(&bytes[..length]), Ok(message));
    }

    #[test]
    fn unknown_types_and_codes_are_kept_unchanged() {
        for (kind, code) in [(13, 0), (3, 16), (8, 1), (200, 200)] {
            let message = IcmpMessage::Other { kind, code, body: &[1, 2, 3, 4, 5] };
            let mut bytes = [0; 9];
            assert_eq!(message.emit(&mut bytes), 9);
            assert_eq!(IcmpMessage::parse(&bytes), Ok(message));
        }
    }

    #[test]
    fn a_message_cut_short_or_with_a_wrong_checksum_is_malformed() {
        let mut bytes = [0; 8];
        IcmpMessage::EchoRequest(Echo { identifier: 1, sequence: 1, data: &[] }).emit(&mut bytes);
        assert!(matches!(IcmpMessage::parse(&bytes[..7]), Err(Malformed::Truncated { .. })));
        bytes[7] ^= 4;
        assert_eq!(IcmpMessage::parse(&bytes), Err(Malformed::Checksum { what: "ICMP message" }));
    }
}

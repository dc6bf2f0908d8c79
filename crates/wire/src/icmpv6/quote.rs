//! The quoted packet in an ICMPv6 error, which tells a host which of its packets caused the error.

use crate::ipv6::Head;
use crate::{Ipv6Extensions, Ipv6Fragment, Ipv6Header, Malformed, Protocol, SeqNum};

/// The beginning of the packet that caused an ICMPv6 error: a header, extension headers and some
/// payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Quote<'a> {
    /// The fixed IPv6 header of the quoted packet.
    pub header: Ipv6Header,
    /// The protocol of the payload, and the quoted bytes of its header and data. `None` if the
    /// quote ends within the extension headers, or the packet was not the first fragment.
    pub transport: Option<(Protocol, &'a [u8])>,
    /// All quoted bytes.
    bytes: &'a [u8],
}

impl<'a> Ipv6Quote<'a> {
    /// The maximum length of a quote in bytes. The packet with the error then has at most 1,280
    /// bytes, the minimum MTU of IPv6 (RFC 4443 §2.4 c).
    pub const MOST: usize = Ipv6Header::MIN_MTU - Ipv6Header::LENGTH - 8;

    /// Parses a quote: a header and the bytes after it.
    ///
    /// # Errors
    /// [`Malformed`] if `bytes` does not begin with a whole IPv6 header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (Head { header, .. }, rest) = Head::read(bytes)?;
        let transport = transport(header.next_header, rest);
        Ok(Self { header, transport, bytes })
    }

    /// Creates a quote from the packet at the start of `bytes`. It ends at the payload length of
    /// the packet, so it excludes padding, and has at most [`Ipv6Quote::MOST`] bytes.
    ///
    /// # Errors
    /// [`Malformed`] if `bytes` does not begin with a whole IPv6 header.
    pub fn of(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (Head { payload_length, .. }, _) = Head::read(bytes)?;
        let length = (Ipv6Header::LENGTH + usize::from(payload_length)).min(Self::MOST);
        Self::parse(&bytes[..length.min(bytes.len())])
    }

    /// Returns the quoted bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the source and destination ports, if they are quoted and the protocol is TCP or UDP.
    #[must_use]
    pub fn ports(&self) -> Option<(u16, u16)> {
        let [a, b, c, d] = self.first(&[Protocol::TCP, Protocol::UDP])?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// Returns SEG.SEQ, if it is quoted and the protocol is TCP.
    #[must_use]
    pub fn tcp_seq(&self) -> Option<SeqNum> {
        let [_, _, _, _, a, b, c, d] = self.first(&[Protocol::TCP])?;
        Some(SeqNum::new(u32::from_be_bytes([a, b, c, d])))
    }

    /// Returns the identifier and sequence number of an echo request, if they are quoted.
    #[must_use]
    pub fn echo_request(&self) -> Option<(u16, u16)> {
        self.echo(super::ECHO_REQUEST)
    }

    /// Returns the identifier and sequence number of an echo reply, if they are quoted.
    #[must_use]
    pub fn echo_reply(&self) -> Option<(u16, u16)> {
        self.echo(super::ECHO_REPLY)
    }

    fn echo(&self, kind: u8) -> Option<(u16, u16)> {
        match self.first(&[Protocol::ICMPV6])? {
            [found, 0, _, _, a, b, c, d] if found == kind => {
                Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
            }
            _ => None,
        }
    }

    /// Returns the fragment header, if the packet was a fragment and the header is quoted.
    #[must_use]
    pub fn fragment(&self) -> Option<Ipv6Fragment> {
        let headers = Ipv6Extensions::new(self.bytes, self.header.next_header);
        headers.map_while(Result::ok).find_map(|header| header.fragment())
    }

    /// Is the quoted packet an ICMPv6 error? An error must not be answered by an error (RFC 4443
    /// §2.4 e.1).
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.first(&[Protocol::ICMPV6]).is_some_and(|[kind]| kind < super::FIRST_INFORMATIONAL)
    }

    /// Returns the first bytes of the transport header, if they are quoted and the protocol is one
    /// of `protocols`.
    fn first<const LENGTH: usize>(&self, protocols: &[Protocol]) -> Option<[u8; LENGTH]> {
        let (protocol, bytes) = self.transport?;
        bytes.first_chunk().copied().filter(|_| protocols.contains(&protocol))
    }
}

/// Finds the transport header in `rest`, the quoted bytes after the fixed header. `next` is the
/// type of the first header in `rest`. The quote may end anywhere. Returns the protocol and the
/// bytes from the transport header on.
fn transport(mut next: Protocol, mut rest: &[u8]) -> Option<(Protocol, &[u8])> {
    for _ in 0..=Ipv6Extensions::MOST {
        let length = match next {
            Protocol::HOP_BY_HOP | Protocol::ROUTING | Protocol::DESTINATION_OPTIONS => {
                (usize::from(*rest.get(1)?) + 1) * 8
            }
            Protocol::FRAGMENT => {
                let [_, _, high, low, ..] = *rest.first_chunk::<8>()?;
                if u16::from_be_bytes([high, low]) & !7 != 0 {
                    return None;
                }
                8
            }
            _ => return Some((next, rest)),
        };
        next = Protocol::new(rest[0]);
        rest = rest.get(length..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::net::Ipv6Addr;
    use std::vec::Vec;

    fn packet(next: Protocol, body: &[u8]) -> Vec<u8> {
        let header = Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, next);
        let mut bytes = std::vec![0; Ipv6Header::LENGTH];
        header.emit(body.len(), &mut bytes);
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn ports_and_sequence_number_follow_the_extension_headers() {
        let tcp = [0x08, 0, 0, 9, 1, 2, 3, 4];
        for extensions in
            [&[][..], &[6, 0, 0, 0, 0, 0, 0, 0], &[44, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 1, 0, 0, 0, 7]]
        {
            let next = if extensions.is_empty() { Protocol::TCP } else { Protocol::HOP_BY_HOP };
            let bytes = packet(next, &[extensions, &tcp].concat());
            let quote = Ipv6Quote::of(&bytes).unwrap();
            assert_eq!(quote.ports(), Some((0x0800, 9)));
            assert_eq!(quote.tcp_seq(), Some(SeqNum::new(0x0102_0304)));
            assert_eq!((quote.echo_request(), quote.is_error()), (None, false));
            assert_eq!(quote.bytes(), bytes);
        }
    }

    #[test]
    fn a_quoted_echo_request_has_identifier_and_sequence_number() {
        let bytes = packet(Protocol::ICMPV6, &[128, 0, 0, 0, 1, 2, 3, 4]);
        let quote = Ipv6Quote::of(&bytes).unwrap();
        assert_eq!((quote.echo_request(), quote.is_error()), (Some((0x0102, 0x0304)), false));
        let bytes = packet(Protocol::ICMPV6, &[3, 0, 0, 0, 0, 0, 0, 0]);
        assert!(Ipv6Quote::of(&bytes).unwrap().is_error());
    }

    #[test]
    fn later_fragments_and_cut_headers_have_no_transport() {
        let later = packet(Protocol::FRAGMENT, &[6, 0, 0, 8, 0, 0, 0, 7, 1, 2, 3, 4]);
        assert_eq!(Ipv6Quote::parse(&later).unwrap().transport, None);
        let cut = packet(Protocol::ROUTING, &[6, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Ipv6Quote::parse(&cut).unwrap().transport, None);
        let endless = packet(Protocol::ROUTING, &[43, 0, 0, 0, 0, 0, 0, 0].repeat(100));
        assert_eq!(Ipv6Quote::parse(&endless).unwrap().transport, None);
        assert!(Ipv6Quote::parse(&later[..39]).is_err());
    }

    #[test]
    fn quotes_fit_in_an_error_of_the_minimum_mtu() {
        let bytes = packet(Protocol::UDP, &[0; 3_000]);
        assert_eq!(Ipv6Quote::of(&bytes).unwrap().bytes().len(), 1_232);
        let mut padded = packet(Protocol::UDP, &[0; 8]);
        padded.extend([0; 20]);
        assert_eq!(Ipv6Quote::of(&padded).unwrap().bytes().len(), 48);
    }
}

//! The quoted packet in an ICMP error, which tells a host which of its packets caused the error.

use crate::ipv4::Head;
use crate::{Ipv4Header, Malformed, Protocol, SeqNum};

/// The length of the header that all ICMP messages begin with, in bytes.
pub(super) const HEADER_LENGTH: usize = 8;

/// The beginning of the packet that caused an ICMP error: a header and some payload. Senders quote
/// at least eight bytes of payload, and up to 548 bytes since RFC 1812.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote<'a> {
    /// The fixed part of the quoted header. Its checksum and lengths are not verified: routers
    /// change headers before they quote them.
    pub header: Ipv4Header,
    /// The quoted payload, possibly empty.
    pub payload: &'a [u8],
    /// The quoted bytes: header, options and payload.
    bytes: &'a [u8],
}

impl<'a> Quote<'a> {
    /// The maximum length of a quote in bytes. The packet with the error then has at most 576
    /// bytes, which every host can receive (RFC 1812 §4.3.2.3).
    pub const MOST: usize = 576 - Ipv4Header::LENGTH - HEADER_LENGTH;

    /// Parses a quote: a header and the bytes after it.
    ///
    /// # Errors
    /// [`Malformed`] if `bytes` does not begin with a whole IPv4 header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (Head { header, .. }, payload) = Head::read(bytes)?;
        Ok(Self { header, payload, bytes })
    }

    /// Creates a quote from the packet at the start of `bytes`. It ends at the total length of the
    /// packet, so it excludes padding, and has at most [`Quote::MOST`] bytes.
    ///
    /// # Errors
    /// [`Malformed`] if `bytes` does not begin with a whole IPv4 header.
    pub fn of(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (Head { total_length, .. }, payload) = Head::read(bytes)?;
        let header_length = bytes.len() - payload.len();
        let length = usize::from(total_length).clamp(header_length, Self::MOST);
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
        let has_ports = matches!(self.header.protocol, Protocol::TCP | Protocol::UDP);
        let [a, b, c, d] = self.transport::<4>().filter(|_| has_ports)?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// Returns SEG.SEQ, if it is quoted and the protocol is TCP.
    #[must_use]
    pub fn tcp_seq(&self) -> Option<SeqNum> {
        let [.., a, b, c, d] =
            self.transport::<8>().filter(|_| self.header.protocol == Protocol::TCP)?;
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
        match self.transport::<8>().filter(|_| self.header.protocol == Protocol::ICMP)? {
            [found, 0, _, _, a, b, c, d] if found == kind => {
                Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
            }
            _ => None,
        }
    }

    /// Is the quoted packet an ICMP error? An error must not be answered by an error (RFC 1122
    /// §3.2.2).
    #[must_use]
    pub fn is_error(&self) -> bool {
        let message = self.transport::<8>().filter(|_| self.header.protocol == Protocol::ICMP);
        message.is_some_and(|[kind, code, _, _, field @ ..]| {
            super::IcmpError::read(kind, code, field).is_some()
        })
    }

    /// Returns the first bytes of the transport header, if they are quoted. Only the first fragment
    /// of a packet contains them.
    fn transport<const LENGTH: usize>(&self) -> Option<[u8; LENGTH]> {
        self.payload.first_chunk().copied().filter(|_| self.header.fragment_offset == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    /// Returns a packet with eight bytes of payload, followed by padding that is not part of the
    /// packet.
    fn packet(protocol: Protocol, options: &[u8]) -> [u8; 60] {
        let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        let mut bytes = [0xee; 60];
        let header = Ipv4Header::new(source, destination, protocol);
        let at = header.emit_with_options(options, 8, &mut bytes);
        bytes[at..at + 8].copy_from_slice(&[8, 0, 0, 9, 1, 2, 3, 4]);
        bytes
    }

    #[test]
    fn eight_bytes_of_payload_contain_ports_and_sequence_number() {
        for options in [&[][..], &[1; 12]] {
            let bytes = packet(Protocol::TCP, options);
            let quote = Quote::of(&bytes).unwrap();
            assert_eq!((quote.bytes().len(), quote.payload.len()), (28 + options.len(), 8));
            assert_eq!(quote.ports(), Some((0x0800, 9)));
            assert_eq!(quote.tcp_seq(), Some(SeqNum::new(0x0102_0304)));
            assert_eq!(quote.echo_request(), None);
        }
    }

    #[test]
    fn a_quoted_echo_request_has_identifier_and_sequence_number() {
        let bytes = packet(Protocol::ICMP, &[]);
        let quote = Quote::of(&bytes).unwrap();
        assert_eq!(quote.echo_request(), Some((0x0102, 0x0304)));
        assert_eq!((quote.ports(), quote.tcp_seq()), (None, None));
    }

    #[test]
    fn missing_fields_are_none() {
        let bytes = packet(Protocol::TCP, &[]);
        let quote = Quote::parse(&bytes[..27]).unwrap();
        assert_eq!((quote.ports(), quote.tcp_seq()), (Some((0x0800, 9)), None));
        assert_eq!(Quote::parse(&bytes[..23]).unwrap().ports(), None);
        assert!(Quote::parse(&bytes[..19]).is_err());
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut bytes = packet(Protocol::UDP, &[]);
        bytes[7] = 1;
        assert_eq!(Quote::parse(&bytes).unwrap().ports(), None);
    }

    #[test]
    fn a_wrong_total_length_is_tolerated() {
        for total_length in [0_u16, 19, 29, 65_535] {
            let mut bytes = packet(Protocol::UDP, &[]);
            bytes[2..4].copy_from_slice(&total_length.to_be_bytes());
            assert!(Quote::of(&bytes).unwrap().bytes().len() >= 20);
        }
    }
}

//! The beginning of the packet that an ICMP error is about.

use crate::ipv4::Head;
use crate::{Ipv4Header, Malformed, Protocol, SeqNum};

/// A header and the first bytes that it carried, as many as the sender of the error gave: eight in
/// the old days, up to 548 since RFC 1812.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote<'a> {
    /// The fixed part of the quoted header. Its checksum and lengths are not judged: routers change
    /// headers before they quote them.
    pub header: Ipv4Header,
    /// What there is of the payload; none of it is certain to be there.
    pub payload: &'a [u8],
    /// Header, options and payload.
    bytes: &'a [u8],
}

impl<'a> Quote<'a> {
    /// The longest quote that leaves an error within the 576 bytes that every host takes (RFC 1812
    /// §4.3.2.3).
    pub const MOST: usize = 576 - Ipv4Header::LENGTH - super::IcmpMessage::HEADER_LENGTH;

    /// Reads what somebody quoted: a header, and what follows it.
    ///
    /// # Errors
    /// [`Malformed`] if `bytes` does not begin with a whole IPv4 header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (Head { header, .. }, payload) = Head::read(bytes)?;
        Ok(Self { header, payload, bytes })
    }

    /// Quotes the packet at the start of `bytes`, without padding and up to [`Quote::MOST`] bytes.
    ///
    /// # Errors
    /// [`Malformed`] if `bytes` does not begin with a whole IPv4 header.
    pub fn of(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (Head { total_length, .. }, payload) = Head::read(bytes)?;
        let header_length = bytes.len() - payload.len();
        let length = usize::from(total_length).clamp(header_length, Self::MOST);
        Self::parse(&bytes[..length.min(bytes.len())])
    }

    /// The quoted bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Source and destination port, if the packet was of TCP or UDP and they are quoted.
    #[must_use]
    pub fn ports(&self) -> Option<(u16, u16)> {
        let has_ports = matches!(self.header.protocol, Protocol::TCP | Protocol::UDP);
        let [a, b, c, d] = self.transport::<4>().filter(|_| has_ports)?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// SEG.SEQ, if the packet was of TCP and it is quoted.
    #[must_use]
    pub fn tcp_seq(&self) -> Option<SeqNum> {
        let [.., a, b, c, d] =
            self.transport::<8>().filter(|_| self.header.protocol == Protocol::TCP)?;
        Some(SeqNum::new(u32::from_be_bytes([a, b, c, d])))
    }

    /// Identifier and sequence number, if the packet was an echo request and they are quoted.
    #[must_use]
    pub fn echo_request(&self) -> Option<(u16, u16)> {
        match self.transport::<8>().filter(|_| self.header.protocol == Protocol::ICMP)? {
            [8, 0, _, _, a, b, c, d] => {
                Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
            }
            _ => None,
        }
    }

    /// The first bytes of the transport's header, if the packet held them and they are quoted.
    fn transport<const LENGTH: usize>(&self) -> Option<[u8; LENGTH]> {
        self.payload.first_chunk().copied().filter(|_| self.header.fragment_offset == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    /// A packet with eight bytes of payload, then padding.
    fn packet(protocol: Protocol, options: &[u8]) -> [u8; 60] {
        let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        let mut bytes = [0xee; 60];
        let header = Ipv4Header::new(source, destination, protocol);
        let at = header.emit_with_options(options, 8, &mut bytes);
        bytes[at..at + 8].copy_from_slice(&[8, 0, 0, 9, 1, 2, 3, 4]);
        bytes
    }

    #[test]
    fn eight_bytes_behind_any_options_tell_ports_and_sequence_number() {
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
    fn an_echo_request_is_known_by_identifier_and_sequence_number() {
        let bytes = packet(Protocol::ICMP, &[]);
        let quote = Quote::of(&bytes).unwrap();
        assert_eq!(quote.echo_request(), Some((0x0102, 0x0304)));
        assert_eq!((quote.ports(), quote.tcp_seq()), (None, None));
    }

    #[test]
    fn what_is_cut_off_is_not_made_up() {
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
    fn a_total_length_that_lies_does_no_harm() {
        for total_length in [0_u16, 19, 29, 65_535] {
            let mut bytes = packet(Protocol::UDP, &[]);
            bytes[2..4].copy_from_slice(&total_length.to_be_bytes());
            assert!(Quote::of(&bytes).unwrap().bytes().len() >= 20);
        }
    }
}

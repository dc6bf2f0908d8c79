//! Translates packets between IPv4, for which scripts are written, and IPv6, so that the same
//! script can examine a host over IPv6. An IPv6 packet is 20 bytes longer, so the MTU of the link
//! is larger as well.

use linerate_wire::{
    IcmpError, IcmpMessage, Icmpv6Error, Icmpv6Message, Icmpv6Problem, Icmpv6Unreachable,
    Ipv4Header, Ipv4Packet, Ipv6Header, Ipv6Packet, Ipv6Quote, Protocol, Quote, Sum, TcpHeader,
    TimeExceeded, Unreachable,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

/// Number of bytes by which an IPv6 header is longer than an IPv4 header.
pub(crate) const LONGER: u16 = 20;

/// The IP version over which the host is examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv4, for which scripts are written.
    #[default]
    Ipv4,
    /// IPv6. Each IPv4 address of the script is embedded in an IPv6 address.
    Ipv6,
}

impl Family {
    /// Returns the host's address over this IP version, given its address in the script.
    pub(crate) fn address(self, address: Ipv4Addr) -> IpAddr {
        match self {
            Self::Ipv4 => address.into(),
            Self::Ipv6 => embedded(address).into(),
        }
    }

    /// Returns an address and port over this IP version, given those in the script.
    pub(crate) fn end(self, end: SocketAddrV4) -> SocketAddr {
        SocketAddr::new(self.address(*end.ip()), end.port())
    }

    /// Returns the number of bytes by which this IP version's header is longer than an IPv4 header.
    pub(crate) const fn longer(self) -> u16 {
        match self {
            Self::Ipv4 => 0,
            Self::Ipv6 => LONGER,
        }
    }
}

/// Returns the IPv6 address in which an IPv4 address is embedded.
fn embedded(address: Ipv4Addr) -> Ipv6Addr {
    if address.is_unspecified() {
        return Ipv6Addr::UNSPECIFIED;
    }
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(address.to_bits()))
}

/// Returns the IPv4 address that is embedded in an IPv6 address.
fn contained(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

/// Translates a packet to IPv6. Returns `None` for a packet without a counterpart in IPv6.
pub(crate) fn to_ipv6(packet: &[u8]) -> Option<Vec<u8>> {
    let packet = Ipv4Packet::parse(packet).ok()?;
    let old = packet.header;
    match old.protocol {
        Protocol::TCP => {
            let new = header_v6(&old, Protocol::TCP);
            let mut segment = packet.payload.to_vec();
            let pseudo = new.pseudo_header(Protocol::TCP, segment.len());
            move_checksum(&mut segment, old.pseudo_header(packet.payload.len()), pseudo);
            Some(with_payload(&new, &segment))
        }
        Protocol::ICMP => {
            let IcmpMessage::Error { error, quote } = IcmpMessage::parse(packet.payload).ok()?
            else {
                return None;
            };
            let new = header_v6(&old, Protocol::ICMPV6);
            let quoted = quote_v6(&quote);
            let quote = Ipv6Quote::parse(&quoted).ok()?;
            let message = Icmpv6Message::Error { error: error_v6(error)?, quote };
            let mut bytes = vec![0; message.length()];
            message.emit(&new, &mut bytes);
            Some(with_payload(&new, &bytes))
        }
        _ => None,
    }
}

/// Translates a TCP segment to IPv4. Returns `None` for any other packet.
pub(crate) fn to_ipv4(packet: &[u8]) -> Option<Vec<u8>> {
    let packet = Ipv6Packet::parse(packet).ok()?;
    let old = packet.header;
    if packet.protocol != Protocol::TCP || packet.fragment.is_some() {
        return None;
    }
    let new = Ipv4Header {
        type_of_service: old.traffic_class,
        ttl: old.hop_limit,
        ..Ipv4Header::new(contained(old.source), contained(old.destination), Protocol::TCP)
    };
    let mut segment = packet.payload.to_vec();
    let pseudo = old.pseudo_header(Protocol::TCP, segment.len());
    move_checksum(&mut segment, pseudo, new.pseudo_header(packet.payload.len()));
    let mut bytes = vec![0; Ipv4Header::LENGTH];
    new.emit(segment.len(), &mut bytes);
    bytes.extend(segment);
    Some(bytes)
}

fn header_v6(old: &Ipv4Header, protocol: Protocol) -> Ipv6Header {
    Ipv6Header {
        traffic_class: old.type_of_service,
        hop_limit: old.ttl,
        ..Ipv6Header::new(embedded(old.source), embedded(old.destination), protocol)
    }
}

fn with_payload(header: &Ipv6Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; Ipv6Header::LENGTH];
    header.emit(payload.len(), &mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// Changes the checksum of a segment to another pseudo-header, given the sums of both. A wrong
/// checksum remains wrong.
fn move_checksum(segment: &mut [u8], old: Sum, new: Sum) {
    let was_valid = (old + Sum::of(segment)).is_valid();
    let at = TcpHeader::CHECKSUM_OFFSET;
    if !was_valid || segment.len() < TcpHeader::LENGTH {
        return;
    }
    segment[at..at + 2].fill(0);
    let sum = Sum::of(segment);
    TcpHeader::fill_checksum(segment, new, sum);
}

fn quote_v6(quote: &Quote<'_>) -> Vec<u8> {
    let total = quote
        .bytes()
        .get(2..4)
        .map_or(0, |length| usize::from(u16::from_be_bytes([length[0], length[1]])));
    let length = total.saturating_sub(Ipv4Header::LENGTH);
    let mut bytes = vec![0; Ipv6Header::LENGTH];
    header_v6(&quote.header, quote.header.protocol).emit(length, &mut bytes);
    bytes.extend_from_slice(quote.payload);
    bytes
}

/// Returns the ICMPv6 error with the same meaning, if there is one.
fn error_v6(error: IcmpError) -> Option<Icmpv6Error> {
    Some(match error {
        IcmpError::FragmentationNeeded { next_hop_mtu } => {
            Icmpv6Error::PacketTooBig { mtu: u32::from(next_hop_mtu.saturating_add(LONGER)) }
        }
        IcmpError::Unreachable(reason) => match reason {
            Unreachable::Port => Icmpv6Error::Unreachable(Icmpv6Unreachable::Port),
            Unreachable::Protocol => {
                Icmpv6Error::ParameterProblem { problem: Icmpv6Problem::NextHeader, pointer: 6 }
            }
            Unreachable::Net | Unreachable::NetUnknown => {
                Icmpv6Error::Unreachable(Icmpv6Unreachable::NoRoute)
            }
            Unreachable::NetProhibited | Unreachable::HostProhibited | Unreachable::Prohibited => {
                Icmpv6Error::Unreachable(Icmpv6Unreachable::Prohibited)
            }
            _ => Icmpv6Error::Unreachable(Icmpv6Unreachable::Address),
        },
        IcmpError::TimeExceeded(TimeExceeded::Transit) => Icmpv6Error::HopLimitExceeded,
        IcmpError::TimeExceeded(TimeExceeded::Reassembly) => Icmpv6Error::ReassemblyTimeExceeded,
        IcmpError::ParameterProblem { .. } => {
            Icmpv6Error::ParameterProblem { problem: Icmpv6Problem::HeaderField, pointer: 0 }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment() -> Vec<u8> {
        let (here, there) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 168, 0, 2));
        let header = Ipv4Header { ttl: 9, ..Ipv4Header::new(here, there, Protocol::TCP) };
        let mut bytes = vec![0; 43];
        header.emit(23, &mut bytes);
        let segment = &mut bytes[20..];
        TcpHeader::default().emit(0, segment);
        let sum = Sum::of(segment);
        TcpHeader::fill_checksum(segment, header.pseudo_header(23), sum);
        bytes
    }

    #[test]
    fn a_segment_returns_from_ipv6_unchanged() {
        let old = segment();
        let new = to_ipv6(&old).unwrap();
        let packet = Ipv6Packet::parse(&new).unwrap();
        assert_eq!(packet.header.source, "2001:db8::c000:201".parse::<Ipv6Addr>().unwrap());
        assert_eq!(packet.header.hop_limit, 9);
        let pseudo = packet.header.pseudo_header(Protocol::TCP, packet.payload.len());
        assert_eq!(TcpHeader::verify_checksum(packet.payload, pseudo), Ok(()));
        assert_eq!(to_ipv4(&new).unwrap(), old);
        assert_eq!(to_ipv4(&old), None);
    }

    #[test]
    fn a_wrong_checksum_remains_wrong() {
        let mut old = segment();
        old[40] ^= 1;
        let new = to_ipv6(&old).unwrap();
        let packet = Ipv6Packet::parse(&new).unwrap();
        let pseudo = packet.header.pseudo_header(Protocol::TCP, packet.payload.len());
        assert!(TcpHeader::verify_checksum(packet.payload, pseudo).is_err());
    }

    #[test]
    fn an_error_keeps_its_meaning_and_its_quote() {
        let quoted = segment();
        let error = IcmpError::FragmentationNeeded { next_hop_mtu: 1_400 };
        let message = IcmpMessage::Error { error, quote: Quote::of(&quoted).unwrap() };
        let router = Ipv4Addr::new(192, 0, 2, 7);
        let header = Ipv4Header::new(router, Ipv4Addr::new(192, 0, 2, 1), Protocol::ICMP);
        let mut bytes = vec![0; 20 + message.length()];
        header.emit(message.length(), &mut bytes);
        message.emit(&mut bytes[20..]);
        let new = to_ipv6(&bytes).unwrap();
        let packet = Ipv6Packet::parse(&new).unwrap();
        let message = Icmpv6Message::parse(&packet.header, packet.payload).unwrap();
        let Icmpv6Message::Error { error, quote } = message else { panic!("{message:?}") };
        assert_eq!(error, Icmpv6Error::PacketTooBig { mtu: 1_420 });
        assert_eq!(quote.header.source, packet.header.destination);
        assert_eq!((quote.ports(), quote.tcp_seq().is_some()), (Some((0, 0)), true));
    }
}

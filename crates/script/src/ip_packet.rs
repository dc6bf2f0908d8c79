//! IP packets as bytes: headers, extension headers and fragments around a payload.

use crate::syntax::{ExtensionHeader, IpMarks, Marks, Piece};
use linerate_wire::{Ipv4Header, Ipv4Packet, Ipv6Header, Ipv6Packet, Protocol, Sum, TypeOfService};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The source and the destination address of a packet.
pub(crate) type Ends = (IpAddr, IpAddr);

/// Returns the contribution of the pseudo-header to the checksum of a payload of `length` bytes,
/// before folding. Both addresses must be of one IP version.
pub(crate) fn pseudo_header(ends: Ends, protocol: Protocol, length: usize) -> Sum {
    match ends {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            Ipv4Header::new(source, destination, protocol).pseudo_header(length)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            Ipv6Header::new(source, destination, protocol).pseudo_header(protocol, length)
        }
        _ => Sum::of(&[]),
    }
}

/// Builds an IP packet with this payload. If `ip` specifies a fragment, builds only this fragment
/// of the packet.
///
/// # Errors
/// The reason why no packet of this IP version can have the header fields in `ip`.
pub(crate) fn ip_packet(
    ends: Ends,
    ip: &IpMarks,
    protocol: Protocol,
    payload: Vec<u8>,
) -> Result<Vec<u8>, String> {
    match ends {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            packet_v4((source, destination), ip, protocol, payload)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet_v6((source, destination), ip, protocol, payload)
        }
        (source, destination) => Err(format!(
            "{source} and {destination}: both ends of a packet need addresses of one IP version"
        )),
    }
}

fn packet_v4(
    (source, destination): (Ipv4Addr, Ipv4Addr),
    ip: &IpMarks,
    protocol: Protocol,
    payload: Vec<u8>,
) -> Result<Vec<u8>, String> {
    if !ip.chain.is_empty() || ip.flow_label.is_some() {
        return Err(
            "IPv4 has no extension headers and no flow labels: use --ip_version=ipv6".to_owned()
        );
    }
    let mut header = Ipv4Header::new(source, destination, protocol);
    header.type_of_service = type_of_service(ip.marks);
    header.ttl = ip.ttl.unwrap_or(header.ttl);
    header.dont_fragment = ip.dont_fragment.unwrap_or_else(|| ip.piece.is_none());
    let payload = match &ip.piece {
        None => payload,
        Some(piece) => {
            let (data, more) = part(payload, piece);
            header.identification = u16::try_from(piece.id)
                .map_err(|_| format!("{}: IPv4 numbers datagrams up to 65535", piece.id))?;
            header.fragment_offset = u16::try_from(piece.first).unwrap_or(u16::MAX);
            header.more_fragments = more;
            data
        }
    };
    let most = usize::from(u16::MAX) - Ipv4Header::LENGTH;
    if payload.len() > most {
        return Err(too_long(payload.len(), most));
    }
    let mut bytes = vec![0; Ipv4Header::LENGTH];
    header.emit(payload.len(), &mut bytes);
    bytes.extend(payload);
    Ok(bytes)
}

fn packet_v6(
    (source, destination): (Ipv6Addr, Ipv6Addr),
    ip: &IpMarks,
    protocol: Protocol,
    payload: Vec<u8>,
) -> Result<Vec<u8>, String> {
    if ip.dont_fragment.is_some() {
        return Err("IPv6 has no DF: only the source can fragment a packet".to_owned());
    }
    let position = ip.piece.map_or(ip.chain.len(), |piece| piece.position);
    let (before, after) = ip.chain.split_at(position);
    let (next, mut rest) = chained(after, protocol, payload);
    let next = match &ip.piece {
        None => next,
        Some(piece) => {
            let (data, more) = part(rest, piece);
            let offset = u16::try_from(piece.first).unwrap_or(u16::MAX) | u16::from(more);
            let mut header = vec![next.number(), 0];
            header.extend(offset.to_be_bytes());
            header.extend(piece.id.to_be_bytes());
            rest = [header, data].concat();
            Protocol::FRAGMENT
        }
    };
    let (next, rest) = chained(before, next, rest);
    if rest.len() > usize::from(u16::MAX) {
        return Err(too_long(rest.len(), usize::from(u16::MAX)));
    }
    let mut header = Ipv6Header::new(source, destination, next);
    header.traffic_class = type_of_service(ip.marks);
    header.hop_limit = ip.ttl.unwrap_or(header.hop_limit);
    header.flow_label = ip.flow_label.unwrap_or(0);
    let mut bytes = vec![0; Ipv6Header::LENGTH];
    header.emit(rest.len(), &mut bytes);
    bytes.extend(rest);
    Ok(bytes)
}

fn too_long(length: usize, most: usize) -> String {
    format!("a packet with {length} bytes behind its header: {most} are possible")
}

const fn type_of_service(marks: Marks) -> TypeOfService {
    match marks {
        Marks::Any | Marks::Capable => TypeOfService::from_byte(0),
        Marks::Ecn(ecn) => TypeOfService::from_byte(0).with_ecn(ecn),
        Marks::Byte(byte) => TypeOfService::from_byte(byte),
    }
}

/// Returns the bytes from offset `piece.first` to offset `piece.last` of the fragmentable part
/// `whole`, and whether more fragments follow. If `piece.last` lies beyond the end of `whole`, the
/// missing bytes are zero.
fn part(mut whole: Vec<u8>, piece: &Piece) -> (Vec<u8>, bool) {
    let (first, last) = (piece.first as usize, piece.last as usize);
    let more = last < whole.len();
    whole.resize(whole.len().max(last), 0);
    (whole[first..last].to_vec(), more)
}

/// Prepends extension headers to `rest`, which begins with a header or a payload of the protocol
/// number `next`. Returns the protocol number of the first extension header, and all bytes.
fn chained(chain: &[ExtensionHeader], next: Protocol, rest: Vec<u8>) -> (Protocol, Vec<u8>) {
    chain.iter().rev().fold((next, rest), |(next, rest), header| {
        let (kind, mut bytes) = match *header {
            ExtensionHeader::HopByHop(option) => (Protocol::HOP_BY_HOP, options(option)),
            ExtensionHeader::Destination(option) => {
                (Protocol::DESTINATION_OPTIONS, options(option))
            }
            ExtensionHeader::Routing { kind, left } => {
                let mut bytes = vec![0, 2 * left, kind, left, 0, 0, 0, 0];
                bytes.resize(8 + 16 * usize::from(left), 0);
                (Protocol::ROUTING, bytes)
            }
        };
        bytes[0] = next.number();
        bytes.extend(rest);
        (kind, bytes)
    })
}

/// Returns the bytes of a Hop-by-Hop or Destination Options header with one option. The option has
/// the type `option` and four bytes of data. Without a type, it is four bytes of padding (PadN), so
/// that the header has the same length.
fn options(option: Option<u8>) -> Vec<u8> {
    vec![0, 0, option.unwrap_or(1), 4, 0, 0, 0, 0]
}

/// The parts of a packet that a script can specify.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParsedPacket<'a> {
    pub(crate) ends: Ends,
    pub(crate) type_of_service: TypeOfService,
    pub(crate) hops: u8,
    /// The flow label; `None` over IPv4.
    pub(crate) flow_label: Option<u32>,
    /// The DF flag; `None` over IPv6.
    pub(crate) dont_fragment: Option<bool>,
    pub(crate) protocol: Protocol,
    /// For a fragment, its identification, its offset in bytes, and whether more fragments follow.
    /// An atomic fragment counts as a fragment.
    pub(crate) fragment: Option<(u32, u32, bool)>,
    pub(crate) payload: &'a [u8],
}

impl<'a> ParsedPacket<'a> {
    /// Parses a packet of either IP version.
    ///
    /// # Errors
    /// The reason why the packet is malformed.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        if bytes.first().is_some_and(|first| first >> 4 == 6) {
            let packet = Ipv6Packet::parse(bytes).map_err(|error| error.to_string())?;
            let header = packet.header;
            let fragment = packet.fragment;
            return Ok(Self {
                ends: (header.source.into(), header.destination.into()),
                type_of_service: header.traffic_class,
                hops: header.hop_limit,
                flow_label: Some(header.flow_label),
                dont_fragment: None,
                protocol: packet.protocol,
                fragment: fragment.map(|part| (part.identification, part.offset.into(), part.more)),
                payload: packet.payload,
            });
        }
        let packet = Ipv4Packet::parse(bytes).map_err(|error| error.to_string())?;
        let header = packet.header;
        let fragment = header.is_fragment().then_some((
            header.identification.into(),
            header.fragment_offset.into(),
            header.more_fragments,
        ));
        Ok(Self {
            ends: (header.source.into(), header.destination.into()),
            type_of_service: header.type_of_service,
            hops: header.ttl,
            flow_label: None,
            dont_fragment: Some(header.dont_fragment),
            protocol: header.protocol,
            fragment,
            payload: packet.payload,
        })
    }

    /// Returns the contribution of the pseudo-header to the checksum of the payload, before
    /// folding.
    pub(crate) fn pseudo_header(&self) -> Sum {
        pseudo_header(self.ends, self.protocol, self.payload.len())
    }

    /// Returns whether the payload begins with the header of its protocol. This is so for a whole
    /// packet and for the first fragment, but not for the other fragments.
    pub(crate) fn has_header(&self) -> bool {
        self.fragment.is_none_or(|(_, offset, _)| offset == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a packet with 16 bytes of payload. `text` specifies fields of its IP header in the
    /// notation of scripts, such as `[ttl 3]`.
    fn build(ends: [&str; 2], text: &str) -> Result<Vec<u8>, String> {
        let [source, destination] = ends.map(|end| end.parse().unwrap());
        let ip = packet_marks(text);
        ip_packet((source, destination), &ip, Protocol::UDP, (1..=16).collect())
    }

    fn packet_marks(text: &str) -> IpMarks {
        let script = crate::Script::parse(&format!("0 < {text} udp (8)"), None).unwrap();
        match script.events.into_iter().next().unwrap().action {
            crate::syntax::Action::Inbound(packet) => packet.ip().clone(),
            other => panic!("{other:?}"),
        }
    }

    const V4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
    const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

    #[test]
    fn fragments_are_parts_of_the_payload() {
        let first = build(V4, "[frag 7 0:8]").unwrap();
        let parsed = ParsedPacket::parse(&first).unwrap();
        assert_eq!(
            (parsed.fragment, parsed.payload),
            (Some((7, 0, true)), &[1, 2, 3, 4, 5, 6, 7, 8][..])
        );
        assert_eq!(parsed.dont_fragment, Some(false));
        let last = build(V6, "[frag 7 8:20]").unwrap();
        let parsed = ParsedPacket::parse(&last).unwrap();
        assert_eq!(parsed.fragment, Some((7, 8, false)));
        assert_eq!(parsed.payload, [9, 10, 11, 12, 13, 14, 15, 16, 0, 0, 0, 0]);
        let atomic = build(V6, "[frag 7 0:16]").unwrap();
        let parsed = ParsedPacket::parse(&atomic).unwrap();
        assert_eq!((parsed.fragment, parsed.payload.len()), (Some((7, 0, false)), 16));
    }

    #[test]
    fn extension_headers_stand_in_their_order() {
        let bytes = build(V6, "[flowlabel 0x12345][hopopts][routing 0 1][dstopts 0x9e]").unwrap();
        let parsed = ParsedPacket::parse(&bytes).unwrap();
        assert_eq!((parsed.protocol, parsed.payload.len()), (Protocol::UDP, 16));
        assert_eq!(parsed.flow_label, Some(0x12345));
        assert_eq!((bytes[6], bytes[40], bytes[48], bytes[72]), (0, 43, 60, 17));
        // Extension headers after the fragment header belong to the fragmentable part, so the eight
        // bytes of this fragment are the Destination Options header.
        let bytes = build(V6, "[hopopts][frag 1 0:8][dstopts]").unwrap();
        assert_eq!((bytes.len(), bytes[40], bytes[48], bytes[56]), (64, 44, 60, 17));
    }

    #[test]
    fn marks_of_the_other_version_are_refused() {
        for (ends, text, says) in [
            (V4, "[hopopts]", "no extension headers"),
            (V4, "[flowlabel 1]", "no flow labels"),
            (V4, "[frag 65536 0:8]", "up to 65535"),
            (V6, "[df]", "no DF"),
            ([V4[0], V6[1]], "", "one IP version"),
        ] {
            let error = build(ends, text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(ParsedPacket::parse(&[]).is_err());
    }
}

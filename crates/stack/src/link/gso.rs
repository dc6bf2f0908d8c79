//! Segmentation in software, for links that emulate a NIC: splits a GSO frame into frames of one
//! segment each, and completes partial checksums.

use crate::demux::flow::Hosts;
use crate::ip::{Arrived, pseudo_header};
use crate::link::arrival::Arrival;
use crate::link::{Medium, PartialChecksum, RxChecksum, RxFrame};
use linerate_wire::{
    EtherType, EthernetFrame, Ipv6Header, Protocol, Segment, SeqNum, Sum, TcpFlags, TcpHeader,
};

/// Splits a GSO frame, and passes a frame for each TCP segment to `on_frame`, with complete
/// checksums. Any other frame is passed whole, and only a partial checksum is completed. A GSO
/// frame that is not TCP over IP is passed unchanged.
pub fn segment_gso_frame(
    frame: RxFrame<'_>,
    medium: Medium,
    mut on_frame: impl FnMut(RxFrame<'_>),
) {
    let plain = frame.segment.is_none();
    match frame.checksum {
        RxChecksum::Unverified | RxChecksum::Verified if plain => on_frame(frame),
        RxChecksum::Partial(place) if plain => {
            let mut bytes = frame.bytes.to_vec();
            complete(&mut bytes, place);
            on_frame(RxFrame {
                bytes: &bytes,
                checksum: RxChecksum::Verified,
                memory: None,
                ..frame
            });
        }
        _ => match GsoFrame::parse(&frame, medium) {
            Some(gso_frame) => gso_frame.cut(frame, on_frame),
            None => on_frame(frame),
        },
    }
}

/// Completes the checksum at `place`. The checksum field must contain the sum of the pseudo-header.
fn complete(bytes: &mut [u8], place: PartialChecksum) {
    let (start, at) =
        (usize::from(place.start), usize::from(place.start) + usize::from(place.offset));
    let Some(sum) = bytes.get(start..).map(Sum::of) else { return };
    if let Some(field) = bytes.get_mut(at..at + 2) {
        // A UDP checksum of zero means "no checksum", so a computed zero is replaced by all ones,
        // which is equivalent in one's complement arithmetic (RFC 768).
        let checksum = Some(sum.finish()).filter(|&checksum| checksum != 0).unwrap_or(u16::MAX);
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The parsed headers of a GSO frame.
struct GsoFrame<'a> {
    /// Number of bytes before the IP packet.
    ip: usize,
    /// Number of bytes before the TCP segment.
    tcp: usize,
    hosts: Hosts,
    /// The IPv4 identification of the first packet; `None` for IPv6.
    identification: Option<u16>,
    segment: Segment<'a>,
    /// Length of the TCP header in bytes.
    tcp_header: usize,
    /// Number of payload bytes in each segment, except the final segment, which may have fewer.
    size: usize,
}

impl<'a> GsoFrame<'a> {
    fn parse(frame: &RxFrame<'a>, medium: Medium) -> Option<Self> {
        let size = usize::from(frame.segment?.get());
        let bytes = match medium {
            Medium::Ip => frame.bytes,
            Medium::Ethernet => {
                let parsed = EthernetFrame::parse(frame.bytes).ok()?;
                let is_ip = matches!(parsed.header.ether_type, EtherType::IPV4 | EtherType::IPV6);
                is_ip.then_some(parsed.payload)?
            }
        };
        let ip = frame.bytes.len() - bytes.len();
        let (arrived, is_fragment) = Arrived::parse(Arrival::of(frame, frame.arrived), bytes)?;
        if arrived.protocol != Protocol::TCP || is_fragment {
            return None;
        }
        let segment = Segment::parse(arrived.payload).ok()?;
        let tcp_header = arrived.payload.len() - segment.payload.len();
        let (before_segment, identification) = match arrived.hosts {
            Hosts::V4(_) => {
                (usize::from(bytes[0] & 0xf) * 4, Some(u16::from_be_bytes([bytes[4], bytes[5]])))
            }
            Hosts::V6(_) => {
                let length = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
                (Ipv6Header::LENGTH + length - arrived.payload.len(), None)
            }
        };
        let tcp = ip + before_segment;
        Some(Self { ip, tcp, hosts: arrived.hosts, identification, segment, tcp_header, size })
    }

    fn cut(&self, frame: RxFrame<'_>, mut on_frame: impl FnMut(RxFrame<'_>)) {
        let data = self.segment.payload;
        let headers = self.tcp + self.tcp_header;
        let count = data.len().div_ceil(self.size).max(1);
        for index in 0..count {
            let from = index * self.size;
            let segment_bytes = &data[from..data.len().min(from + self.size)];
            let mut bytes = [&frame.bytes[..headers], segment_bytes].concat();
            self.correct(&mut bytes, index, from, index + 1 == count);
            let checksum = RxChecksum::Verified;
            on_frame(RxFrame { bytes: &bytes, checksum, segment: None, memory: None, ..frame });
        }
    }

    /// Adapts the copied headers in `bytes` to the segment with this index. The payload of the
    /// segment begins at the offset `from` of the GSO frame's payload.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a segment is a part of a packet of at most 65,535 bytes"
    )]
    fn correct(&self, bytes: &mut [u8], index: usize, from: usize, is_last: bool) {
        let (head, segment) = bytes.split_at_mut(self.tcp);
        let ip = &mut head[self.ip..];
        if let Some(identification) = self.identification {
            let total = (ip.len() + segment.len()) as u16;
            ip[2..4].copy_from_slice(&total.to_be_bytes());
            ip[4..6].copy_from_slice(&identification.wrapping_add(index as u16).to_be_bytes());
            ip[10..12].fill(0);
            let sum = Sum::of(ip).finish();
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            let length = (ip.len() + segment.len() - Ipv6Header::LENGTH) as u16;
            ip[4..6].copy_from_slice(&length.to_be_bytes());
        }
        let seq: SeqNum = self.segment.seq + from as u32;
        segment[4..8].copy_from_slice(&seq.number().to_be_bytes());
        let mut flags = self.segment.flags();
        // A frame with the AE flag uses AccECN. CWR is then a bit of the ACE counter, which every
        // segment must carry (RFC 9768 §3.3.4). Without AE, CWR is a signal of its own, which only
        // the first segment carries.
        if index > 0 && !flags.contains(TcpFlags::AE) {
            flags.remove(TcpFlags::CWR);
        }
        if !is_last {
            flags.remove(TcpFlags::FIN | TcpFlags::PSH);
        }
        [_, segment[13]] = flags.bits().to_be_bytes();
        let at = TcpHeader::CHECKSUM_OFFSET;
        segment[at..at + 2].fill(0);
        let pseudo = pseudo_header(&self.hosts, Protocol::TCP, segment.len());
        let sum = Sum::of(segment);
        TcpHeader::fill_checksum(segment, pseudo, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;
    use core::net::Ipv6Addr;
    use core::num::NonZeroU16;
    use linerate_units::Instant;
    use linerate_wire::{EthernetHeader, Ipv4Header, Ipv4Packet, Ipv6Packet, MacAddress, VlanTags};

    const FLAGS: TcpFlags =
        TcpFlags::ACK.union(TcpFlags::PSH).union(TcpFlags::FIN).union(TcpFlags::CWR);

    /// Returns the bytes of a TCP GSO frame with `data` bytes of payload.
    fn gso_frame(medium: Medium, data: usize) -> Vec<u8> {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mut bytes = vec![0; medium.header_length() + Ipv4Header::LENGTH + TcpHeader::LENGTH];
        if medium == Medium::Ethernet {
            let (near, far) = (MacAddress::new([2; 6]), MacAddress::new([4; 6]));
            let header = EthernetHeader {
                destination: far,
                source: near,
                tags: VlanTags::NONE,
                ether_type: EtherType::IPV4,
            };
            header.emit(&mut bytes);
        }
        let ip = &mut bytes[medium.header_length()..];
        let mut header = Ipv4Header::new(source, destination, Protocol::TCP);
        header.identification = u16::MAX;
        header.emit(TcpHeader::LENGTH + data, ip);
        let header =
            TcpHeader { seq: SeqNum::new(u32::MAX - 99), flags: FLAGS, ..TcpHeader::default() };
        header.emit(0, &mut ip[Ipv4Header::LENGTH..]);
        bytes.extend((0..data).map(|place| u8::try_from(place % 251).unwrap()));
        bytes
    }

    fn pieces(frame: RxFrame<'_>, medium: Medium) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        segment_gso_frame(frame, medium, |segment_bytes| {
            assert_eq!(
                (segment_bytes.checksum, segment_bytes.segment),
                (RxChecksum::Verified, None)
            );
            pieces.push(segment_bytes.bytes.to_vec());
        });
        pieces
    }

    #[test]
    fn a_gso_frame_is_split_into_its_segments() {
        for medium in [Medium::Ethernet, Medium::Ip] {
            let bytes = gso_frame(medium, 250);
            let frame =
                RxFrame { segment: NonZeroU16::new(100), ..RxFrame::plain(&bytes, Instant::ZERO) };
            let pieces = pieces(frame, medium);
            assert_eq!(pieces.len(), 3);
            let mut data = Vec::new();
            for (segment_bytes, identification) in pieces.iter().zip([u16::MAX, 0, 1]) {
                let packet = Ipv4Packet::parse(&segment_bytes[medium.header_length()..]).unwrap();
                assert_eq!(packet.header.identification, identification);
                let pseudo = packet.header.pseudo_header(packet.payload.len());
                assert_eq!(TcpHeader::verify_checksum(packet.payload, pseudo), Ok(()));
                let segment = Segment::parse(packet.payload).unwrap();
                assert_eq!(
                    segment.seq,
                    SeqNum::new(u32::MAX - 99) + u32::try_from(data.len()).unwrap()
                );
                let mut flags = TcpFlags::ACK;
                flags.set(TcpFlags::CWR, data.is_empty());
                flags.set(TcpFlags::PSH | TcpFlags::FIN, data.len() == 200);
                assert_eq!(segment.flags(), flags);
                data.extend_from_slice(segment.payload);
            }
            assert_eq!(data, bytes[bytes.len() - 250..]);
        }
    }

    #[test]
    fn an_ipv6_gso_frame_is_split_into_its_segments() {
        let header = Ipv6Header::new(Ipv6Addr::from_bits(7), Ipv6Addr::from_bits(9), Protocol::TCP);
        let mut bytes = vec![0; Ipv6Header::LENGTH + TcpHeader::LENGTH];
        header.emit(TcpHeader::LENGTH + 250, &mut bytes);
        let tcp = TcpHeader { seq: SeqNum::new(5), flags: FLAGS, ..TcpHeader::default() };
        tcp.emit(0, &mut bytes[Ipv6Header::LENGTH..]);
        bytes.extend((0..250_u8).collect::<Vec<_>>());
        let frame =
            RxFrame { segment: NonZeroU16::new(100), ..RxFrame::plain(&bytes, Instant::ZERO) };
        let pieces = pieces(frame, Medium::Ip);
        assert_eq!(pieces.len(), 3);
        let mut data = Vec::new();
        for bytes in &pieces {
            let packet = Ipv6Packet::parse(bytes).unwrap();
            assert_eq!((packet.header, packet.payload.len() + 40), (header, bytes.len()));
            let pseudo = header.pseudo_header(Protocol::TCP, packet.payload.len());
            assert_eq!(TcpHeader::verify_checksum(packet.payload, pseudo), Ok(()));
            let segment = Segment::parse(packet.payload).unwrap();
            assert_eq!(segment.seq, SeqNum::new(5) + u32::try_from(data.len()).unwrap());
            data.extend_from_slice(segment.payload);
        }
        assert_eq!(data, bytes[60..]);
    }

    #[test]
    fn a_partial_checksum_is_completed() {
        let mut bytes = gso_frame(Medium::Ip, 33);
        let packet = Ipv4Packet::parse(&bytes).unwrap();
        let pseudo = packet.header.pseudo_header(packet.payload.len());
        let at = Ipv4Header::LENGTH + TcpHeader::CHECKSUM_OFFSET;
        bytes[at..at + 2].copy_from_slice(&(!pseudo.finish()).to_be_bytes());
        let checksum = RxChecksum::Partial(PartialChecksum { start: 20, offset: 16 });
        let frame = RxFrame { checksum, ..RxFrame::plain(&bytes, Instant::ZERO) };
        let pieces = pieces(frame, Medium::Ip);
        assert_eq!(TcpHeader::verify_checksum(&pieces[0][20..], pseudo), Ok(()));
    }

    #[test]
    fn a_gso_frame_that_is_not_tcp_passes_unchanged() {
        let mut bytes = gso_frame(Medium::Ip, 250);
        bytes[9] = 17;
        let segment = NonZeroU16::new(100);
        let frame = RxFrame { segment, ..RxFrame::plain(&bytes, Instant::ZERO) };
        let mut seen = 0;
        segment_gso_frame(frame, Medium::Ip, |segment_bytes| {
            assert_eq!((segment_bytes.bytes, segment_bytes.segment), (&*bytes, segment));
            seen += 1;
        });
        assert_eq!(seen, 1);
    }
}

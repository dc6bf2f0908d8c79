//! Descriptions of the TCP segments in frames, for the timeline.

use crate::timeline::{Activity, Doing, SegmentLabel};
use linerate_wire::{
    EtherType, EthernetFrame, Ipv4Packet, Ipv6Packet, Protocol, Segment, SeqNum, TcpFlags,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The most recent numbers in each direction of every TCP connection. The key is the source and the
/// destination of the direction.
#[derive(Debug, Default)]
pub(crate) struct SegmentLabels(BTreeMap<(SocketAddr, SocketAddr), Direction>);

/// The most recent numbers in one direction of a TCP connection.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// Sequence number of the SYN in this direction, or zero if no SYN was seen. Labels show
    /// sequence numbers relative to this number.
    base: SeqNum,
    /// Acknowledgement number and window field of the most recent segment in this direction; `None`
    /// before the first segment.
    last: Option<(SeqNum, u16)>,
}

impl SegmentLabels {
    /// Returns the activity to show for a wire that begins to carry `frame`.
    pub(crate) fn label(&mut self, frame: &[u8]) -> Doing {
        self.of_tcp(frame).unwrap_or_else(|| Doing::new(Activity::Frame, frame.len() as u64))
    }

    /// Returns the activity to show for a TCP segment. Returns `None` for a SYN, a FIN, an RST, a
    /// segment without ACK, and a frame without a TCP segment.
    fn of_tcp(&mut self, frame: &[u8]) -> Option<Doing> {
        let (source, destination, payload) = tcp_payload(frame)?;
        let segment = Segment::parse(payload).ok()?;
        let from = SocketAddr::new(source, segment.source_port);
        let to = SocketAddr::new(destination, segment.destination_port);
        let flags = segment.flags();
        let back = self.0.get(&(to, from)).copied().unwrap_or_default();
        let direction = self.0.entry((from, to)).or_default();
        if flags.contains(TcpFlags::SYN) {
            *direction = Direction { base: segment.seq, last: None };
            return None;
        }
        if flags.intersects(TcpFlags::RST | TcpFlags::FIN) || !flags.contains(TcpFlags::ACK) {
            return None;
        }
        let now = (segment.ack, segment.window);
        let last = direction.last.replace(now);
        let length = u32::try_from(segment.payload.len()).unwrap_or(u32::MAX);
        let by = match last {
            _ if length > 0 => Activity::Data,
            Some((ack, window)) if ack == segment.ack && window != segment.window => {
                Activity::WindowUpdate
            }
            _ => Activity::Acknowledgement,
        };
        let label = SegmentLabel {
            seq: segment.seq - direction.base,
            length,
            ack: segment.ack - back.base,
            window: segment.window.into(),
        };
        Some(Doing { by, amount: frame.len() as u64, segment: Some(label) })
    }
}

/// Returns the source address, the destination address and the TCP segment of an unfragmented IP
/// packet. Returns `None` for any other frame.
fn tcp_payload(frame: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    let ethernet = EthernetFrame::parse(frame).ok()?;
    match ethernet.header.ether_type {
        EtherType::IPV4 => {
            let Ipv4Packet { header, payload, .. } = Ipv4Packet::parse(ethernet.payload).ok()?;
            (header.protocol == Protocol::TCP && !header.is_fragment())
                .then(|| (header.source.into(), header.destination.into(), payload))
        }
        EtherType::IPV6 => {
            let packet = Ipv6Packet::parse(ethernet.payload).ok()?;
            (packet.protocol == Protocol::TCP && packet.fragment.is_none()).then(|| {
                (packet.header.source.into(), packet.header.destination.into(), packet.payload)
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_wire::{EthernetHeader, Ipv4Header, MacAddress, TcpHeader, VlanTags};
    use std::net::Ipv4Addr;

    const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const B: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    fn frame(
        from: Ipv4Addr,
        numbers: (u32, u32),
        flags: TcpFlags,
        window: u16,
        data: usize,
    ) -> Vec<u8> {
        let (to, ports) = if from == A { (B, (5, 9)) } else { (A, (9, 5)) };
        let mut bytes = vec![0; 14 + 20 + 20 + data];
        let mac = MacAddress::new([2, 0, 0, 0, 0, 1]);
        let ether_type = EtherType::IPV4;
        let at = EthernetHeader { destination: mac, source: mac, tags: VlanTags::NONE, ether_type }
            .emit(&mut bytes);
        let at = at + Ipv4Header::new(from, to, Protocol::TCP).emit(20 + data, &mut bytes[at..]);
        TcpHeader {
            source_port: ports.0,
            destination_port: ports.1,
            seq: SeqNum::new(numbers.0),
            ack: SeqNum::new(numbers.1),
            flags,
            window,
            ..TcpHeader::default()
        }
        .emit(0, &mut bytes[at..]);
        bytes
    }

    #[test]
    fn data_acknowledgements_and_window_updates_are_told_apart() {
        let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
        let mut labels = SegmentLabels::default();
        let opening = labels.label(&frame(A, (700, 0), syn, 4_096, 0));
        assert_eq!((opening.by, opening.segment), (Activity::Frame, None));
        labels.label(&frame(B, (90, 701), syn | ack, 4_096, 0));
        let data = labels.label(&frame(A, (701, 91), ack, 4_096, 100));
        let expected = SegmentLabel { seq: 1, length: 100, ack: 1, window: 4_096 };
        assert_eq!((data.by, data.amount, data.segment), (Activity::Data, 154, Some(expected)));
        let pure = labels.label(&frame(B, (91, 801), ack, 3_996, 0));
        let expected = SegmentLabel { seq: 1, length: 0, ack: 101, window: 3_996 };
        assert_eq!((pure.by, pure.segment), (Activity::Acknowledgement, Some(expected)));
        let update = labels.label(&frame(B, (91, 801), ack, 4_096, 0));
        assert_eq!(update.by, Activity::WindowUpdate);
        let duplicate = labels.label(&frame(B, (91, 801), ack, 4_096, 0));
        assert_eq!(duplicate.by, Activity::Acknowledgement);
        assert_eq!(labels.label(&[1, 2, 3]).by, Activity::Frame);
    }
}

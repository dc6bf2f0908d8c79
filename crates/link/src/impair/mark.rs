//! ECN marking, as by a congested router (RFC 3168 §5).

use linerate_stack::Medium;
use linerate_wire::{
    Ecn, EtherType, EthernetFrame, Ipv4Header, Ipv4Packet, Ipv6Header, Ipv6Packet,
};

/// Returns the offset of the IP packet in a frame if the packet is ECN-capable, otherwise `None`.
pub(super) fn place_of_mark(medium: Medium, frame: &[u8]) -> Option<usize> {
    let at = match medium {
        Medium::Ip => 0,
        Medium::Ethernet => {
            let parsed = EthernetFrame::parse(frame).ok()?;
            matches!(parsed.header.ether_type, EtherType::IPV4 | EtherType::IPV6)
                .then_some(frame.len() - parsed.payload.len())?
        }
    };
    let packet = &frame[at..];
    let type_of_service = if is_ipv6(packet) {
        Ipv6Packet::parse_fixed(packet).ok()?.header.traffic_class
    } else {
        Ipv4Packet::parse(packet).ok()?.header.type_of_service
    };
    (type_of_service.ecn() != Ecn::NotEct).then_some(at)
}

/// Marks the IP packet at offset `place` as having experienced congestion (CE). In IPv4, also
/// updates the header checksum.
pub(super) fn mark(frame: &mut [u8], place: usize) {
    let packet = &mut frame[place..];
    if is_ipv6(packet) {
        Ipv6Header::mark_congestion(packet);
    } else {
        Ipv4Header::mark_congestion(packet);
    }
}

fn is_ipv6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 6)
}

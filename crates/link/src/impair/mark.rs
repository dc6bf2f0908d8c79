//! ECN marking, as by a congested router (RFC 3168 §5).

use linerate_stack::Medium;
use linerate_wire::{Ecn, EtherType, EthernetFrame, Ipv4Header, Ipv4Packet};

/// Returns the offset of the IPv4 packet in a frame if the packet is ECN-capable, otherwise `None`.
pub(super) fn place_of_mark(medium: Medium, frame: &[u8]) -> Option<usize> {
    let at = match medium {
        Medium::Ip => 0,
        Medium::Ethernet => {
            let parsed = EthernetFrame::parse(frame).ok()?;
            (parsed.header.ether_type == EtherType::IPV4)
                .then_some(frame.len() - parsed.payload.len())?
        }
    };
    let packet = Ipv4Packet::parse(&frame[at..]).ok()?;
    (packet.header.type_of_service.ecn() != Ecn::NotEct).then_some(at)
}

/// Marks the packet at this offset, and updates its header checksum.
pub(super) fn mark(frame: &mut [u8], place: usize) {
    Ipv4Header::mark_congestion(&mut frame[place..]);
}

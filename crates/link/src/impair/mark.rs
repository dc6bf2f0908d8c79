//! The mark of a congested router in a frame (RFC 3168 §5).

use linerate_stack::Medium;
use linerate_wire::{Ecn, EtherType, EthernetFrame, Ipv4Header, Ipv4Packet};

/// Where a packet begins whose sender would rather have it marked than lost; none if the frame carries
/// no such packet.
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

/// Marks the packet at that place.
pub(super) fn mark(frame: &mut [u8], place: usize) {
    Ipv4Header::mark_congestion(&mut frame[place..]);
}

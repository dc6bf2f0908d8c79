//! The identification field of IPv4 packets with DF set. The field identifies the fragments of a
//! datagram, so it has no meaning in packets that must not be fragmented (RFC 6864 §4.1). The field
//! is therefore zero. Optionally, it is a counter of packets, as in 4.3BSD.

use crate::ip::is_ipv6;
use linerate_wire::checksum;

/// The identification of the next packet; `None` if all identifications are zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identification(Option<u16>);

impl Identification {
    /// Creates a counter if `is_counting`, otherwise a constant zero.
    pub(crate) fn new(is_counting: bool) -> Self {
        Self(is_counting.then_some(0))
    }

    /// Is the identification a counter of packets?
    pub(crate) const fn is_counting(self) -> bool {
        self.0.is_some()
    }

    /// Writes the next value of the counter into a packet whose header is otherwise complete, and
    /// updates the header checksum. For a GSO frame, the counter advances by the number of its
    /// `segments`, because each segment becomes a packet with its own value. Leaves an IPv6 packet
    /// unchanged, because its header has no identification field.
    #[cold]
    pub(crate) fn write(&mut self, packet: &mut [u8], segments: usize) {
        let Some(next) = self.0.as_mut().filter(|_| !is_ipv6(packet)) else { return };
        let sum = checksum::update(u16::from_be_bytes([packet[10], packet[11]]), 0, *next);
        packet[4..6].copy_from_slice(&next.to_be_bytes());
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a packet of 65,535 bytes has fewer segments"
        )]
        let segments = segments as u16;
        *next = next.wrapping_add(segments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use linerate_wire::{Ipv4Header, Ipv4Packet, Protocol};

    /// Writes the next value into an IPv4 header, and returns the identification that this header
    /// then contains.
    fn next(identification: &mut Identification, segments: usize) -> u16 {
        let mut packet = [0; Ipv4Header::LENGTH];
        let (from, to) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        Ipv4Header::new(from, to, Protocol::TCP).emit(0, &mut packet);
        identification.write(&mut packet, segments);
        Ipv4Packet::parse(&packet).expect("a valid header").header.identification
    }

    #[test]
    fn the_counter_starts_at_zero_counts_segments_and_wraps() {
        let mut counting = Identification::new(true);
        assert!(counting.is_counting());
        assert_eq!([1, 1, 5, 1].map(|segments| next(&mut counting, segments)), [0, 1, 2, 7]);
        assert_eq!([65_527, 2, 1].map(|segments| next(&mut counting, segments)), [8, u16::MAX, 1]);
    }

    /// RFC 6864 §4.1: the identification has no meaning in a packet with DF set, so it may be zero.
    #[test]
    fn without_fragmentation_the_identification_is_zero() {
        let mut zero = Identification::new(false);
        assert!(!zero.is_counting());
        assert_eq!([1, 5, 1].map(|segments| next(&mut zero, segments)), [0; 3]);
    }
}

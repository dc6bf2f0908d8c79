//! The identification in the IPv4 header of segments: it tells fragments of one datagram from those of another, and where
//! nobody may make fragments it means nothing (RFC 6864 §4.1), so that it is zero. Or it counts packets, as 4.3BSD's did.

use linerate_wire::checksum;

/// What the next segment's is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identification(Option<u16>);

impl Identification {
    /// One that counts, or one that is always zero.
    pub(crate) fn new(counts: bool) -> Self {
        Self(counts.then_some(0))
    }

    /// Has every packet an own one?
    pub(crate) const fn counts(self) -> bool {
        self.0.is_some()
    }

    /// Writes the next one into a packet whose header is complete but for it; a packet that is to be cut takes as many as
    /// it has segments.
    #[cold]
    pub(crate) fn write(&mut self, packet: &mut [u8], segments: usize) {
        let Some(next) = &mut self.0 else { return };
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

    /// Writes the next one into a packet without payload, and reads it there.
    fn next(identification: &mut Identification, segments: usize) -> u16 {
        let mut packet = [0; Ipv4Header::LENGTH];
        let (from, to) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        Ipv4Header::new(from, to, Protocol::TCP).emit(0, &mut packet);
        identification.write(&mut packet, segments);
        Ipv4Packet::parse(&packet)
            .expect("a header with a checksum that is right")
            .header
            .identification
    }

    #[test]
    fn it_counts_the_segments_of_each_packet_from_zero_on_and_round_the_circle() {
        let mut counting = Identification::new(true);
        assert!(counting.counts());
        assert_eq!([1, 1, 5, 1].map(|segments| next(&mut counting, segments)), [0, 1, 2, 7]);
        assert_eq!([65_527, 2, 1].map(|segments| next(&mut counting, segments)), [8, u16::MAX, 1]);
    }

    /// RFC 6864 §4.1.
    #[test]
    fn where_nobody_makes_fragments_it_is_zero() {
        let mut zero = Identification::new(false);
        assert!(!zero.counts());
        assert_eq!([1, 5, 1].map(|segments| next(&mut zero, segments)), [0; 3]);
    }
}

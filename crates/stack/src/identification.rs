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
        #[allow(clippy::cast_possible_truncation, reason = "a packet of 65,535 bytes has fewer segments")]
        let segments = segments as u16;
        *next = next.wrapping_add(segments);
    }
}

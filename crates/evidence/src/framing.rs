//! Framing: the number of bytes that headers and the link add to the data of a packet.

use serde::{Deserialize, Serialize};

/// The bytes that a packet occupies on the wire in addition to its data. Since acknowledgements can
/// share the medium with data, their size and frequency also belong to the framing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Framing {
    /// Name of the framing, such as `Ethernet`.
    pub name: String,
    /// Bytes of the IP and TCP headers of a data segment, including its TCP options.
    pub headers: u32,
    /// Bytes that the link adds to an IP packet. For Ethernet these are header, frame check
    /// sequence, preamble and inter-frame gap.
    pub overhead: u32,
    /// Minimum number of bytes that a packet occupies on the wire, including the bytes that the
    /// link adds. Shorter packets are padded.
    pub minimum: u32,
    /// Number of bytes that an acknowledgement without data occupies on the wire.
    pub acknowledgement: u32,
    /// Number of data segments that one acknowledgement covers.
    pub segments_per_ack: u32,
    /// Whether the medium is half-duplex, so that acknowledgements share the medium with data.
    pub half_duplex: bool,
}

/// Bytes of the IPv4 and TCP headers without options.
const HEADERS: u32 = 20 + 20;

impl Framing {
    /// Returns the framing of full-duplex Ethernet; every segment has `options` bytes of TCP
    /// options.
    ///
    /// A frame has 14 bytes of header and 4 of frame check sequence, and at least 64 bytes in all.
    /// The preamble of 8 bytes and the inter-frame gap of 12 are added.
    #[must_use]
    pub fn ethernet(options: u32) -> Self {
        Self::of("Ethernet", options, 14 + 4 + 8 + 12, 64 + 8 + 12)
    }

    /// Returns the framing of Ethernet frames that are passed in memory. Such a frame has a header
    /// of 14 bytes, but no check sequence, preamble, inter-frame gap or padding. Every segment has
    /// `options` bytes of TCP options.
    #[must_use]
    pub fn ethernet_in_memory(options: u32) -> Self {
        Self::of("Ethernet frames in memory", options, 14, 0)
    }

    /// Returns the framing of IP packets in memory, to which the link adds nothing. Every segment
    /// has `options` bytes of TCP options.
    #[must_use]
    pub fn ip_in_memory(options: u32) -> Self {
        Self::of("IP packets in memory", options, 0, 0)
    }

    /// Returns the number of bytes that a packet with `payload` bytes of data occupies on the wire.
    #[must_use]
    pub fn on_wire(&self, payload: u32) -> u32 {
        payload.saturating_add(self.headers).saturating_add(self.overhead).max(self.minimum)
    }

    /// Returns the number of bytes on the wire for a full segment of `payload` bytes. On a
    /// half-duplex medium, the result includes the segment's part of an acknowledgement. If an
    /// acknowledgement covers two segments, for example, half of its size is added to each.
    #[must_use]
    pub fn per_segment(&self, payload: u32) -> f64 {
        let share = f64::from(self.acknowledgement) / f64::from(self.segments_per_ack.max(1));
        f64::from(self.on_wire(payload)) + if self.half_duplex { share } else { 0.0 }
    }

    /// Returns the number of bits on the wire for each byte of data, if all segments are full and
    /// carry `payload` bytes.
    #[must_use]
    pub fn bits_per_byte(&self, payload: u32) -> f64 {
        self.per_segment(payload) * 8.0 / f64::from(payload.max(1))
    }

    fn of(name: &str, options: u32, overhead: u32, minimum: u32) -> Self {
        let headers = HEADERS + options;
        Self {
            name: name.to_owned(),
            headers,
            overhead,
            minimum,
            acknowledgement: minimum.max(headers + overhead),
            segments_per_ack: 2,
            half_duplex: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ethernet_frame_occupies_1538_bytes_and_an_acknowledgement_84() {
        let framing = Framing::ethernet(0);
        assert_eq!((framing.on_wire(1_460), framing.acknowledgement), (1_538, 84));
        let with_timestamps = Framing::ethernet(12);
        assert_eq!((with_timestamps.on_wire(1_448), with_timestamps.acknowledgement), (1_538, 90));
    }

    #[test]
    fn acknowledgements_count_on_a_shared_medium_only() {
        let own = Framing::ethernet(0);
        let shared = Framing { half_duplex: true, ..own.clone() };
        assert_eq!(shared.per_segment(1_460) - own.per_segment(1_460), 42.0);
    }
}

//! Bytes on the wire besides the data.

use serde::{Deserialize, Serialize};

/// Bytes that packets occupy on the wire besides their payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Framing {
    /// The framing's name, such as `Ethernet`.
    pub name: String,
    /// Bytes of the IP and TCP headers, with the options of every segment.
    pub headers: u32,
    /// Bytes of the link for each IP packet: header, check sequence, preamble and gap.
    pub overhead: u32,
    /// Minimum bytes of a packet on the wire, overhead included.
    pub minimum: u32,
    /// Bytes of an acknowledgement without data on the wire.
    pub acknowledgement: u32,
    /// Data segments for each acknowledgement.
    pub segments_per_ack: u32,
    /// Whether both directions share the medium.
    pub half_duplex: bool,
}

/// Bytes of the IPv4 and TCP headers without options.
const HEADERS: u32 = 20 + 20;

impl Framing {
    /// Returns the framing of full-duplex Ethernet: 14 bytes of header, 4 of check sequence, 8 of
    /// preamble and 12 of gap; frames have at least 64 bytes without the last two. `options` is the
    /// length of the TCP options of every segment.
    #[must_use]
    pub fn ethernet(options: u32) -> Self {
        Self::of("Ethernet", options, 14 + 4 + 8 + 12, 64 + 8 + 12)
    }

    /// Returns the framing of Ethernet frames passed in memory: 14 bytes of header and no more.
    #[must_use]
    pub fn ethernet_in_memory(options: u32) -> Self {
        Self::of("Ethernet frames in memory", options, 14, 0)
    }

    /// Returns the framing of IP packets passed in memory, which have no overhead.
    #[must_use]
    pub fn ip_in_memory(options: u32) -> Self {
        Self::of("IP packets in memory", options, 0, 0)
    }

    /// Returns the bytes that a packet with `payload` bytes of data occupies on the wire.
    #[must_use]
    pub fn on_wire(&self, payload: u32) -> u32 {
        payload.saturating_add(self.headers).saturating_add(self.overhead).max(self.minimum)
    }

    /// Returns the bytes on the wire for a full segment of `payload` bytes, with its share of an
    /// acknowledgement if both directions share the medium.
    #[must_use]
    pub fn per_segment(&self, payload: u32) -> f64 {
        let share = f64::from(self.acknowledgement) / f64::from(self.segments_per_ack.max(1));
        f64::from(self.on_wire(payload)) + if self.half_duplex { share } else { 0.0 }
    }

    /// Returns the bits on the wire for each byte of data, in full segments of `payload` bytes.
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

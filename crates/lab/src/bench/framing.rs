//! What goes over the wire besides the data.

use serde::{Deserialize, Serialize};

/// Bytes that packets occupy on the wire besides their payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Framing {
    /// The framing's name, such as `Ethernet`.
    pub name: String,
    /// IP and TCP headers with the options that every segment carries.
    pub headers: u32,
    /// Bytes of the link around each IP packet: its header, check sequence, preamble and gap.
    pub overhead: u32,
    /// The least that a packet occupies, all of the overhead included.
    pub minimum: u32,
    /// What an acknowledgement without data occupies.
    pub acknowledgement: u32,
    /// Data segments for each acknowledgement.
    pub segments_per_ack: u32,
    /// Do both directions share the medium?
    pub half_duplex: bool,
}

/// IPv4 and TCP headers without options.
const HEADERS: u32 = 20 + 20;

impl Framing {
    /// Ethernet on a cable of its own for each direction: 14 bytes of header, 4 of check sequence, 8
    /// of preamble, 12 of gap, frames of at least 64 bytes without the last two. `options` is the
    /// length of the TCP options that every segment carries.
    #[must_use]
    pub fn ethernet(options: u32) -> Self {
        Self::of("Ethernet", options, 14 + 4 + 8 + 12, 64 + 8 + 12)
    }

    /// Ethernet frames that are handed over in memory: the header of 14 bytes is all there is
    /// around a packet.
    #[must_use]
    pub fn ethernet_in_memory(options: u32) -> Self {
        Self::of("Ethernet frames in memory", options, 14, 0)
    }

    /// IP packets that are handed over in memory, with nothing around them.
    #[must_use]
    pub fn ip_in_memory(options: u32) -> Self {
        Self::of("IP packets in memory", options, 0, 0)
    }

    /// Bytes that a packet with `payload` bytes of data occupies on the wire.
    #[must_use]
    pub fn on_wire(&self, payload: u32) -> u32 {
        payload.saturating_add(self.headers).saturating_add(self.overhead).max(self.minimum)
    }

    /// Bytes on the wire for a full segment of `payload` bytes, with its share of an acknowledgement
    /// where the medium carries that too.
    #[must_use]
    pub fn per_segment(&self, payload: u32) -> f64 {
        let share = f64::from(self.acknowledgement) / f64::from(self.segments_per_ack.max(1));
        f64::from(self.on_wire(payload)) + if self.half_duplex { share } else { 0.0 }
    }

    /// Bits on the wire for each byte of data, in full segments of `payload` bytes.
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
    fn only_a_shared_medium_carries_the_acknowledgements_too() {
        let own = Framing::ethernet(0);
        let shared = Framing { half_duplex: true, ..own.clone() };
        assert_eq!(shared.per_segment(1_460) - own.per_segment(1_460), 42.0);
    }
}

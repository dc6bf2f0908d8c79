//! The counters of a serial line.

/// The packets and bytes of one direction of a serial line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectionCounters {
    /// Number of packets sent or received in this direction.
    pub packets: u64,
    /// Total length of the packets with uncompressed headers, in bytes: sent packets before
    /// compression, received packets after decompression.
    pub packet_bytes: u64,
    /// Total length of the packets on the line, in bytes, but without SLIP's framing and escapes:
    /// sent packets after compression, received packets before decompression.
    pub compressed_bytes: u64,
    /// All bytes on the line: those of packets, framing and escapes, and received noise.
    pub line_bytes: u64,
    /// Packets whose headers contain only the differences from the previous packet (RFC 1144,
    /// `COMPRESSED_TCP`).
    pub compressed: u64,
    /// Packets with complete headers that carry a connection number, to which later compressed
    /// packets refer (RFC 1144, `UNCOMPRESSED_TCP`).
    pub whole_headers: u64,
}

impl DirectionCounters {
    /// Returns, for each counter, by how much it has increased since `earlier`, an older reading.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            packets: self.packets - earlier.packets,
            packet_bytes: self.packet_bytes - earlier.packet_bytes,
            compressed_bytes: self.compressed_bytes - earlier.compressed_bytes,
            line_bytes: self.line_bytes - earlier.line_bytes,
            compressed: self.compressed - earlier.compressed,
            whole_headers: self.whole_headers - earlier.whole_headers,
        }
    }
}

/// The counters of a serial line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SerialCounters {
    /// Counters of sent packets.
    pub sent: DirectionCounters,
    /// Counters of received packets.
    pub received: DirectionCounters,
    /// Received packets that were dropped because they were damaged: invalid escapes, impossible
    /// lengths, invalid headers or unknown types.
    pub errors: u64,
    /// Compressed packets that were dropped after an error on the line. Such a packet does not
    /// contain its connection number, so it belongs to the connection of the packet before it. The
    /// error may have destroyed that packet (RFC 1144 §4.1).
    pub tossed: u64,
}

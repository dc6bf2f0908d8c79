//! The counters of a serial line.

/// The packets and bytes of one direction of a serial line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectionCounters {
    /// Number of packets sent or received in this direction.
    pub packets: u64,
    /// Bytes of all packets, counted with uncompressed headers: before compression, or after
    /// decompression.
    pub packet_bytes: u64,
    /// Bytes of all packets as they are on the line, but without framing: after compression, or
    /// before decompression.
    pub compressed_bytes: u64,
    /// Bytes on the line, with framing, escapes and noise.
    pub line_bytes: u64,
    /// Packets whose headers were sent as differences (RFC 1144, `COMPRESSED_TCP`).
    pub compressed: u64,
    /// Packets with uncompressed headers that start the compression of a connection (RFC 1144,
    /// `UNCOMPRESSED_TCP`).
    pub whole_headers: u64,
}

impl DirectionCounters {
    /// Returns the increase of each counter since `earlier`.
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
    /// lengths or headers, unknown types.
    pub errors: u64,
    /// Compressed packets that were dropped after an error on the line. They do not name their
    /// connection, so they belong to that of the packet before them, which the error may have
    /// destroyed (RFC 1144 §4.1).
    pub tossed: u64,
}

//! TCP/IP headers on a serial line in three to sixteen bytes instead of forty (RFC 1144): what the
//! other end knows from the packet before is not said again.
//!
//! The compressor marks each packet's type in its first byte, where every IPv4 packet has the same bits
//! (RFC 1144 appendix A): `0x4` a packet as it is, `0x7` one whose protocol field names the slot in which both
//! ends keep its header, and, with the highest bit set, one whose header is said as differences to that.

mod change;
mod compressor;
mod decompressor;
mod saved;

pub use compressor::VjCompressor;
pub use decompressor::{VjDecompressor, VjTrouble};

/// Connections whose headers are kept at each end: in two years its author saw none that would have needed more.
pub const VJ_SLOTS: usize = 16;

/// The highest four bits of the first byte.
const UNCOMPRESSED: u8 = 0x70;
const COMPRESSED: u8 = 0x80;

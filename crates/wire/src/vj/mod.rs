//! Header compression on a serial line (RFC 1144): TCP/IP headers take three to sixteen bytes
//! instead of forty. Fields that the peer can derive from the previous packet are not sent.
//!
//! The compressor marks the type of each packet in the high bits of the first byte (RFC 1144
//! appendix A). An unchanged packet has its IP version there: `0x4` for IPv4, or `0x6` for IPv6,
//! which the RFC does not cover. `0x7` marks a packet with uncompressed headers. Both endpoints
//! store these headers in a slot, whose number takes the place of the protocol field. If the
//! highest bit is set, the headers are encoded as differences from the headers in a slot.

mod change;
mod compressor;
mod decompressor;
mod saved;

pub use compressor::VjCompressor;
pub use decompressor::{VjDecompressor, VjError};

/// The number of connections whose headers each endpoint keeps. The author of RFC 1144 saw no case
/// in which more were useful (note 14).
pub const VJ_SLOTS: usize = 16;

/// The packet types, in the high bits of a packet's first byte.
const IPV4: u8 = 0x40;
const IPV6: u8 = 0x60;
const UNCOMPRESSED: u8 = 0x70;
const COMPRESSED: u8 = 0x80;

//! Header compression on a serial line (RFC 1144): TCP/IP headers take three to sixteen bytes
//! instead of forty. Fields that the other end can derive from the previous packet are not sent.
//!
//! The compressor marks the type of each packet in its first byte, in the bits of the IPv4 version
//! (RFC 1144 appendix A). `0x4` is an unchanged packet. So is `0x6`, a packet of IPv6, whose number
//! the types of the RFC leave free. `0x7` is a packet with whole headers, whose
//! protocol field holds the slot in which both ends keep the headers. A set highest bit marks
//! headers that are encoded as differences to the kept ones.

mod change;
mod compressor;
mod decompressor;
mod saved;

pub use compressor::VjCompressor;
pub use decompressor::{VjDecompressor, VjError};

/// The number of connections whose headers each end keeps. The author of RFC 1144 never needed more
/// in two years of operation.
pub const VJ_SLOTS: usize = 16;

/// The packet types, in the high bits of the first byte.
const IPV4: u8 = 0x40;
const IPV6: u8 = 0x60;
const UNCOMPRESSED: u8 = 0x70;
const COMPRESSED: u8 = 0x80;

//! The constants of both file formats, for reading and writing.

/// Section Header Block; the number is the same in either byte order.
pub(super) const SECTION_HEADER: u32 = 0x0A0D_0D0A;
/// The number in a section header that reveals the byte order.
pub(super) const BYTE_ORDER: u32 = 0x1A2B_3C4D;
/// Interface Description Block.
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
/// Packet Block, obsolete.
pub(super) const OLD_PACKET: u32 = 2;
/// Simple Packet Block.
pub(super) const SIMPLE_PACKET: u32 = 3;
/// Enhanced Packet Block.
pub(super) const ENHANCED_PACKET: u32 = 6;

/// `opt_endofopt`.
pub(super) const END_OF_OPTIONS: u16 = 0;
/// `shb_userappl`.
pub(super) const APPLICATION: u16 = 4;
/// `if_name`.
pub(super) const NAME: u16 = 2;
/// `if_speed`, in bits per second.
pub(super) const SPEED: u16 = 8;
/// `if_tsresol`.
pub(super) const RESOLUTION: u16 = 9;
/// `if_tsoffset`, in seconds.
pub(super) const OFFSET: u16 = 14;
/// `epb_flags`, whose two lowest bits are the direction.
pub(super) const FLAGS: u16 = 2;

/// The two lowest bits of [`FLAGS`].
pub(super) const INBOUND: u32 = 1;
/// The two lowest bits of [`FLAGS`].
pub(super) const OUTBOUND: u32 = 2;

/// The magic number of a pcap file with microseconds.
pub(super) const PCAP_MICROSECONDS: u32 = 0xA1B2_C3D4;
/// The magic number of a pcap file with nanoseconds.
pub(super) const PCAP_NANOSECONDS: u32 = 0xA1B2_3C4D;

//! The constants of the formats pcapng and pcap, for reading and writing.

/// Block type of a Section Header Block. Its bytes are a palindrome, so a reader recognizes the
/// block before it knows the byte order of the file.
pub(super) const SECTION_HEADER: u32 = 0x0A0D_0D0A;
/// The byte-order magic of a Section Header Block. A reader that finds its bytes reversed must swap
/// the bytes of all numbers in the section.
pub(super) const BYTE_ORDER: u32 = 0x1A2B_3C4D;
/// Block type of an Interface Description Block.
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
/// Block type of the obsolete Packet Block.
pub(super) const OLD_PACKET: u32 = 2;
/// Block type of a Simple Packet Block.
pub(super) const SIMPLE_PACKET: u32 = 3;
/// Block type of an Enhanced Packet Block.
pub(super) const ENHANCED_PACKET: u32 = 6;

/// Option code `opt_endofopt`, which ends a list of options.
pub(super) const END_OF_OPTIONS: u16 = 0;
/// Option code `shb_userappl`: the program that wrote the section.
pub(super) const APPLICATION: u16 = 4;
/// Option code `if_name`: the name of the interface.
pub(super) const NAME: u16 = 2;
/// Option code `if_speed`: the bit rate of the interface, in bit/s.
pub(super) const SPEED: u16 = 8;
/// Option code `if_tsresol`: the unit of time stamps.
pub(super) const RESOLUTION: u16 = 9;
/// Option code `if_tsoffset`: seconds to add to time stamps.
pub(super) const OFFSET: u16 = 14;
/// Option code `epb_flags`, whose two lowest bits are the direction of the packet.
pub(super) const FLAGS: u16 = 2;

/// Value of the lowest two bits of [`FLAGS`] for a received packet.
pub(super) const INBOUND: u32 = 1;
/// Value of the lowest two bits of [`FLAGS`] for a sent packet.
pub(super) const OUTBOUND: u32 = 2;

/// The magic number of a pcap file whose time stamps count microseconds.
pub(super) const PCAP_MICROSECONDS: u32 = 0xA1B2_C3D4;
/// The magic number of a pcap file whose time stamps count nanoseconds.
pub(super) const PCAP_NANOSECONDS: u32 = 0xA1B2_3C4D;

//! The current capture format, pcapng (draft-ietf-opsawg-pcapng): blocks, some of which contain
//! packets.

use super::error::CaptureError;
use super::input::{ByteOrder, Input, LARGEST_PACKET};
use super::layout::{
    BYTE_ORDER, END_OF_OPTIONS, ENHANCED_PACKET, FLAGS, INBOUND, INTERFACE_DESCRIPTION, OFFSET,
    OLD_PACKET, OUTBOUND, RESOLUTION, SECTION_HEADER, SIMPLE_PACKET,
};
use super::packet::{Direction, LinkType, Packet};
use linerate_units::Duration;
use std::io::Read;

/// The number of bytes in a block that are not part of its body. They are four bytes each: the type
/// and the length before the body, and the length once more after it.
const FRAME: u32 = 12;
/// The largest block that is read into memory as a whole, in bytes. Such a block can contain the
/// largest packet and as many bytes of comments.
const LARGEST_BLOCK: u32 = 2 * LARGEST_PACKET;
/// The maximum number of interfaces of a section, which bounds the memory that a file can use.
const MOST_INTERFACES: usize = 65_536;

/// A reader of the pcapng format: the byte order and the interfaces of the file's current section.
#[derive(Debug)]
pub(super) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
}

impl Pcapng {
    /// Reads the header of the first section. The caller has read its first four bytes, the block
    /// type.
    pub(super) fn open(input: &mut Input<impl Read>) -> Result<Self, CaptureError> {
        let mut length = [0; 4];
        input.read_more(&mut length)?;
        let mut reader = Self { order: ByteOrder::Little, interfaces: Vec::new() };
        reader.begin_section(input, length)?;
        Ok(reader)
    }

    pub(super) fn next_packet<'a>(
        &mut self,
        input: &mut Input<impl Read>,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Option<Packet<'a>>, CaptureError> {
        let mut front = [0; 8];
        while input.read(&mut front)? {
            let kind = self.order.u32(&front, 0);
            if kind == SECTION_HEADER {
                let [_, _, _, _, length @ ..] = front;
                self.begin_section(input, length)?;
                continue;
            }
            let length = self.order.u32(&front, 4);
            if length < FRAME || !length.is_multiple_of(4) {
                return Err(input.damaged("a block has an impossible length"));
            }
            match kind {
                INTERFACE_DESCRIPTION => {
                    self.read_body(input, buffer, length)?;
                    self.add_interface(input, buffer)?;
                }
                ENHANCED_PACKET | SIMPLE_PACKET | OLD_PACKET => {
                    self.read_body(input, buffer, length)?;
                    let found = self.locate(kind, buffer).map_err(|what| input.damaged(what))?;
                    return Ok(Some(found.packet(buffer)));
                }
                _ => {
                    input.skip((length - FRAME).into())?;
                    self.read_length_behind(input, length)?;
                }
            }
        }
        Ok(None)
    }

    /// Begins a new section of the file: discards the interfaces of the previous section, and reads
    /// the byte order of the new one.
    fn begin_section(
        &mut self,
        input: &mut Input<impl Read>,
        length: [u8; 4],
    ) -> Result<(), CaptureError> {
        let mut start = [0; 4];
        input.read_more(&mut start)?;
        self.order = match u32::from_le_bytes(start) {
            BYTE_ORDER => ByteOrder::Little,
            other if other.swap_bytes() == BYTE_ORDER => ByteOrder::Big,
            _ => return Err(input.damaged("a section has no byte order")),
        };
        self.interfaces.clear();
        let length = self.order.u32(&length, 0);
        let mut version = [0; 12];
        input.read_more(&mut version)?;
        if length < FRAME + 16 || !length.is_multiple_of(4) {
            return Err(input.damaged("a section's header has an impossible length"));
        }
        if self.order.u16(&version, 0) != 1 {
            return Err(input.damaged("a section's version is not 1"));
        }
        input.skip((length - FRAME - 16).into())?;
        self.read_length_behind(input, length)
    }

    fn read_body(
        &self,
        input: &mut Input<impl Read>,
        buffer: &mut Vec<u8>,
        length: u32,
    ) -> Result<(), CaptureError> {
        if length > LARGEST_BLOCK {
            return Err(input.damaged("a block is said to have more than two million bytes"));
        }
        buffer.resize((length - FRAME) as usize, 0);
        input.read_more(buffer)?;
        self.read_length_behind(input, length)
    }

    fn read_length_behind(
        &self,
        input: &mut Input<impl Read>,
        length: u32,
    ) -> Result<(), CaptureError> {
        let mut behind = [0; 4];
        input.read_more(&mut behind)?;
        if self.order.u32(&behind, 0) == length {
            Ok(())
        } else {
            Err(input.damaged("the two lengths of a block differ"))
        }
    }

    fn add_interface(&mut self, input: &Input<impl Read>, body: &[u8]) -> Result<(), CaptureError> {
        if body.len() < 8 {
            return Err(input.damaged("the description of an interface is too short"));
        }
        if self.interfaces.len() == MOST_INTERFACES {
            return Err(input.damaged("a section has more than 65536 interfaces"));
        }
        let mut interface = Interface {
            link_type: LinkType::from_number(self.order.u16(body, 0)),
            snap_length: self.order.u32(body, 4),
            resolution: 6,
            offset: 0,
        };
        for (code, value) in options(self.order, &body[8..]) {
            match (code, value) {
                (RESOLUTION, &[resolution, ..]) => interface.resolution = resolution,
                (OFFSET, &[_, _, _, _, _, _, _, _]) => interface.offset = self.order.i64(value),
                _ => {}
            }
        }
        if interface.nanoseconds(0).is_none() {
            return Err(input.damaged("an interface counts time in an impossible unit"));
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Finds the packet in the body of a block of type `kind`.
    fn locate(&self, kind: u32, body: &[u8]) -> Result<Located, &'static str> {
        let header = if kind == SIMPLE_PACKET { 4 } else { 20 };
        if body.len() < header {
            return Err("the block of a packet is too short");
        }
        let field = |at| self.order.u32(body, at);
        let interface = match kind {
            ENHANCED_PACKET => field(0),
            OLD_PACKET => self.order.u16(body, 0).into(),
            _ => 0,
        };
        let known = self
            .interfaces
            .get(interface as usize)
            .ok_or("a packet is of an interface that is not described")?;
        let original_length = if kind == SIMPLE_PACKET { field(0) } else { field(16) };
        let captured =
            if kind == SIMPLE_PACKET { known.captured_of(original_length) } else { field(12) };
        let end = header.saturating_add(captured as usize);
        if captured > LARGEST_PACKET || end > body.len() {
            return Err("a packet is longer than its block");
        }
        let ticks = (u64::from(field(4)) << 32) | u64::from(field(8));
        Ok(Located {
            interface,
            link_type: known.link_type,
            time: if kind == SIMPLE_PACKET {
                None
            } else {
                known.nanoseconds(ticks).map(Duration::from_nanos)
            },
            direction: body.get(end.next_multiple_of(4)..).and_then(|rest| self.direction(rest)),
            original_length,
            start: header,
            end,
        })
    }

    fn direction(&self, packet_options: &[u8]) -> Option<Direction> {
        let (_, flags) = options(self.order, packet_options).find(|&(code, _)| code == FLAGS)?;
        match self.order.u32(flags, 0) & 3 {
            INBOUND => Some(Direction::Received),
            OUTBOUND => Some(Direction::Sent),
            _ => None,
        }
    }
}

/// The description of an interface.
#[derive(Debug)]
struct Interface {
    link_type: LinkType,
    /// The maximum number of captured bytes of a packet; 0 means no limit.
    snap_length: u32,
    /// The unit of time stamps (`if_tsresol`): 10^−n seconds, or 2^−n seconds if the highest bit is
    /// set, with n in the lower bits.
    resolution: u8,
    /// The number of seconds to add to time stamps.
    offset: i64,
}

impl Interface {
    /// Converts a time stamp of this interface to nanoseconds since 1970. A time that exceeds 64
    /// bits becomes `u64::MAX`. Returns `None` if the interface has so small a time unit that the
    /// number of units in a second exceeds 128 bits.
    fn nanoseconds(&self, ticks: u64) -> Option<u64> {
        let power = u32::from(self.resolution & 0x7F);
        let per_second = if self.resolution & 0x80 == 0 {
            10_u128.checked_pow(power)
        } else {
            1_u128.checked_shl(power)
        };
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / per_second?;
        let offset = i128::from(self.offset) * 1_000_000_000;
        let total = i128::try_from(nanoseconds).unwrap_or(i128::MAX).saturating_add(offset);
        Some(u64::try_from(total.max(0)).unwrap_or(u64::MAX))
    }

    /// Returns how many bytes of a packet a Simple Packet Block contains. The block states only
    /// `original_length`, the length on the wire. A packet that is longer than the snap length of
    /// the interface was truncated to that length.
    fn captured_of(&self, original_length: u32) -> u32 {
        if self.snap_length == 0 { original_length } else { original_length.min(self.snap_length) }
    }
}

/// The position of a packet within the body of a block, and its metadata.
struct Located {
    interface: u32,
    link_type: LinkType,
    time: Option<Duration>,
    direction: Option<Direction>,
    original_length: u32,
    start: usize,
    end: usize,
}

impl Located {
    fn packet<'a>(&self, body: &'a [u8]) -> Packet<'a> {
        Packet {
            interface: self.interface,
            link_type: self.link_type,
            time: self.time,
            direction: self.direction,
            original_length: self.original_length,
            bytes: &body[self.start..self.end],
        }
    }
}

/// Returns the options in `bytes`, each with its code. The list ends at the first malformed option.
/// The packet remains valid, because options only add information to it.
fn options(order: ByteOrder, mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let code = order.u16(bytes, 0);
        let length = usize::from(order.u16(bytes, 2));
        let value = bytes.get(4..4 + length).filter(|_| code != END_OF_OPTIONS)?;
        bytes = bytes.get((4 + length).next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}

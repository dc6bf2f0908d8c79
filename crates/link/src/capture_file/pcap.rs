//! The older capture format, pcap (draft-ietf-opsawg-pcap): a header, followed by packets.

use super::error::CaptureError;
use super::input::{ByteOrder, Input, LARGEST_PACKET};
use super::packet::{LinkType, Packet};
use linerate_units::Duration;
use std::io::Read;

/// The header of a pcap file.
#[derive(Debug)]
pub(super) struct Pcap {
    order: ByteOrder,
    link_type: LinkType,
    /// The unit of the sub-second part of time stamps, in nanoseconds.
    unit: u64,
}

impl Pcap {
    /// Reads the header of a pcap file, except for the magic number. The caller has read the magic
    /// number, which determines `order` and `nanoseconds`, the unit of time stamps.
    pub(super) fn open(
        input: &mut Input<impl Read>,
        order: ByteOrder,
        nanoseconds: bool,
    ) -> Result<Self, CaptureError> {
        let mut header = [0; 20];
        input.read_more(&mut header)?;
        if order.u16(&header, 0) != 2 {
            return Err(input.damaged("its version is not 2"));
        }
        // The link type is in the lower 16 bits. The upper 16 bits describe the frame check
        // sequence, which this reader does not use.
        let number = order.u32(&header, 16) & 0xFFFF;
        let link_type = LinkType::from_number(u16::try_from(number).unwrap_or_default());
        Ok(Self { order, link_type, unit: if nanoseconds { 1 } else { 1_000 } })
    }

    pub(super) fn next_packet<'a>(
        &self,
        input: &mut Input<impl Read>,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Option<Packet<'a>>, CaptureError> {
        let mut header = [0; 16];
        if !input.read(&mut header)? {
            return Ok(None);
        }
        let field = |at| self.order.u32(&header, at);
        let length = field(8);
        if length > LARGEST_PACKET {
            return Err(input.damaged("a packet is said to have more than a million bytes"));
        }
        buffer.resize(length as usize, 0);
        input.read_more(buffer)?;
        let fraction = Duration::from_nanos(u64::from(field(4)) * self.unit);
        Ok(Some(Packet {
            interface: 0,
            link_type: self.link_type,
            time: Some(Duration::from_secs(field(0).into()) + fraction),
            direction: None,
            original_length: field(12),
            bytes: buffer,
        }))
    }
}

//! The header of generated frames: destination, source, EtherType, and four numbers whose meaning
//! depends on the generator.

use crate::mac::mac_address;

/// Length of the header in bytes: an Ethernet header and four numbers.
const LENGTH: usize = 14 + 16;

/// A number that no NIC has. It stands in the destination MAC address of frames that have no
/// receiver.
const UNASSIGNED: usize = 0xffff;
/// EtherType of frames that only occupy the wire: IEEE 802 local experimental EtherType 1.
const EXPERIMENT: u16 = 0x88b5;

/// The header of a generated frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Number of the receiving NIC, which the destination MAC address contains.
    pub(crate) to: usize,
    /// Number of the sender, which the source MAC address contains.
    pub(crate) from: usize,
    /// EtherType of the frame.
    pub(crate) kind: u16,
    /// Values for the receiving generator; the EtherType determines their meaning.
    pub(crate) numbers: [u32; 4],
}

impl Header {
    /// Length of the shortest Ethernet frame in bytes, without its check sequence.
    pub(crate) const SHORTEST: usize = 60;

    /// Returns the header of a frame without a receiver, which only occupies the wire.
    pub(crate) const fn without_receiver(from: usize) -> Self {
        Self { to: UNASSIGNED, from, kind: EXPERIMENT, numbers: [0; 4] }
    }

    /// Writes a frame of `length` bytes that begins with this header. A frame shorter than
    /// [`Header::SHORTEST`] is padded to that length, and a frame longer than the buffer is cut off
    /// at its end. Returns the length of the frame.
    pub(crate) fn write(&self, room: &mut [u8], length: usize) -> usize {
        let length = length.clamp(Self::SHORTEST.min(room.len()), room.len());
        let frame = &mut room[..length];
        frame.fill(0);
        frame[..6].copy_from_slice(&mac_address(self.to));
        frame[6..12].copy_from_slice(&mac_address(self.from));
        frame[12..14].copy_from_slice(&self.kind.to_be_bytes());
        for (bytes, number) in frame[14..LENGTH].chunks_exact_mut(4).zip(self.numbers) {
            bytes.copy_from_slice(&number.to_be_bytes());
        }
        length
    }

    /// Parses the header of a frame. Returns `None` if the frame is too short.
    pub(crate) fn read(frame: &[u8]) -> Option<Self> {
        let number =
            |at: usize| frame.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
        let mut numbers = [0; 4];
        for (number, place) in numbers.iter_mut().zip(frame.get(14..LENGTH)?.chunks_exact(4)) {
            *number = u32::from_be_bytes([place[0], place[1], place[2], place[3]]);
        }
        Some(Self { to: number(4)?.into(), from: number(10)?.into(), kind: number(12)?, numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_parsed_as_written_and_short_frames_are_refused() {
        let header = Header { to: 3, from: 300, kind: 0x6003, numbers: [1, 2, u32::MAX, 4] };
        let mut room = [1; 1_514];
        assert_eq!(header.write(&mut room, 10), Header::SHORTEST);
        assert_eq!(Header::read(&room[..60]), Some(header));
        assert_eq!(Header::read(&room[..29]), None);
    }
}

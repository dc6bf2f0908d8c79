//! The header in front of what speakers say: who to, who from, what kind, and four numbers of the kind's own.

use crate::station::station;

/// Bytes of it: the Ethernet header and four numbers.
const LENGTH: usize = 14 + 16;

/// A station that no world has.
const NOBODY: usize = 0xffff;
/// An EtherType for tests (IEEE 802 local experimental 1).
const EXPERIMENT: u16 = 0x88b5;

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The machine that it is for.
    pub(crate) to: usize,
    /// The machine that it is from.
    pub(crate) from: usize,
    /// The EtherType.
    pub(crate) kind: u16,
    /// What the kind says with them.
    pub(crate) numbers: [u32; 4],
}

impl Header {
    /// The shortest frame that holds one, without its check sequence.
    pub(crate) const SHORTEST: usize = 60;

    /// The header of a frame that only takes up a wire.
    pub(crate) const fn to_nobody(from: usize) -> Self {
        Self { to: NOBODY, from, kind: EXPERIMENT, numbers: [0; 4] }
    }

    /// Writes a frame of `length` bytes that begins with this header: how long it has become.
    pub(crate) fn write(&self, room: &mut [u8], length: usize) -> usize {
        let length = length.clamp(Self::SHORTEST.min(room.len()), room.len());
        let frame = &mut room[..length];
        frame.fill(0);
        frame[..6].copy_from_slice(&station(self.to));
        frame[6..12].copy_from_slice(&station(self.from));
        frame[12..14].copy_from_slice(&self.kind.to_be_bytes());
        for (place, number) in frame[14..LENGTH].chunks_exact_mut(4).zip(self.numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        length
    }

    /// The header of a frame, if it is long enough.
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
    fn what_is_written_is_read_and_what_is_short_is_not() {
        let header = Header { to: 3, from: 300, kind: 0x6003, numbers: [1, 2, u32::MAX, 4] };
        let mut room = [1; 1_514];
        assert_eq!(header.write(&mut room, 10), Header::SHORTEST);
        assert_eq!(Header::read(&room[..60]), Some(header));
        assert_eq!(Header::read(&room[..29]), None);
    }
}

//! Frames that are under way: where their bytes are, and who still needs them. Nothing is allocated for a
//! frame, but when there have never been so many at once.

use std::num::NonZeroU16;
use std::ops::{Index, IndexMut};

/// Room for a super-frame: the largest packet of IPv4 behind the header of Ethernet.
const LARGE: usize = 14 + 65_535;

/// A frame by its place in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId(u32);

/// A frame without preamble and check sequence.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    room: Box<[u8]>,
    length: usize,
    /// Bytes that leave, of a frame that is broken off.
    cut: Option<usize>,
    /// Bytes of data of each of its pieces, of a super-frame.
    segment: Option<NonZeroU16>,
    /// Who needs it; nobody if it is free.
    holders: u32,
}

impl Frame {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[..self.length]
    }

    /// Its bytes, to be changed on their way.
    pub(crate) fn written(&mut self) -> &mut [u8] {
        &mut self.room[..self.length]
    }

    /// Room to write a frame.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }

    /// So many bytes have been written.
    pub(crate) fn set_length(&mut self, length: usize) {
        assert!(length <= self.room.len(), "a frame of {length} bytes is larger than its room");
        self.length = length;
    }

    /// Of how many bytes of data the pieces are, of a super-frame.
    pub(crate) const fn segment(&self) -> Option<NonZeroU16> {
        self.segment
    }

    /// Says that, or that it is none.
    pub(crate) const fn set_segment(&mut self, segment: Option<NonZeroU16>) {
        self.segment = segment;
    }

    /// So many of its bytes leave, and a wrong check sequence; all of them, and the right one, if that is none.
    pub(crate) const fn cut_to(&mut self, cut: Option<usize>) {
        self.cut = cut;
    }

    /// Is it broken off?
    pub(crate) const fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// The bytes that leave.
    pub(crate) fn sent(&self) -> &[u8] {
        &self.bytes()[..self.cut.unwrap_or(self.length).min(self.length)]
    }

    /// How many bytes it has.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// The station that it is for: the first six bytes.
    pub(crate) fn destination(&self) -> [u8; 6] {
        self.bytes().first_chunk().copied().unwrap_or_default()
    }
}

/// All frames of a world.
#[derive(Debug)]
pub(crate) struct Frames {
    frames: Vec<Frame>,
    /// Free ones, the small and the large.
    free: [Vec<FrameId>; 2],
    room: usize,
}

impl Frames {
    /// No frames; each will have room for `room` bytes.
    pub(crate) const fn new(room: usize) -> Self {
        Self { frames: Vec::new(), free: [Vec::new(), Vec::new()], room }
    }

    /// A frame with arbitrary bytes and one holder.
    pub(crate) fn take(&mut self) -> FrameId {
        self.take_with(self.room)
    }

    /// The same with room for a super-frame.
    pub(crate) fn take_large(&mut self) -> FrameId {
        self.take_with(self.room.max(LARGE))
    }

    fn take_with(&mut self, room: usize) -> FrameId {
        let id = self.free[usize::from(room > self.room)].pop().unwrap_or_else(|| {
            let id = FrameId(u32::try_from(self.frames.len()).unwrap_or(u32::MAX));
            let room = vec![0; room].into_boxed_slice();
            self.frames.push(Frame { room, length: 0, cut: None, segment: None, holders: 0 });
            id
        });
        let frame = &mut self[id];
        assert_eq!(frame.holders, 0, "a frame that somebody needs is not free");
        (frame.holders, frame.length, frame.cut, frame.segment) = (1, 0, None, None);
        id
    }

    /// A frame with the same bytes and one holder.
    pub(crate) fn copy(&mut self, id: FrameId) -> FrameId {
        let bytes = self[id].bytes().to_vec();
        let copy = self.take();
        self[copy].room()[..bytes.len()].copy_from_slice(&bytes);
        self[copy].set_length(bytes.len());
        copy
    }

    /// One more needs it.
    pub(crate) fn share(&mut self, id: FrameId) {
        self[id].holders += 1;
    }

    /// One of those who needed it does not any more.
    pub(crate) fn release(&mut self, id: FrameId) {
        let frame = &mut self.frames[id.0 as usize];
        frame.holders -= 1;
        if frame.holders == 0 {
            let is_large = frame.room.len() > self.room;
            self.free[usize::from(is_large)].push(id);
        }
    }

    /// Frames that somebody needs.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.frames.len() - self.free.iter().map(Vec::len).sum::<usize>()
    }
}

impl Index<FrameId> for Frames {
    type Output = Frame;
    fn index(&self, id: FrameId) -> &Frame {
        &self.frames[id.0 as usize]
    }
}

impl IndexMut<FrameId> for Frames {
    fn index_mut(&mut self, id: FrameId) -> &mut Frame {
        &mut self.frames[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_free_when_the_last_of_its_holders_lets_go() {
        let mut frames = Frames::new(64);
        let id = frames.take();
        frames.share(id);
        frames.release(id);
        assert_eq!(frames.held(), 1);
        frames.release(id);
        assert_eq!((frames.held(), frames.take()), (0, id));
    }

    #[test]
    fn a_frame_that_is_used_again_is_a_new_one_and_large_ones_are_kept_apart() {
        let mut frames = Frames::new(64);
        let (small, large) = (frames.take(), frames.take_large());
        for id in [small, large] {
            frames[id].set_length(60);
            frames[id].cut_to(Some(20));
            frames[id].set_segment(NonZeroU16::new(10));
            assert_eq!((frames[id].sent().len(), frames[id].length()), (20, 60));
            frames.release(id);
        }
        assert_eq!((frames.take_large(), frames.take()), (large, small));
        for id in [small, large] {
            assert_eq!(
                (frames[id].length(), frames[id].is_cut(), frames[id].segment()),
                (0, false, None)
            );
        }
    }
}

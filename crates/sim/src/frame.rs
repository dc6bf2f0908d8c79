//! Frames that exist in a simulation, in a reference-counted pool. The pool allocates memory only
//! when more frames exist at one time than ever before.

use std::num::NonZeroU16;
use std::ops::{Index, IndexMut};

/// Size of a buffer for a GSO frame in bytes: an Ethernet header and the largest IP packet.
const LARGE: usize = 14 + 65_535;

/// Index of a frame in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId(u32);

/// A frame in the pool, without preamble and check sequence.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    room: Box<[u8]>,
    length: usize,
    /// Number of bytes that reach the wire, if a FIFO underrun truncates the frame; `None` if the
    /// whole frame is sent.
    cut: Option<usize>,
    /// Payload size of each segment in bytes, if this is a GSO or GRO frame; `None` for any other
    /// frame.
    segment: Option<NonZeroU16>,
    /// Reference count; zero if the frame is free.
    references: u32,
}

impl Frame {
    /// Returns the bytes of the frame.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[..self.length]
    }

    /// Returns the bytes of the frame for modification, for example to decrement the TTL.
    pub(crate) fn written(&mut self) -> &mut [u8] {
        &mut self.room[..self.length]
    }

    /// Returns the whole buffer of the frame, to write its bytes.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }

    /// Sets the length of the frame in bytes.
    pub(crate) fn set_length(&mut self, length: usize) {
        assert!(length <= self.room.len(), "a frame of {length} bytes is larger than its room");
        self.length = length;
    }

    /// Returns the payload size of each segment in bytes, if this is a GSO or GRO frame.
    pub(crate) const fn segment(&self) -> Option<NonZeroU16> {
        self.segment
    }

    /// Sets the payload size in bytes of each segment of a GSO or GRO frame; `None` for any other
    /// frame.
    pub(crate) const fn set_segment(&mut self, segment: Option<NonZeroU16>) {
        self.segment = segment;
    }

    /// Truncates the frame to `cut` bytes: only these are sent, with a wrong check sequence. `None`
    /// cancels the truncation.
    pub(crate) const fn truncate(&mut self, cut: Option<usize>) {
        self.cut = cut;
    }

    /// Returns whether the frame is truncated.
    pub(crate) const fn is_truncated(&self) -> bool {
        self.cut.is_some()
    }

    /// Returns the bytes that are sent on the wire: all of them, unless the frame is truncated.
    pub(crate) fn sent(&self) -> &[u8] {
        &self.bytes()[..self.cut.unwrap_or(self.length).min(self.length)]
    }

    /// Returns the length of the frame in bytes, whether or not it is truncated.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Returns the destination MAC address: the first six bytes.
    pub(crate) fn destination(&self) -> [u8; 6] {
        self.bytes().first_chunk().copied().unwrap_or_default()
    }
}

/// The pool of all frames in a simulation.
#[derive(Debug)]
pub(crate) struct Frames {
    frames: Vec<Frame>,
    /// Free frames, for reuse. The first list has the frames with small buffers, the second those
    /// whose buffers have room for a GSO frame.
    free: [Vec<FrameId>; 2],
    room: usize,
}

impl Frames {
    /// Creates an empty pool. Frames have buffers of `room` bytes, except those for GSO frames,
    /// which have larger ones.
    pub(crate) const fn new(room: usize) -> Self {
        Self { frames: Vec::new(), free: [Vec::new(), Vec::new()], room }
    }

    /// Takes a frame from the pool, with one reference. Its buffer still contains the bytes of the
    /// previous use.
    pub(crate) fn take(&mut self) -> FrameId {
        self.take_with(self.room)
    }

    /// Takes a frame from the pool whose buffer has room for a GSO frame.
    pub(crate) fn take_large(&mut self) -> FrameId {
        self.take_with(self.room.max(LARGE))
    }

    fn take_with(&mut self, room: usize) -> FrameId {
        let id = self.free[usize::from(room > self.room)].pop().unwrap_or_else(|| {
            let id = FrameId(u32::try_from(self.frames.len()).unwrap_or(u32::MAX));
            let room = vec![0; room].into_boxed_slice();
            self.frames.push(Frame { room, length: 0, cut: None, segment: None, references: 0 });
            id
        });
        let frame = &mut self[id];
        assert_eq!(frame.references, 0, "a free frame has no references");
        (frame.references, frame.length, frame.cut, frame.segment) = (1, 0, None, None);
        id
    }

    /// Takes a frame from the pool and copies the bytes of frame `id` into it.
    pub(crate) fn copy(&mut self, id: FrameId) -> FrameId {
        let bytes = self[id].bytes().to_vec();
        let copy = self.take();
        self[copy].room()[..bytes.len()].copy_from_slice(&bytes);
        self[copy].set_length(bytes.len());
        copy
    }

    /// Adds a reference to a frame.
    pub(crate) fn share(&mut self, id: FrameId) {
        self[id].references += 1;
    }

    /// Drops a reference to a frame. If it was the only one left, the frame returns to the pool.
    pub(crate) fn release(&mut self, id: FrameId) {
        let frame = &mut self.frames[id.0 as usize];
        frame.references -= 1;
        if frame.references == 0 {
            let is_large = frame.room.len() > self.room;
            self.free[usize::from(is_large)].push(id);
        }
    }

    /// Returns the number of frames that are in use.
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
    fn releasing_the_last_reference_frees_a_frame() {
        let mut frames = Frames::new(64);
        let id = frames.take();
        frames.share(id);
        frames.release(id);
        assert_eq!(frames.held(), 1);
        frames.release(id);
        assert_eq!((frames.held(), frames.take()), (0, id));
    }

    #[test]
    fn a_reused_frame_is_reset_and_large_frames_have_their_own_free_list() {
        let mut frames = Frames::new(64);
        let (small, large) = (frames.take(), frames.take_large());
        for id in [small, large] {
            frames[id].set_length(60);
            frames[id].truncate(Some(20));
            frames[id].set_segment(NonZeroU16::new(10));
            assert_eq!((frames[id].sent().len(), frames[id].length()), (20, 60));
            frames.release(id);
        }
        assert_eq!((frames.take_large(), frames.take()), (large, small));
        for id in [small, large] {
            assert_eq!(
                (frames[id].length(), frames[id].is_truncated(), frames[id].segment()),
                (0, false, None)
            );
        }
    }
}

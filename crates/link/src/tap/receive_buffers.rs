//! The receive buffers of a TAP or TUN device.

use crate::shared_buffers::SharedBuffers;
use crate::virtio::{self, FRAME_OFFSET, HEADER_OFFSET, LARGEST_FRAME};
use linerate_stack::{FrameSink, PlainFrame, RxFrame};
use linerate_units::Instant;

/// The number of frames that are read from a device before they are passed to the host, if the
/// device has no offloads. The first-level cache has room for this number of frames.
pub(super) const AT_ONCE: usize = 8;
/// The distance between the starts of two buffers, in bytes: room for the largest frame, rounded up
/// to whole pages, plus three eighths of a page. The low twelve bits of an address select the cache
/// set. If the distance were whole pages, the starts of all frames would compete for the same sets.
const STRIDE: usize = (FRAME_OFFSET + LARGEST_FRAME).next_multiple_of(4_096) + 1_536;

/// The buffers into which frames are read.
#[derive(Debug)]
pub(super) enum ReceiveBuffers {
    /// The buffers for a device without offloads, one for each frame of a batch. The host cannot
    /// keep these buffers, so they have no reference counts. Receiving a frame thus takes 1 % less
    /// time than with shared buffers.
    Plain(Box<[u8]>),
    /// The buffer for a device with offloads. It holds a single frame behind its virtio-net header.
    /// The host can keep the buffer.
    Shared(SharedBuffers),
}

impl ReceiveBuffers {
    pub(super) fn new(offloads: bool) -> Self {
        if offloads {
            Self::Shared(SharedBuffers::new(FRAME_OFFSET + LARGEST_FRAME, 1))
        } else {
            Self::Plain(vec![0; STRIDE * AT_ONCE].into())
        }
    }

    /// Returns the maximum number of frames in a batch. These frames must be passed to the host
    /// before more are read.
    pub(super) const fn at_once(&self) -> usize {
        match self {
            Self::Plain(_) => AT_ONCE,
            Self::Shared(_) => 1,
        }
    }

    /// Returns the buffer for frame number `place` of the current batch.
    pub(super) fn place(&mut self, place: usize) -> &mut [u8] {
        match self {
            Self::Plain(memory) => {
                &mut memory[place * STRIDE..][FRAME_OFFSET..FRAME_OFFSET + LARGEST_FRAME]
            }
            Self::Shared(buffers) => &mut buffers.next_one()[HEADER_OFFSET..],
        }
    }

    /// Passes the frames of a batch to `sink`. For each buffer, `lengths` contains the number of
    /// bytes that the kernel has written to it. Returns the number of frames that were dropped
    /// because of an invalid virtio-net header.
    pub(super) fn hand_over(
        &self,
        lengths: &[usize],
        arrived: Instant,
        sink: &mut impl FrameSink,
    ) -> u64 {
        match self {
            Self::Plain(memory) => {
                let places = memory.chunks_exact(STRIDE).zip(lengths);
                let bytes = places.map(|(place, &length)| {
                    &place[FRAME_OFFSET..FRAME_OFFSET + length.min(LARGEST_FRAME)]
                });
                sink.take_plain(bytes.map(|bytes| PlainFrame { bytes, arrived }));
                0
            }
            Self::Shared(buffers) => {
                let memory = buffers.memory(0);
                let mut malformed = 0;
                for &length in lengths {
                    match virtio::arrived(memory, length) {
                        Some(frame) => {
                            sink.take(RxFrame { arrived, memory: Some(memory), ..frame });
                        }
                        None => malformed += 1,
                    }
                }
                malformed
            }
        }
    }
}

//! The receive buffers of a TAP or TUN device.

use crate::shared_buffers::SharedBuffers;
use crate::virtio::{self, FRAME_OFFSET, HEADER_OFFSET, LARGEST_FRAME};
use linerate_stack::{FrameSink, PlainFrame, RxFrame};
use linerate_units::Instant;

/// The number of frames that are read from a device without offloads before they are passed to the
/// host. This many frames fit the first-level cache.
pub(super) const AT_ONCE: usize = 8;
/// The distance between two buffers in bytes: room for the largest frame, and a fraction of a page.
/// With whole pages, the starts of all frames would share the same cache sets, which the low twelve
/// bits of an address select.
const STRIDE: usize = (FRAME_OFFSET + LARGEST_FRAME).next_multiple_of(4_096) + 1_536;

/// The buffers into which frames are read.
#[derive(Debug)]
pub(super) enum ReceiveBuffers {
    /// For a device without offloads: one buffer for each frame of a batch. The host cannot keep
    /// these buffers, so they need no reference counts, and receiving a frame takes 1 % less time.
    Plain(Box<[u8]>),
    /// For a device with offloads: a single buffer, which the host can keep. It begins with the
    /// virtio-net header.
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

    /// Returns the number of frames that can be read before they must be passed to the host.
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

    /// Passes the frames of a batch to `sink`. `lengths` are the numbers of bytes that the kernel
    /// has written to each buffer. Returns the number of frames with invalid headers.
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

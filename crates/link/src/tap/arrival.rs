//! The memory that frames are read into from a device, and how they are handed to a host.

use crate::arrivals::Arrivals;
use crate::virtio::{self, FRAME, HEADER, LARGEST_FRAME};
use linerate_stack::{FrameSink, PlainFrame, RxFrame};
use linerate_units::Instant;

/// Frames of a device without offloads that are read one after the other before a host has them all, in one loop. So many
/// fit the processor's nearest cache.
pub(super) const AT_ONCE: usize = 8;
/// From one place for a frame to the next: the largest one's room, and so much more that frames of the usual length do
/// not want the same lines of a cache, which are told by the lower twelve bits of an address.
const STRIDE: usize = (FRAME + LARGEST_FRAME).next_multiple_of(4_096) + 1_536;

/// Memory for the frames that are read at once.
#[derive(Debug)]
pub(super) enum Arrival {
    /// Of a device without offloads, each from [`FRAME`] on in a place of its own. Nobody keeps such a frame, so nobody is
    /// asked whether he does: over memory that was just written that is an eightieth of a frame's time.
    Plain(Box<[u8]>),
    /// One behind its header, beside those that a host has kept.
    Kept(Arrivals),
}

impl Arrival {
    pub(super) fn new(offloads: bool) -> Self {
        if offloads {
            Self::Kept(Arrivals::new(FRAME + LARGEST_FRAME, 1))
        } else {
            Self::Plain(vec![0; STRIDE * AT_ONCE].into())
        }
    }

    /// How many frames there are places for.
    pub(super) const fn at_once(&self) -> usize {
        match self {
            Self::Plain(_) => AT_ONCE,
            Self::Kept(_) => 1,
        }
    }

    /// Where the kernel is to write the frame that is the `place`-th of the next ones.
    pub(super) fn place(&mut self, place: usize) -> &mut [u8] {
        match self {
            Self::Plain(memory) => &mut memory[place * STRIDE..][FRAME..FRAME + LARGEST_FRAME],
            Self::Kept(arrivals) => &mut arrivals.next_one()[HEADER..],
        }
    }

    /// Hands over what the kernel has written to the first places, so many bytes to each: how many frames cannot be what
    /// their headers say.
    pub(super) fn hand_over(
        &self,
        lengths: &[usize],
        arrived: Instant,
        sink: &mut impl FrameSink,
    ) -> u64 {
        match self {
            Self::Plain(memory) => {
                let places = memory.chunks_exact(STRIDE).zip(lengths);
                let bytes =
                    places.map(|(place, &length)| &place[FRAME..FRAME + length.min(LARGEST_FRAME)]);
                sink.take_plain(bytes.map(|bytes| PlainFrame { bytes, arrived }));
                0
            }
            Self::Kept(arrivals) => {
                let memory = arrivals.memory(0);
                let mut malformed = 0;
                for &length in lengths {
                    match virtio::arrived(memory, length) {
                        Some(frame) => {
                            sink.take(RxFrame { arrived, memory: Some(memory), ..frame })
                        }
                        None => malformed += 1,
                    }
                }
                malformed
            }
        }
    }
}

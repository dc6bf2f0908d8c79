//! A link that holds sent frames until a test fetches them, and delivers frames that a test queues.

use linerate_stack::{
    Capabilities, FrameSink, FrameSlots, FrameSource, Link, LinkError, PlainFrame, RxChecksum,
    RxFrame, TxFrame,
};
use linerate_units::Instant;
use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::Arc;

/// A frame for the host, with the metadata that the link reports for it.
#[derive(Debug)]
struct Arrived {
    at: Instant,
    bytes: Vec<u8>,
    checksum: RxChecksum,
    segment: Option<NonZeroU16>,
}

/// Minimum length in bytes of a frame that the link delivers in memory that the host may keep. A
/// host copies the data of shorter frames in any case.
const WORTH_KEEPING: usize = 4 << 10;

impl Arrived {
    /// Returns whether the frame has no metadata, and is too short to be delivered in memory that
    /// the host may keep.
    const fn is_plain(&self) -> bool {
        matches!(self.checksum, RxChecksum::Unverified)
            && self.segment.is_none()
            && self.bytes.len() < WORTH_KEEPING
    }

    /// Delivers the frame in memory that the host may keep.
    fn hand_over(&self, sink: &mut impl FrameSink) {
        let &Self { at, ref bytes, checksum, segment } = self;
        let memory = Arc::from(&bytes[..]);
        sink.take(RxFrame {
            checksum,
            segment,
            memory: Some(&memory),
            ..RxFrame::plain(&memory, at)
        });
    }
}

/// A link with a bounded send queue. Received frames that are short and have no offload metadata
/// are delivered as a contiguous batch. All other frames are delivered one by one, in memory that
/// the host may keep.
#[derive(Debug)]
pub struct TestLink {
    capabilities: Capabilities,
    /// Maximum number of frames that wait until a test fetches them.
    capacity: usize,
    arrived: VecDeque<Arrived>,
    sent: VecDeque<Vec<u8>>,
    /// Whether the link is down, so that sending and receiving fail.
    pub down: bool,
}

impl TestLink {
    /// Creates a link that accepts `capacity` frames before a test must fetch them.
    #[must_use]
    pub const fn new(capabilities: Capabilities, capacity: usize) -> Self {
        Self {
            capabilities,
            capacity,
            arrived: VecDeque::new(),
            sent: VecDeque::new(),
            down: false,
        }
    }

    /// Queues a frame for the host, with the time of arrival `at`.
    pub fn put(&mut self, at: Instant, frame: Vec<u8>) {
        self.put_as(at, frame, RxChecksum::Unverified, None);
    }

    /// Queues a frame for the host, with the time of arrival `at` and this metadata.
    pub fn put_as(
        &mut self,
        at: Instant,
        bytes: Vec<u8>,
        checksum: RxChecksum,
        segment: Option<NonZeroU16>,
    ) {
        self.arrived.push_back(Arrived { at, bytes, checksum, segment });
    }

    /// Removes and returns the oldest frame that the host has sent; `None` if there is none.
    pub fn fetch(&mut self) -> Option<Vec<u8>> {
        self.sent.pop_front()
    }

    /// Returns whether a frame waits to be received by the host.
    #[must_use]
    pub fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }
}

impl Link for TestLink {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        self.receive_into(budget, &mut on_frame)
    }

    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        if self.down {
            return Err(LinkError::Down);
        }
        let count = self.arrived.len().min(budget);
        let frames: Vec<Arrived> = self.arrived.drain(..count).collect();
        for run in frames.chunk_by(|one, next| one.is_plain() && next.is_plain()) {
            if run[0].is_plain() {
                sink.take_plain(
                    run.iter().map(|frame| PlainFrame { bytes: &frame.bytes, arrived: frame.at }),
                );
            } else {
                run[0].hand_over(sink);
            }
        }
        Ok(count)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        self.transmit_into(budget, |slots| while slots.offer(&mut fill) {})
    }

    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.transmit_into(budget, |slots| source.fill_all(slots))
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

impl TestLink {
    /// Lets the host fill up to `budget` empty frames. Returns the number of frames that it has
    /// filled.
    fn transmit_into(
        &mut self,
        budget: usize,
        fill: impl FnOnce(&mut EmptyFrames<'_>),
    ) -> Result<usize, LinkError> {
        if self.down {
            return Err(LinkError::Down);
        }
        let room = budget.min(self.capacity - self.sent.len());
        let mut slots = EmptyFrames { link: self, left: room };
        fill(&mut slots);
        Ok(room - slots.left)
    }
}

/// Empty frames for a host to fill one after the other.
struct EmptyFrames<'a> {
    link: &'a mut TestLink,
    left: usize,
}

impl FrameSlots for EmptyFrames<'_> {
    fn offer(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<TxFrame>) -> bool {
        if self.left == 0 {
            return false;
        }
        // A link may offer a frame with any contents for the host to fill. Here it contains 0xa5,
        // so that a host that relies on zeros fails the tests.
        let mut frame = vec![0xa5; self.link.capabilities.frame_length()];
        let Some(TxFrame { length, .. }) = fill(&mut frame) else { return false };
        frame.truncate(length);
        self.link.sent.push_back(frame);
        self.left -= 1;
        true
    }
}

//! A link that holds sent frames until a test fetches them, and delivers frames that a test queues.

use linerate_stack::{
    Capabilities, FrameSink, FrameSlots, FrameSource, Link, LinkError, PlainFrame, RxChecksum,
    RxFrame, TxFrame,
};
use linerate_units::Instant;
use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::Arc;

/// A frame that a test has queued for the host, and the metadata that the link reports with it.
#[derive(Debug)]
struct Arrived {
    at: Instant,
    bytes: Vec<u8>,
    checksum: RxChecksum,
    segment: Option<NonZeroU16>,
}

/// Minimum length in bytes of the frames that the link delivers in reference-counted memory, which
/// the host may keep. A host copies the data of shorter frames in any case.
const WORTH_KEEPING: usize = 4 << 10;

impl Arrived {
    /// Returns whether the link delivers the frame in a batch, without metadata and in memory that
    /// the host may not keep. This is so if the frame has no metadata and is shorter than
    /// `WORTH_KEEPING`.
    const fn is_plain(&self) -> bool {
        matches!(self.checksum, RxChecksum::Unverified)
            && self.segment.is_none()
            && self.bytes.len() < WORTH_KEEPING
    }

    /// Delivers the frame with its metadata, in reference-counted memory that the host may keep.
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

/// A link for tests, whose send queue is bounded. Received frames that are short and have no
/// metadata are delivered in batches of consecutive frames. All other frames are delivered one by
/// one, in memory that the host may keep.
#[derive(Debug)]
pub struct TestLink {
    capabilities: Capabilities,
    /// Maximum number of sent frames that the link stores until a test fetches them.
    capacity: usize,
    arrived: VecDeque<Arrived>,
    sent: VecDeque<Vec<u8>>,
    /// Whether the link is down. While it is down, sending and receiving return an error.
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

    /// Queues a frame for the host, with the time of arrival `at`, and with the checksum state and
    /// the segment size that the link reports.
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
    /// Lets `fill` write frames of the host: at most `budget`, and at most as many as the send
    /// queue has room for. Returns the number of frames written.
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

/// Places for frames in the link's send queue, which the host fills one after the other. `left` is
/// the number of places that are still empty.
struct EmptyFrames<'a> {
    link: &'a mut TestLink,
    left: usize,
}

impl FrameSlots for EmptyFrames<'_> {
    fn offer(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<TxFrame>) -> bool {
        if self.left == 0 {
            return false;
        }
        // The memory that a link offers to the host may have any contents. Here it contains 0xa5,
        // so that tests fail if a host relies on zeros.
        let mut frame = vec![0xa5; self.link.capabilities.frame_length()];
        let Some(TxFrame { length, .. }) = fill(&mut frame) else { return false };
        frame.truncate(length);
        self.link.sent.push_back(frame);
        self.left -= 1;
        true
    }
}

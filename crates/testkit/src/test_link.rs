//! A link that keeps frames until a test fetches them, and hands over those that a test puts in.

use linerate_stack::{
    Capabilities, FrameSink, FrameSlots, FrameSource, Link, LinkError, PlainFrame, RxChecksum,
    RxFrame, TxFrame,
};
use linerate_units::Instant;
use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::Arc;

/// A frame that arrives, and what the link says of it.
#[derive(Debug)]
struct Arrived {
    at: Instant,
    bytes: Vec<u8>,
    checksum: RxChecksum,
    segment: Option<NonZeroU16>,
}

/// What a host does not keep anyway, this link does not let go of.
const WORTH_KEEPING: usize = 4 << 10;

impl Arrived {
    /// Is nothing known of it, as of what the other end has written to memory that both share?
    const fn is_plain(&self) -> bool {
        matches!(self.checksum, RxChecksum::Unverified)
            && self.segment.is_none()
            && self.bytes.len() < WORTH_KEEPING
    }

    /// Hands it over, and the memory that it lies in.
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

/// A bounded queue each way. Frames of which nothing is known are lent together, one behind the other; large ones, and
/// those of which the link knows more, one by one, and it does not mind if the host keeps them.
#[derive(Debug)]
pub struct TestLink {
    capabilities: Capabilities,
    /// Frames that the link takes before somebody fetches them.
    capacity: usize,
    arrived: VecDeque<Arrived>,
    sent: VecDeque<Vec<u8>>,
    /// Is the link down?
    pub down: bool,
}

impl TestLink {
    /// A link with room for `capacity` frames to be sent.
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

    /// Has a frame arrive.
    pub fn put(&mut self, at: Instant, frame: Vec<u8>) {
        self.put_as(at, frame, RxChecksum::Unverified, None);
    }

    /// Has a frame arrive, of which the link says so much.
    pub fn put_as(
        &mut self,
        at: Instant,
        bytes: Vec<u8>,
        checksum: RxChecksum,
        segment: Option<NonZeroU16>,
    ) {
        self.arrived.push_back(Arrived { at, bytes, checksum, segment });
    }

    /// Fetches the next frame that the host has sent.
    pub fn fetch(&mut self) -> Option<Vec<u8>> {
        self.sent.pop_front()
    }

    /// Does a frame wait for the host?
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
    /// How many of `budget` empty frames has `fill` filled?
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

/// Empty frames that a host fills, one after the other.
struct EmptyFrames<'a> {
    link: &'a mut TestLink,
    left: usize,
}

impl FrameSlots for EmptyFrames<'_> {
    fn offer(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<TxFrame>) -> bool {
        if self.left == 0 {
            return false;
        }
        // The bytes of an offered frame are arbitrary, so a host must not count on zeros.
        let mut frame = vec![0xa5; self.link.capabilities.frame_length()];
        let Some(TxFrame { length, .. }) = fill(&mut frame) else { return false };
        frame.truncate(length);
        self.link.sent.push_back(frame);
        self.left -= 1;
        true
    }
}

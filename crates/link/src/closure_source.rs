//! A frame source that calls a closure. With it, a link can implement `Link::transmit`, which takes
//! a closure, by calling its `Link::transmit_from`, which takes a source.

use linerate_stack::{FrameSource, TxFrame, ZeroCopyFrame};
use linerate_units::Instant;

/// A frame source that calls a closure for each frame. It always reports that it has frames.
pub(crate) struct ClosureSource<F> {
    pub(crate) now: Instant,
    pub(crate) fill: F,
}

impl<F: FnMut(&mut [u8]) -> Option<TxFrame>> FrameSource for ClosureSource<F> {
    fn now(&self) -> Instant {
        self.now
    }

    fn fill(&mut self, frame: &mut [u8]) -> Option<TxFrame> {
        (self.fill)(frame)
    }

    fn fill_zero_copy(&mut self, frame: &mut [u8]) -> Option<ZeroCopyFrame<'_>> {
        Some(ZeroCopyFrame { frame: (self.fill)(frame)?, rest: [&[]; 2] })
    }
}

//! A closure that writes frames, for links that want a host.

use linerate_stack::{FrameSource, LentFrame, TxFrame};
use linerate_units::Instant;

/// Who writes frames without being asked whether there are any.
pub(crate) struct Filler<F> {
    pub(crate) now: Instant,
    pub(crate) fill: F,
}

impl<F: FnMut(&mut [u8]) -> Option<TxFrame>> FrameSource for Filler<F> {
    fn now(&self) -> Instant {
        self.now
    }

    fn fill(&mut self, frame: &mut [u8]) -> Option<TxFrame> {
        (self.fill)(frame)
    }

    fn lend(&mut self, frame: &mut [u8]) -> Option<LentFrame<'_>> {
        Some(LentFrame { frame: (self.fill)(frame)?, rest: [&[]; 2] })
    }
}

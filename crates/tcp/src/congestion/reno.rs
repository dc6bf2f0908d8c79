//! Reno (RFC 5681 §3.2): halves the window after a loss. Then each duplicate ACK inflates the
//! window by one segment, until new data is acknowledged.

use super::{Controller, FastRecovery, Window};
use crate::compact::pack::packed;
use alloc::boxed::Box;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reno(Window);

packed!(Reno(0));

impl Reno {
    pub(super) const fn new(window: Window) -> Self {
        Self(window)
    }
}

impl Controller for Reno {
    fn window(&self) -> &Window {
        &self.0
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.0
    }

    fn fast_recovery(&self) -> FastRecovery {
        FastRecovery::UntilNewAck
    }

    fn on_loss(&mut self, flight: u32) {
        self.0.halve_threshold(flight);
    }

    fn boxed_clone(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

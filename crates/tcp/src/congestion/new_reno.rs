//! NewReno (RFC 6582): halves the window after a loss, like Reno. Recovery lasts until all data
//! that was in flight at the loss is acknowledged. Without SACK, it repairs one lost segment per
//! round trip.

use super::{Controller, FastRecovery, Window};
use crate::compact::pack::packed;
use alloc::boxed::Box;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewReno(Window);

packed!(NewReno(0));

impl NewReno {
    pub(super) const fn new(window: Window) -> Self {
        Self(window)
    }
}

impl Controller for NewReno {
    fn window(&self) -> &Window {
        &self.0
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.0
    }

    fn fast_recovery(&self) -> FastRecovery {
        FastRecovery::UntilRecovered
    }

    fn on_loss(&mut self, flight: u32) {
        self.0.halve_threshold(flight);
    }

    fn boxed_clone(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

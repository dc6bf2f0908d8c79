//! Tahoe: after every loss, slow start begins at one segment, however the loss was detected
//! (Jacobson 1988, appendix B of "Congestion Avoidance and Control").

use super::{Controller, FastRecovery, Window};
use crate::compact::pack::packed;
use alloc::boxed::Box;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tahoe(Window);

packed!(Tahoe(0));

impl Tahoe {
    pub(super) const fn new(window: Window) -> Self {
        Self(window)
    }
}

impl Controller for Tahoe {
    fn window(&self) -> &Window {
        &self.0
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.0
    }

    fn fast_recovery(&self) -> FastRecovery {
        FastRecovery::None
    }

    fn on_loss(&mut self, flight: u32) {
        self.on_timeout(flight);
    }

    fn boxed_clone(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

//! A constant congestion window for experiments. It shows how a path behaves with a given number of
//! segments in flight. It does not respond to congestion, so it must not be used on shared
//! networks.

use super::{Controller, FastRecovery, Window};
use crate::compact::pack::packed;
use alloc::boxed::Box;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fixed(Window);

packed!(Fixed(0));

impl Fixed {
    /// Creates a constant window of `segments` segments. If the MSS changes, so does the size of
    /// the window in bytes.
    pub(super) fn new(mut window: Window, segments: u32) -> Self {
        window.set(window.mss().saturating_mul(segments));
        Self(window)
    }
}

impl Controller for Fixed {
    fn window(&self) -> &Window {
        &self.0
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.0
    }

    fn fast_recovery(&self) -> FastRecovery {
        FastRecovery::UntilRecovered
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    fn on_progress(&mut self, _ack: &super::Acknowledged, _limited: bool) {}

    fn restart(&mut self) {}

    fn forget_after_idle(&mut self) {}

    fn on_loss(&mut self, _flight: u32) {}

    fn on_mark(&mut self, _flight: u32) {}

    fn on_timeout(&mut self, _flight: u32) {}

    fn boxed_clone(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

//! A request to stop, which long operations check regularly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that asks operations to stop. All clones share it; operations of more than 0.1 s check
/// it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Creates an interrupt from an existing flag, such as one that a signal handler sets.
    #[must_use]
    pub const fn from_flag(raised: Arc<AtomicBool>) -> Self {
        Self(raised)
    }

    /// Asks all operations to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Have operations been asked to stop?
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

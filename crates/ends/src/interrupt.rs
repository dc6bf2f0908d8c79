//! A request to stop, polled by all long operations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag shared by all clones. Operations that can take more than a tenth of a second poll it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Creates a handle of an existing flag, such as one that a signal handler sets.
    #[must_use]
    pub const fn from_flag(raised: Arc<AtomicBool>) -> Self {
        Self(raised)
    }

    /// Requests all operations to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Has a stop been requested?
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

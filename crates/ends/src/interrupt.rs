//! The wish to stop, seen by everything that takes long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that somebody else raises, shared by all clones. Whoever may take longer than a tenth of
/// a second asks it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that `raised` shares, such as one that a signal handler sets.
    #[must_use]
    pub const fn from_flag(raised: Arc<AtomicBool>) -> Self {
        Self(raised)
    }

    /// Asks everybody to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Has somebody asked to stop?
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

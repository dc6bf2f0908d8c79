//! A flag that stops long operations, such as a sweep or a service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that stops operations. All clones are the same flag. An operation that can take longer
/// than 0.1 s checks the flag regularly.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Creates an interrupt from an existing flag, such as one that a signal handler sets.
    #[must_use]
    pub const fn from_flag(raised: Arc<AtomicBool>) -> Self {
        Self(raised)
    }

    /// Sets the flag, so that all operations that check it stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Is the flag set, so that operations must stop?
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

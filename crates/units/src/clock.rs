//! The interface through which software reads the present time.

use crate::Instant;

/// A source of the present time. Only the outermost code reads a clock: a reactor, or a simulated
/// machine. All other code takes `now: Instant` as an argument, so that tests can run in virtual
/// time.
pub trait Clock {
    /// Returns the present time. It never goes backwards.
    fn now(&self) -> Instant;
}

//! The interface through which software reads the present time.

use crate::Instant;

/// A source of the present time. Only the edge of the program (a reactor, a simulated machine)
/// reads a clock; everything inside takes `now: Instant` as an argument, so that tests can run in
/// virtual time.
pub trait Clock {
    /// Returns the present time. It never goes backwards.
    fn now(&self) -> Instant;
}

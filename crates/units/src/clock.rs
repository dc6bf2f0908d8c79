//! Where "now" comes from: the one thing about time that software has to ask somebody else.

use crate::Instant;

/// A source of the present time. Only the edge of the program (a reactor, a simulated machine)
/// holds one; everything inside takes `now: Instant` as an argument.
pub trait Clock {
    /// The present time. Never less than what an earlier call returned.
    fn now(&self) -> Instant;
}

//! Limits on the values of a plan.

use linerate_stack::SMALLEST_MTU;

/// Minimum MTU in bytes of the link of a linerate host.
#[allow(clippy::cast_possible_truncation, reason = "it is less than a hundred")]
pub(super) const MIN_MTU: u16 = SMALLEST_MTU as u16;

/// Minimum time budget of a sweep, in seconds.
pub(super) const MIN_BUDGET: u64 = 5;

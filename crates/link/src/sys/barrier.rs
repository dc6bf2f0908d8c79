//! A memory barrier that one thread makes for all threads of the process (`membarrier`, Linux
//! 4.14). The rare caller pays its cost, instead of every access that would need a barrier.

use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::OnceLock;

/// Can [`make`] be used? Registers the process for such barriers on the first call. A sandbox can
/// forbid the system call, and miri does not support it.
pub(crate) fn is_possible() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}

/// Makes a barrier for all threads: each running thread executes one during this call. Writes of a
/// thread before its barrier are visible here afterwards, and writes before this call are visible
/// to the reads of a thread after its barrier.
pub(crate) fn make() {
    // This cannot fail if `is_possible` has returned true.
    let made = membarrier(MembarrierCommand::PrivateExpedited);
    debug_assert!(made.is_ok(), "{made:?}");
}

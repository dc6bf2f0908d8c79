//! A memory barrier that one thread executes for all threads of the process (`membarrier`, Linux
//! 4.14). It is expensive, but rarely needed; in return, frequent accesses need no barrier of their
//! own.

use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::OnceLock;

/// Returns whether [`make`] can be used: a sandbox can forbid the system call, and miri does not
/// support it. The first call registers the process for the barrier.
pub(crate) fn is_possible() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}

/// Makes a barrier for all threads of the process: each running thread executes one during this
/// call. Afterwards, the caller sees all writes that a thread made before its barrier. Reads of a
/// thread after its barrier see all writes that the caller made before the call.
pub(crate) fn make() {
    // This cannot fail if `is_possible` has returned true.
    let made = membarrier(MembarrierCommand::PrivateExpedited);
    debug_assert!(made.is_ok(), "{made:?}");
}

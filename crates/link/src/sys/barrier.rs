//! A memory barrier that one thread executes for all threads of the process (`membarrier`, Linux
//! 4.14). It is expensive, but rarely needed. In return, the other threads need no barriers for
//! their accesses to shared memory, which are frequent.

use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::OnceLock;

/// Returns whether the process can use [`make`]. A sandbox can forbid the system call, and miri
/// does not support it. The first call registers the process for the barrier, which the kernel
/// requires.
pub(crate) fn is_possible() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}

/// Makes every running thread of the process execute a memory barrier during this call. Afterwards,
/// the caller sees all writes that a thread made before its barrier. After its barrier, a thread
/// sees all writes that the caller made before this call.
pub(crate) fn make() {
    // This cannot fail if `is_possible` has returned true.
    let made = membarrier(MembarrierCommand::PrivateExpedited);
    debug_assert!(made.is_ok(), "{made:?}");
}

//! A memory barrier that one thread makes for all threads of the process (`membarrier`, Linux 4.14): what it costs is paid
//! by whoever asks for it, once in a while, and not by those who would need one for each frame.

use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::OnceLock;

/// May [`make`] be relied on? The kernel is told, once, that this process will ask for such barriers; a sandbox may forbid
/// it, and miri has no such call.
pub(crate) fn is_possible() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}

/// When this returns, each thread of the process has gone through a barrier since it was called, or did not run. So whatever
/// a thread has written before that is seen here from now on, and what was written here before is seen by whatever
/// it reads after that.
pub(crate) fn make() {
    // It cannot fail where it is possible.
    let made = membarrier(MembarrierCommand::PrivateExpedited);
    debug_assert!(made.is_ok(), "{made:?}");
}

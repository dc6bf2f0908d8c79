//! Propagation of panics from the threads of a bench.

use std::thread::ScopedJoinHandle;

/// Waits for a thread and returns its result, or propagates its panic.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

//! Threads of a bench, and how their panics are passed on.

use std::thread::ScopedJoinHandle;

/// Returns the result of a thread, or propagates its panic.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

//! Threads of a bench.

use std::thread::ScopedJoinHandle;

/// What a thread of a bench has come to; if it panicked, so does the bench.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

//! The allocator of the C library, which is Rust's default.

/// Makes the allocator return its free pages to the operating system.
#[cfg(target_env = "gnu")]
pub(crate) fn trim() {
    // SAFETY: `malloc_trim` may be called by any thread at any time. It takes the locks that it
    // needs, and touches only memory that is not allocated.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing: other allocators decide themselves when to return memory.
#[cfg(not(target_env = "gnu"))]
pub(crate) const fn trim() {}

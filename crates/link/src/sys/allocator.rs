//! The allocator of the C library, which is Rust's default.

/// Makes the allocator return its free pages to the operating system.
#[cfg(target_env = "gnu")]
pub(crate) fn trim() {
    // SAFETY: any thread may call `malloc_trim` at any time. The function takes the locks that it
    // needs, and accesses no memory that is allocated.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing, because other C libraries have no such call and return memory on their own.
#[cfg(not(target_env = "gnu"))]
pub(crate) const fn trim() {}

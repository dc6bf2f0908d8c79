//! Descriptors that the parent of this process has left open for it.

use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// Duplicates the descriptor with this number, and returns the duplicate. The original stays open
/// until the process ends or runs another program.
pub(crate) fn duplicate(number: RawFd) -> Result<OwnedFd, Errno> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: the number is not negative. It is used only in the two calls of this function. They
    // fail if there is no such descriptor, and otherwise affect whatever the number refers to.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    let duplicate = fcntl_dupfd_cloexec(inherited, 3)?;
    fcntl_setfd(inherited, FdFlags::CLOEXEC)?;
    Ok(duplicate)
}

//! Memory mappings: anonymous mappings, and mappings that are shared with the kernel.

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::os::fd::OwnedFd;
use std::ptr;

/// A memory mapping, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) start: *mut u8,
    pub(crate) length: usize,
}

// SAFETY: a mapping is not bound to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses an unused address range.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        Ok(Self { start: start.cast(), length })
    }

    pub(crate) fn of(socket: &OwnedFd, page: u64, length: usize) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses an unused address range.
        let start = unsafe {
            mmap(ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags, socket, page)
        }?;
        Ok(Self { start: start.cast(), length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped with this length, and all references into it have ended. The
        // kernel itself keeps pages alive that it still writes.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}

//! Memory of its own pages, or that is shared with the kernel.

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::os::fd::OwnedFd;
use std::ptr;

/// Mapped memory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) start: *mut u8,
    pub(crate) length: usize,
}

// SAFETY: mapped memory is bound to no thread.
unsafe impl Send for Mapping {}

impl Mapping {
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses a place where nothing is.
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
        // SAFETY: as above.
        let start = unsafe {
            mmap(ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags, socket, page)
        }?;
        Ok(Self { start: start.cast(), length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and whoever borrowed from it is gone. The kernel has pages of its
        // own hold on them, should it still be writing there.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}

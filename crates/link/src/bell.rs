//! An eventfd: a wake-up that is also a file descriptor, so that one `poll` waits for it and for
//! whatever else there is.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Readable from the first [`ring`](Self::ring) until it is [`silence`](Self::silence)d.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    /// A silent bell.
    pub(crate) fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    pub(crate) fn ring(&self) {
        // The one way to fail is a counter about to overflow: then the bell rings already.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(crate) fn silence(&self) {
        // The one way to fail is a bell that is silent already.
        let _ = read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

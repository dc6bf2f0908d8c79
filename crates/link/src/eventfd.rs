//! A wake-up event with a file descriptor (eventfd). One call of `poll` can thus wait for this
//! event and for other descriptors.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A wake-up event. Its descriptor is readable from [`set`](Self::set) until
/// [`clear`](Self::clear).
#[derive(Debug)]
pub(crate) struct Eventfd(OwnedFd);

impl Eventfd {
    /// Creates an event that is not set.
    pub(crate) fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    /// Sets the event, which makes the descriptor readable.
    pub(crate) fn set(&self) {
        // Writing fails only if the counter would overflow. In that case the counter is not zero,
        // so the event is set already.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Clears the event, which makes the descriptor unreadable.
    pub(crate) fn clear(&self) {
        // Reading fails only if the event is not set.
        let _ = read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Eventfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

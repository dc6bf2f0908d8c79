//! The kernel's file descriptors, by their numbers in the script.

use rustix::net::Shutdown;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open descriptors of the script (sockets and epoll instances), by number. Clones share the
/// descriptors.
#[derive(Clone, Debug, Default)]
pub(super) struct Descriptors(Arc<Mutex<BTreeMap<i32, Arc<OwnedFd>>>>);

impl Descriptors {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<i32, Arc<OwnedFd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, name: i32) -> Option<Arc<OwnedFd>> {
        self.lock().get(&name).cloned()
    }

    pub(super) fn insert(&self, name: i32, descriptor: OwnedFd) {
        self.lock().insert(name, Arc::new(descriptor));
    }

    /// Removes a descriptor. Dropping the result closes it, unless a call in progress still refers
    /// to it.
    pub(super) fn remove(&self, name: i32) -> Option<Arc<OwnedFd>> {
        self.lock().remove(&name)
    }

    /// Shuts down both directions of all sockets, which wakes calls that wait for them.
    pub(super) fn shut_down_sockets(&self) {
        for descriptor in self.lock().values() {
            // Shutting down a socket wakes a call that waits for it. An epoll instance cannot be
            // shut down, so a call that waits for it goes on until its timeout. The error is
            // therefore ignored.
            let _ = rustix::net::shutdown(&**descriptor, Shutdown::Both);
        }
    }
}

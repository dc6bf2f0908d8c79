//! The open connections of a service: no more than a limit, and all of them closed at its end.

use super::lock::lock;
use crate::socket::Stream;
use std::collections::BTreeMap;
use std::net::Shutdown;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The open connections of a service.
#[derive(Debug)]
pub(crate) struct Guests {
    limit: usize,
    /// Invariant: no more than `limit` streams.
    open: Mutex<Open>,
    closing: AtomicBool,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// A second handle of each, to close it by.
    streams: BTreeMap<u64, Stream>,
}

impl Guests {
    /// No guests yet, and never more than `limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, open: Mutex::default(), closing: AtomicBool::new(false) }
    }

    /// A place for one more, if there is one.
    pub(crate) fn admit(&self, stream: &Stream) -> Option<Place<'_>> {
        let handle = stream.try_clone().ok()?;
        let mut open = lock(&self.open);
        if open.streams.len() >= self.limit {
            return None;
        }
        let id = open.next;
        open.next += 1;
        open.streams.insert(id, handle);
        Some(Place { guests: self, id })
    }

    /// Wakes every thread that waits for its guest, so that it ends.
    pub(crate) fn close_all(&self) {
        self.closing.store(true, Ordering::Relaxed);
        for stream in lock(&self.open).streams.values() {
            // One that is closed already needs no closing.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Is the service about to end?
    pub(crate) fn are_leaving(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// A guest's place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    guests: &'a Guests,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(&self.guests.open).streams.remove(&self.id);
    }
}

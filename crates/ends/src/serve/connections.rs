//! The open connections of a service, with a limit. All are closed at its end.

use super::lock::lock;
use crate::socket::Stream;
use std::collections::BTreeMap;
use std::net::Shutdown;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The open connections of a service.
#[derive(Debug)]
pub(crate) struct Connections {
    limit: usize,
    /// Invariant: at most `limit` streams.
    open: Mutex<Open>,
    closing: AtomicBool,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// A second handle of each stream, to close it with.
    streams: BTreeMap<u64, Stream>,
}

impl Connections {
    /// Creates an empty set with a limit.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, open: Mutex::default(), closing: AtomicBool::new(false) }
    }

    /// Adds a connection, if the limit allows it.
    pub(crate) fn admit(&self, stream: &Stream) -> Option<ConnectionSlot<'_>> {
        let handle = stream.try_clone().ok()?;
        let mut open = lock(&self.open);
        if open.streams.len() >= self.limit {
            return None;
        }
        let id = open.next;
        open.next += 1;
        open.streams.insert(id, handle);
        Some(ConnectionSlot { connections: self, id })
    }

    /// Closes all connections, which wakes the threads that wait for them.
    pub(crate) fn close_all(&self) {
        self.closing.store(true, Ordering::Relaxed);
        for stream in lock(&self.open).streams.values() {
            // Fails if the peer has closed the connection already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Is the service about to end?
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// A registered connection, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot<'a> {
    connections: &'a Connections,
    id: u64,
}

impl Drop for ConnectionSlot<'_> {
    fn drop(&mut self) {
        lock(&self.connections.open).streams.remove(&self.id);
    }
}

//! The open connections of a service, which are limited in number and closed when the service ends.

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
    /// The open connections. Their number is at most `limit`.
    open: Mutex<Open>,
    closing: AtomicBool,
}

#[derive(Debug, Default)]
struct Open {
    /// Number that the next connection gets.
    next: u64,
    /// Clones of the connections' streams by connection number, through which
    /// [`Connections::close_all`] closes the connections.
    streams: BTreeMap<u64, Stream>,
}

impl Connections {
    /// Creates an empty set of at most `limit` connections.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, open: Mutex::default(), closing: AtomicBool::new(false) }
    }

    /// Adds a connection; returns `None` if the limit is reached or the stream cannot be cloned.
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

    /// Shuts down all connections, so that the threads that serve the connections end.
    pub(crate) fn close_all(&self) {
        self.closing.store(true, Ordering::Relaxed);
        for stream in lock(&self.open).streams.values() {
            // The shutdown fails only if the connection has already ended, so the error is ignored.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Is the service ending, so that its connections must end too?
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// A place in the set of open connections. Dropping the place removes its connection from the set.
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

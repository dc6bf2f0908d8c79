//! What the threads of a sink have in common: who is there, and which runs are expected.

use super::Limits;
use super::door::Door;
use super::event::{Event, Summary};
use super::run::Run;
use crate::control::greeting::Token;
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What the threads of a sink have in common.
pub(super) struct Shared<'a> {
    pub(super) door: &'a Door<'a>,
    pub(super) limits: Limits,
    pub(super) begun: Instant,
    tell: &'a (dyn Fn(&Event) + Sync),
    /// A second handle of every open connection. Invariant: no more than `limits.connections`.
    open: Mutex<Open>,
    sessions: AtomicUsize,
    /// Runs whose data connection has not come. Invariant: no more than one for each session.
    expected: Mutex<BTreeMap<Token, Arc<Run<'a>>>>,
    summary: Mutex<Summary>,
    closing: AtomicBool,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    streams: BTreeMap<u64, TcpStream>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(door: &'a Door<'a>, limits: Limits, tell: &'a (dyn Fn(&Event) + Sync)) -> Self {
        Self {
            door,
            limits,
            begun: Instant::now(),
            tell,
            open: Mutex::default(),
            sessions: AtomicUsize::new(0),
            expected: Mutex::default(),
            summary: Mutex::default(),
            closing: AtomicBool::new(false),
        }
    }

    /// A place for one more connection, if there is one.
    pub(super) fn admit(&self, stream: &TcpStream) -> Option<Place<'_>> {
        let handle = stream.try_clone().ok()?;
        let mut open = lock(&self.open);
        if open.streams.len() >= self.limits.connections {
            return None;
        }
        let id = open.next;
        open.next += 1;
        open.streams.insert(id, handle);
        Some(Place { open: &self.open, id })
    }

    /// A place for one more control connection, if there is one.
    pub(super) fn enter_session(&self) -> Option<SessionPlace<'_>> {
        let more = |sessions: usize| (sessions < self.limits.sessions).then_some(sessions + 1);
        let entered = self.sessions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        entered.is_ok().then(|| SessionPlace { sessions: &self.sessions })
    }

    /// Control connections at present.
    pub(super) fn session_count(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Waits for the data connection of `run`.
    pub(super) fn expect(&self, token: Token, run: Arc<Run<'a>>) {
        lock(&self.expected).insert(token, run);
    }

    /// The run that `token` belongs to. A token is good for one connection.
    pub(super) fn take_expected(&self, token: Token) -> Option<Arc<Run<'a>>> {
        lock(&self.expected).remove(&token)
    }

    /// Counts the event and passes it on.
    pub(super) fn tell(&self, event: &Event) {
        lock(&self.summary).add(event);
        (self.tell)(event);
    }

    /// Everybody who came, in sum.
    pub(super) fn summary(&self) -> Summary {
        *lock(&self.summary)
    }

    /// Wakes every thread that waits for its peer, so that it ends.
    pub(super) fn close_all(&self) {
        self.closing.store(true, Ordering::Relaxed);
        for stream in lock(&self.open).streams.values() {
            // One that is closed already needs no closing.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Is the sink about to end?
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// A connection's place among the open ones, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a> {
    open: &'a Mutex<Open>,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(self.open).streams.remove(&self.id);
    }
}

/// A control connection's place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct SessionPlace<'a> {
    sessions: &'a AtomicUsize,
}

impl Drop for SessionPlace<'_> {
    fn drop(&mut self) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread that panicked leaves its counts as they are; the others go on.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

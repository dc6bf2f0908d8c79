//! The state that all threads of a sink share: open connections and expected runs.

use super::event::{Event, Summary};
use super::limits::Limits;
use super::receive_buffer::ReceiveBufferLock;
use super::run::Run;
use crate::control::greeting::Token;
use crate::serve::{Connections, lock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The state that all threads of a sink share.
pub(super) struct Shared<'a> {
    pub(super) receive_buffer: &'a ReceiveBufferLock<'a>,
    pub(super) limits: Limits,
    pub(super) connections: Connections,
    /// Time at which the sink started. When a sweep requests the sink's time, the reply counts from
    /// this moment.
    pub(super) begun: Instant,
    /// Callback of the sink's caller, which gets every event.
    tell: &'a (dyn Fn(&Event) + Sync),
    /// Number of open control connections.
    sessions: AtomicUsize,
    /// Runs that wait for their data connection, by token. Each session has at most one such run.
    expected: Mutex<BTreeMap<Token, Arc<Run<'a>>>>,
    summary: Mutex<Summary>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(
        receive_buffer: &'a ReceiveBufferLock<'a>,
        limits: Limits,
        tell: &'a (dyn Fn(&Event) + Sync),
    ) -> Self {
        Self {
            receive_buffer,
            limits,
            connections: Connections::new(limits.connections),
            begun: Instant::now(),
            tell,
            sessions: AtomicUsize::new(0),
            expected: Mutex::default(),
            summary: Mutex::default(),
        }
    }

    /// Registers a control connection; returns `None` if the maximum number of sessions is open.
    pub(super) fn enter_session(&self) -> Option<SessionPlace<'_>> {
        let more = |sessions: usize| (sessions < self.limits.sessions).then_some(sessions + 1);
        let entered = self.sessions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        entered.is_ok().then(|| SessionPlace { sessions: &self.sessions })
    }

    /// Returns the number of open control connections.
    pub(super) fn session_count(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Registers a run that waits for a data connection with `token`.
    pub(super) fn expect(&self, token: Token, run: Arc<Run<'a>>) {
        lock(&self.expected).insert(token, run);
    }

    /// Removes and returns the run that waits for a data connection with `token`; `None` if there
    /// is none. Because the run is removed, a second connection with this token finds none.
    pub(super) fn take_expected(&self, token: Token) -> Option<Arc<Run<'a>>> {
        lock(&self.expected).remove(&token)
    }

    /// Adds the event to the totals, and passes the event to the caller of the sink.
    pub(super) fn tell(&self, event: &Event) {
        lock(&self.summary).add(event);
        (self.tell)(event);
    }

    /// Returns the totals over all connections so far.
    pub(super) fn summary(&self) -> Summary {
        *lock(&self.summary)
    }
}

/// A place among the open control connections. Dropping the place frees it for another sweep.
#[derive(Debug)]
pub(super) struct SessionPlace<'a> {
    sessions: &'a AtomicUsize,
}

impl Drop for SessionPlace<'_> {
    fn drop(&mut self) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

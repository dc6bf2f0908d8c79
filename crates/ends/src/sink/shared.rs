//! The state shared by the threads of a sink: open connections and expected runs.

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

/// The state shared by the threads of a sink.
pub(super) struct Shared<'a> {
    pub(super) receive_buffer: &'a ReceiveBufferLock<'a>,
    pub(super) limits: Limits,
    pub(super) connections: Connections,
    pub(super) begun: Instant,
    tell: &'a (dyn Fn(&Event) + Sync),
    sessions: AtomicUsize,
    /// Runs whose data connection has not arrived. Invariant: at most one for each session.
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

    /// Registers a control connection, if the limit allows it.
    pub(super) fn enter_session(&self) -> Option<SessionPlace<'_>> {
        let more = |sessions: usize| (sessions < self.limits.sessions).then_some(sessions + 1);
        let entered = self.sessions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        entered.is_ok().then(|| SessionPlace { sessions: &self.sessions })
    }

    /// Returns the number of control connections.
    pub(super) fn session_count(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Registers a run that waits for its data connection.
    pub(super) fn expect(&self, token: Token, run: Arc<Run<'a>>) {
        lock(&self.expected).insert(token, run);
    }

    /// Removes and returns the run of `token`. A token is valid for one connection.
    pub(super) fn take_expected(&self, token: Token) -> Option<Arc<Run<'a>>> {
        lock(&self.expected).remove(&token)
    }

    /// Counts the event and passes it on.
    pub(super) fn tell(&self, event: &Event) {
        lock(&self.summary).add(event);
        (self.tell)(event);
    }

    /// Returns the totals.
    pub(super) fn summary(&self) -> Summary {
        *lock(&self.summary)
    }
}

/// A registered control connection, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct SessionPlace<'a> {
    sessions: &'a AtomicUsize,
}

impl Drop for SessionPlace<'_> {
    fn drop(&mut self) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

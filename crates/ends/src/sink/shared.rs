//! What the threads of a sink have in common: who is there, and which runs are expected.

use super::door::Door;
use super::event::{Event, Summary};
use super::limits::Limits;
use super::run::Run;
use crate::control::greeting::Token;
use crate::serve::{Guests, lock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What the threads of a sink have in common.
pub(super) struct Shared<'a> {
    pub(super) door: &'a Door<'a>,
    pub(super) limits: Limits,
    pub(super) guests: Guests,
    pub(super) begun: Instant,
    tell: &'a (dyn Fn(&Event) + Sync),
    sessions: AtomicUsize,
    /// Runs whose data connection has not come. Invariant: no more than one for each session.
    expected: Mutex<BTreeMap<Token, Arc<Run<'a>>>>,
    summary: Mutex<Summary>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(
        door: &'a Door<'a>,
        limits: Limits,
        tell: &'a (dyn Fn(&Event) + Sync),
    ) -> Self {
        Self {
            door,
            limits,
            guests: Guests::new(limits.connections),
            begun: Instant::now(),
            tell,
            sessions: AtomicUsize::new(0),
            expected: Mutex::default(),
            summary: Mutex::default(),
        }
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

//! The application's thread, which executes one system call after the other. Each may wait.

use super::calls::perform;
use crate::machine::Answer;
use crate::syntax::{Call, Settings};
use linerate_link::{Doorbell, MonotonicClock};
use linerate_units::{Clock, Instant};
use rustix::net::Shutdown;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// The kernel's sockets, by their numbers in the script.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(Arc<Mutex<BTreeMap<i32, Arc<OwnedFd>>>>);

impl Table {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<i32, Arc<OwnedFd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, name: i32) -> Option<Arc<OwnedFd>> {
        self.lock().get(&name).cloned()
    }

    pub(super) fn insert(&self, name: i32, socket: OwnedFd) {
        self.lock().insert(name, Arc::new(socket));
    }

    /// Removes a socket, which closes it: no call is in progress that holds another reference.
    pub(super) fn remove(&self, name: i32) -> Option<Arc<OwnedFd>> {
        self.lock().remove(&name)
    }
}

/// The application's thread.
#[derive(Debug)]
pub(super) struct Worker {
    calls: Sender<(Call, i32)>,
    answers: Receiver<(Instant, Answer)>,
    table: Table,
}

impl Worker {
    /// Starts the thread, which rings `doorbell` whenever a call has returned.
    pub(super) fn start(doorbell: Doorbell, settings: &Settings) -> io::Result<Self> {
        let (calls, to_do) = channel::<(Call, i32)>();
        let (done, answers) = channel();
        let table = Table::default();
        let (own, settings) = (table.clone(), settings.clone());
        Builder::new().name("application".to_owned()).spawn(move || {
            for (call, name) in to_do {
                let answer = perform(&call, name, &own, &settings);
                if done.send((MonotonicClock.now(), answer)).is_err() {
                    return;
                }
                doorbell.ring();
            }
        })?;
        Ok(Self { calls, answers, table })
    }

    /// Starts a call.
    pub(super) fn begin(&self, call: &Call, name: i32) {
        // The thread exists as long as this value.
        let _ = self.calls.send((call.clone(), name));
    }

    /// Returns the answer of the last call, if it has returned.
    pub(super) fn finished(&self) -> Option<(Instant, Answer)> {
        self.answers.try_recv().ok()
    }

    /// Returns a socket, for instance to read `TCP_INFO`.
    pub(super) fn socket(&self, name: i32) -> Option<Arc<OwnedFd>> {
        self.table.get(name)
    }
}

/// Wakes a waiting call, so that the thread ends, and the namespace with it.
impl Drop for Worker {
    fn drop(&mut self) {
        for socket in self.table.lock().values() {
            let _ = rustix::net::shutdown(&**socket, Shutdown::Both);
        }
    }
}

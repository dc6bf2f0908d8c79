//! The application's thread: it makes one system call after the other, each of which may wait.

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

/// The kernel's sockets by the script's numbers.
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

    /// Forgets a socket, which closes it: nobody else holds one between two calls.
    pub(super) fn remove(&self, name: i32) -> Option<Arc<OwnedFd>> {
        self.lock().remove(&name)
    }
}

/// The thread.
#[derive(Debug)]
pub(super) struct Worker {
    calls: Sender<(Call, i32)>,
    answers: Receiver<(Instant, Answer)>,
    table: Table,
}

impl Worker {
    /// Starts the thread, which rings `bell` whenever a call has returned.
    pub(super) fn start(bell: Doorbell, settings: &Settings) -> io::Result<Self> {
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
                bell.ring();
            }
        })?;
        Ok(Self { calls, answers, table })
    }

    /// Has it make a call.
    pub(super) fn begin(&self, call: &Call, name: i32) {
        // It lives as long as this does.
        let _ = self.calls.send((call.clone(), name));
    }

    /// What the last call came to, once it has returned.
    pub(super) fn finished(&self) -> Option<(Instant, Answer)> {
        self.answers.try_recv().ok()
    }

    /// A socket, to be asked how it is.
    pub(super) fn socket(&self, name: i32) -> Option<Arc<OwnedFd>> {
        self.table.get(name)
    }
}

/// A call that still waits is woken, so that the thread ends, and the network with it.
impl Drop for Worker {
    fn drop(&mut self) {
        for socket in self.table.lock().values() {
            let _ = rustix::net::shutdown(&**socket, Shutdown::Both);
        }
    }
}

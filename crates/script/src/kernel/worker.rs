//! The thread that executes the application's system calls one after the other. A call may block
//! without delaying the rest of the script.

use super::calls::Application;
use super::descriptors::Descriptors;
use crate::machine::Answer;
use crate::syntax::{Call, Settings};
use linerate_link::{Doorbell, MonotonicClock};
use linerate_units::{Clock, Instant};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

/// The thread that executes the application's system calls.
#[derive(Debug)]
pub(super) struct Worker {
    calls: Sender<(Call, i32)>,
    answers: Receiver<(Instant, Answer)>,
    descriptors: Descriptors,
}

impl Worker {
    /// Starts the thread, which rings `doorbell` whenever a call has returned.
    pub(super) fn start(doorbell: Doorbell, settings: &Settings, longer: u16) -> io::Result<Self> {
        let (calls, to_do) = channel::<(Call, i32)>();
        let (done, answers) = channel();
        let descriptors = Descriptors::default();
        let own = descriptors.clone();
        let application = Application::new(settings, longer);
        Builder::new().name("application".to_owned()).spawn(move || {
            for (call, name) in to_do {
                let answer = application.perform(&call, name, &own);
                if done.send((MonotonicClock.now(), answer)).is_err() {
                    return;
                }
                doorbell.ring();
            }
        })?;
        Ok(Self { calls, answers, descriptors })
    }

    /// Makes the thread execute a call. A socket that the call creates gets the number `name`.
    pub(super) fn begin(&self, call: &Call, name: i32) {
        // Sending would fail only if the thread that executes the calls had ended. It ends after
        // this `Worker` has been dropped, so an error is impossible.
        let _ = self.calls.send((call.clone(), name));
    }

    /// Returns the result of the call in progress, and the time at which the call returned; `None`
    /// if it has not returned yet.
    pub(super) fn finished(&self) -> Option<(Instant, Answer)> {
        self.answers.try_recv().ok()
    }

    /// Returns socket number `name`, for instance to read `TCP_INFO`; `None` if it is not open.
    pub(super) fn socket(&self, name: i32) -> Option<Arc<OwnedFd>> {
        self.descriptors.get(name)
    }
}

/// Wakes a call that is still waiting, so that the thread ends. A thread that did not end would
/// keep the script's network namespace in existence.
impl Drop for Worker {
    fn drop(&mut self) {
        self.descriptors.shut_down_sockets();
    }
}

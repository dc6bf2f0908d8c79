//! The state that the reactor and the application threads share: one host behind one lock.
//!
//! Rules of locking:
//!
//! 1. One [`Mutex`] protects the host and its registry of sockets. With several shards, each has
//!    its own lock, and no thread holds the locks of two shards. Threads that wait for a condition
//!    variable of the host or of a socket release this lock meanwhile.
//! 2. While a thread holds the lock, it takes only the locks of an
//!    [`EventCount`](crate::event_count::EventCount), of a registration, and of the queue of a
//!    poller. They come later in the lock order and are held briefly.
//! 3. No thread blocks while it holds the lock, except on a condition variable, which releases it.
//!    The reactor releases it before it waits for its link.
//! 4. Application threads hold the lock as an [`Access`]. When it is dropped, it first dispatches
//!    the host's events to the waiting threads, and then releases the lock. If the host needs a
//!    turn earlier than the reactor has scheduled it, the `Access` then rings the doorbell, which
//!    wakes the reactor. So the reactor handles every change that a call makes.
//! 5. A thread that waits keeps the lock from the check of its condition until it waits, and events
//!    are dispatched only under the lock. So no event occurs between the check and the wait, and no
//!    wake-up is lost.
//! 6. After each turn, the reactor passes the lock to a thread that waits for it. A turn is short,
//!    because its budget limits the work.

use crate::error::{End, Error};
use crate::reactor::Activity;
use crate::waiters::Registry;
use linerate_link::{Doorbell, MonotonicClock};
use linerate_stack::{Stack, Turn};
use linerate_units::{Clock, Instant};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};
use std::{thread, time};

/// A host, shared by the reactor and the application threads.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The condition variable that is notified after each turn. Threads wait for it if no event of
    /// a socket announces their condition, for example the end of all closed connections.
    turned: Condvar,
    doorbell: Doorbell,
}

/// Returns the initial value of [`State::last`]. It says that a turn is due, so the reactor makes
/// its first turn at once.
fn before_first_turn() -> Turn {
    let mut turn = Turn::default();
    turn.more = true;
    turn.next = Instant::ZERO;
    turn
}

/// The state that the lock of a [`Shared`] protects.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) stack: Stack,
    pub(crate) registry: Registry,
    pub(crate) activity: Activity,
    /// The result of the most recent turn, with the time at which the next turn is due. If a call
    /// makes the host need a turn before that time, the reactor must be woken.
    pub(crate) last: Turn,
    /// The reason why the reactor must stop: a request of the application, an error of the link, or
    /// the end of another shard.
    pub(crate) stop_reason: Option<End>,
    /// The reason why the reactor has stopped; `None` while it runs. After that, the host makes no
    /// more turns.
    pub(crate) end: Option<End>,
}

impl Shared {
    pub(crate) fn new(stack: Stack, doorbell: Doorbell) -> Self {
        let state = State {
            stack,
            registry: Registry::default(),
            activity: Activity::default(),
            last: before_first_turn(),
            stop_reason: None,
            end: None,
        };
        Self { state: Mutex::new(state), turned: Condvar::new(), doorbell }
    }

    /// Locks the host for an application thread.
    ///
    /// # Errors
    /// [`End::Panicked`] after a panic, because the host may then be inconsistent. If the network
    /// has ended for another reason, the lock is granted: received data can still be read.
    pub(crate) fn access(&self) -> Result<Access<'_>, Error> {
        let state = self.state.lock();
        match state.end {
            Some(End::Panicked) => Err(End::Panicked.into()),
            _ => Ok(Access {
                state,
                wake_up: DoorbellGuard { doorbell: &self.doorbell, is_due: false },
                turned: &self.turned,
                was_panicking: thread::panicking(),
            }),
        }
    }

    /// Locks the host for the reactor.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Returns the condition variable that is notified after each turn.
    pub(crate) const fn turned(&self) -> &Condvar {
        &self.turned
    }

    /// Requests the reactor to stop. If a stop was requested earlier, the reason of the earlier
    /// request is kept.
    pub(crate) fn request_stop(&self, why: End) {
        if let Ok(mut access) = self.access() {
            access.stop_reason.get_or_insert(why);
        }
    }

    /// Waits until the connections of all closed sockets have ended or are in TIME-WAIT, and no
    /// packet is queued. Returns false if that is not the case at `deadline`.
    ///
    /// # Errors
    /// The reason why the host has stopped, if it stops before that.
    pub(crate) fn wait_for_orphans(&self, deadline: Option<time::Instant>) -> Result<bool, Error> {
        let mut access = self.access()?;
        let mut in_time = true;
        loop {
            // Orphans are connections that the application has closed, and that have neither ended
            // nor reached TIME-WAIT. A queued packet may be a datagram of a closed socket, which
            // waits for an ARP reply for a few seconds at most. Packets do not record their socket,
            // so this waits until no packet of any socket is queued.
            if access.stack.orphans() == 0 && !access.stack.holds_packets() {
                return Ok(true);
            }
            access.check_running()?;
            if !in_time {
                return Ok(false);
            }
            in_time = access.wait(&self.turned, deadline);
        }
    }

    /// Waits until the addresses of all interfaces are usable ([`Stack::is_addressed`]).
    ///
    /// # Errors
    /// [`Error::Unaddressed`] after `timeout`; the reason why the host has stopped before.
    pub(crate) fn wait_for_addresses(&self, timeout: time::Duration) -> Result<(), Error> {
        let deadline = time::Instant::now().checked_add(timeout);
        let mut access = self.access()?;
        let mut in_time = true;
        while !access.stack.is_addressed() {
            access.check_running()?;
            if !in_time {
                return Err(Error::Unaddressed(timeout));
            }
            in_time = access.wait(&self.turned, deadline);
        }
        Ok(())
    }

    /// Marks the host as stopped after a panic of the reactor, and wakes all waiting threads.
    pub(crate) fn mark_ended(&self, end: End) {
        self.lock().mark_ended(end, &self.turned);
    }
}

impl State {
    /// Returns the current time. Because the caller holds the lock, a thread that takes the lock
    /// later never gets an earlier time.
    #[allow(clippy::unused_self, reason = "having the state is having the lock")]
    pub(crate) fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    /// Dispatches the events of the host to the waiting threads.
    pub(crate) fn dispatch_events(&mut self) {
        while let Some(event) = self.stack.poll_event() {
            self.registry.dispatch(&event, &self.stack);
        }
        if self.registry.has_forwarder() {
            self.registry.dispatch_flows(&mut self.stack);
        }
    }

    /// Marks the host as stopped, and wakes all waiting threads.
    pub(crate) fn mark_ended(&mut self, end: End, turned: &Condvar) {
        self.end.get_or_insert(end);
        self.registry.wake_all_sockets();
        turned.notify_all();
    }

    /// Returns an error if the host has stopped.
    pub(crate) fn check_running(&self) -> Result<(), Error> {
        self.end.map_or(Ok(()), |end| Err(end.into()))
    }
}

/// The locked host in an application thread.
pub(crate) struct Access<'a> {
    // Rust drops fields in the order of their declaration: the lock is released, and then the
    // doorbell rings. So the reactor, which the doorbell wakes, need not wait for the lock.
    state: MutexGuard<'a, State>,
    wake_up: DoorbellGuard<'a>,
    turned: &'a Condvar,
    /// Was the thread already panicking when it took the lock? Then it takes the lock to close its
    /// sockets while it unwinds. Such a panic began outside the host, so the host is consistent.
    was_panicking: bool,
}

impl Access<'_> {
    /// Waits until `condvar` is notified, at most until `deadline`. Returns false if the deadline
    /// has passed. A result of true does not guarantee a notification, so callers check their
    /// condition again.
    pub(crate) fn wait(&mut self, condvar: &Condvar, deadline: Option<time::Instant>) -> bool {
        self.publish_changes();
        self.wake_up.ring();
        self.state.activity.waits += 1;
        match deadline {
            Some(deadline) => !condvar.wait_until(&mut self.state, deadline).timed_out(),
            None => {
                condvar.wait(&mut self.state);
                true
            }
        }
    }

    /// Dispatches the host's events to the waiting threads, and records whether the doorbell must
    /// wake the reactor.
    fn publish_changes(&mut self) {
        self.state.dispatch_events();
        let state = &self.state;
        if state.end.is_none()
            && (state.stop_reason.is_some() || state.stack.wants_turn_since(&state.last))
        {
            self.state.activity.wake_ups += 1;
            self.wake_up.is_due = true;
        }
    }
}

impl Deref for Access<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Access<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        if thread::panicking() && !self.was_panicking {
            // The panic of this thread began while it held the lock. Its call may have left the
            // host inconsistent, so the network ends.
            self.state.mark_ended(End::Panicked, self.turned);
            self.wake_up.is_due = true;
        } else {
            self.publish_changes();
        }
    }
}

/// A guard that rings the doorbell when it is dropped, if `is_due` is set. The doorbell wakes the
/// reactor.
struct DoorbellGuard<'a> {
    doorbell: &'a Doorbell,
    is_due: bool,
}

impl DoorbellGuard<'_> {
    fn ring(&mut self) {
        if std::mem::take(&mut self.is_due) {
            self.doorbell.ring();
        }
    }
}

impl Drop for DoorbellGuard<'_> {
    fn drop(&mut self) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeouts::Direction;
    use crate::waiters::SocketId;
    use linerate_link::Waiter;
    use linerate_stack::StackConfig;
    use std::sync::Arc;

    fn shared() -> Arc<Shared> {
        let config =
            StackConfig::new("02:00:00:00:00:01".parse().unwrap(), "10.0.0.1/24".parse().unwrap());
        Arc::new(Shared::new(Stack::new(config, [1; 32]), Waiter::new().unwrap().doorbell()))
    }

    #[test]
    fn a_panic_under_the_lock_ends_the_host_for_all_threads() {
        let shared = shared();
        let waiting = {
            let mut access = shared.access().unwrap();
            let local: std::net::SocketAddr = "10.0.0.1:9".parse().unwrap();
            let handle = access.stack.udp_bind(local, &Default::default()).unwrap();
            let waiters = access.registry.register(SocketId::Udp(handle));
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut access = shared.access().unwrap();
                while access.end.is_none() {
                    access.wait(waiters.of(Direction::Read), None);
                }
                access.end
            })
        };
        while shared.lock().activity.waits == 0 {
            thread::yield_now();
        }
        let culprit = Arc::clone(&shared);
        let panicked = thread::spawn(move || {
            let _access = culprit.access().unwrap();
            panic!("this panic is part of a test");
        });
        assert!(panicked.join().is_err());
        assert!(matches!(shared.access().map(drop), Err(Error::Ended(End::Panicked))));
        assert_eq!(waiting.join().unwrap(), Some(End::Panicked));
    }
}

//! What the reactor and the threads of the application share: one host under one lock.
//!
//! The discipline of the lock:
//!
//! 1. There is one [`Mutex`], around the host (of several shards: around each) and everything about it. Every
//!    condition variable belongs to it. No other lock is taken while it is held, but the one inside of a
//!    [`Gate`](crate::gate::Gate), which is the last of all; no thread holds those of two shards.
//! 2. Nobody sleeps with it, but on a condition variable, which lets go of it: the reactor waits for its
//!    link without it.
//! 3. An application's thread has it as an [`Access`]. Before that lets go of the lock, whatever the host
//!    has to tell is handed to whom it concerns; and if the host now has something to do that the
//!    reactor does not know of, the doorbell rings. So there is no way to change the host and forget
//!    to say so.
//! 4. A thread looks whether it has to wait, and begins to wait, without letting go in between; and events
//!    are handed out by who holds the lock. So no wake-up falls between the two.
//! 5. The reactor gives the lock to whoever waits for it after each turn, and a turn has a budget.

use crate::error::{End, Error};
use crate::reactor::Activity;
use crate::waiters::Registry;
use linerate_link::{Doorbell, MonotonicClock};
use linerate_stack::{Stack, Turn};
use linerate_units::{Clock, Instant};
use linerate_wire::Ipv4Cidr;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};
use std::{thread, time};

/// Before the first turn, which comes at once.
const NOT_YET: Turn = Turn {
    received: 0,
    transmitted: 0,
    timers: 0,
    next: Instant::ZERO,
    more: true,
    blocked: false,
};

/// One host, for everybody who uses it.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Told after each turn, for those who wait for something that is no event of a socket.
    turned: Condvar,
    doorbell: Doorbell,
    /// The addresses of the host, which stay the same.
    pub(crate) addresses: Vec<Ipv4Cidr>,
}

/// What is under the lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) stack: Stack,
    pub(crate) registry: Registry,
    pub(crate) activity: Activity,
    /// What came of the last turn, and when the reactor turns the host again by itself.
    pub(crate) last: Turn,
    /// Why the reactor is to end: the application wants it, the link is gone, or another shard has ended.
    pub(crate) leaving: Option<End>,
    /// Why the reactor has ended, if it has. Nothing happens to the host any more.
    pub(crate) end: Option<End>,
}

impl Shared {
    pub(crate) fn new(stack: Stack, doorbell: Doorbell) -> Self {
        let addresses = stack.addresses().to_vec();
        let state = State {
            stack,
            registry: Registry::default(),
            activity: Activity::default(),
            last: NOT_YET,
            leaving: None,
            end: None,
        };
        Self { state: Mutex::new(state), turned: Condvar::new(), doorbell, addresses }
    }

    /// The host, for an application's thread.
    ///
    /// # Errors
    /// [`End::Panicked`], after which the host is not to be touched. In all other cases sockets may still
    /// be asked for what they have.
    pub(crate) fn access(&self) -> Result<Access<'_>, Error> {
        let state = self.state.lock();
        match state.end {
            Some(End::Panicked) => Err(End::Panicked.into()),
            _ => Ok(Access {
                state,
                bell: BellRope { doorbell: &self.doorbell, pulled: false },
                turned: &self.turned,
                began_in_panic: thread::panicking(),
            }),
        }
    }

    /// The host, for the reactor.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Told after each turn.
    pub(crate) const fn turned(&self) -> &Condvar {
        &self.turned
    }

    /// Has the reactor end, for this reason unless there is one already.
    pub(crate) fn leave(&self, why: End) {
        if let Ok(mut access) = self.access() {
            access.leaving.get_or_insert(why);
        }
    }

    /// Waits until closed sockets have nothing more to say; false if that takes too long.
    ///
    /// # Errors
    /// Why the host has ended before.
    pub(crate) fn wait_for_orphans(&self, deadline: Option<time::Instant>) -> Result<bool, Error> {
        let mut access = self.access()?;
        let mut in_time = true;
        loop {
            // Whose packets those are nobody can tell any more. For a neighbour they wait for seconds at most.
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

    /// The reactor has ended without a farewell: everybody is woken to hear why.
    pub(crate) fn finish(&self, end: End) {
        self.lock().finish(end, &self.turned);
    }
}

impl State {
    /// The time, now that the lock is held: it never goes back from one holder to the next.
    #[allow(clippy::unused_self, reason = "having the state is having the lock")]
    pub(crate) fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    /// Wakes whom the host has something to tell.
    pub(crate) fn hand_out_events(&mut self) {
        while let Some(event) = self.stack.poll_event() {
            self.registry.hand_out(&event, &self.stack);
        }
    }

    /// Ends everything, and wakes everybody to hear why.
    pub(crate) fn finish(&mut self, end: End, turned: &Condvar) {
        self.end.get_or_insert(end);
        self.registry.wake_everybody();
        turned.notify_all();
    }

    /// Why nothing will happen any more, if that is so.
    pub(crate) fn check_running(&self) -> Result<(), Error> {
        self.end.map_or(Ok(()), |end| Err(end.into()))
    }
}

/// The host in the hands of an application's thread.
pub(crate) struct Access<'a> {
    // Dropped in this order: whom the bell wakes finds the lock free.
    state: MutexGuard<'a, State>,
    bell: BellRope<'a>,
    turned: &'a Condvar,
    /// Was the thread panicking before? Sockets are closed then, too.
    began_in_panic: bool,
}

impl Access<'_> {
    /// Waits until it is told on `condvar` or `deadline` passes; the latter is answered with false.
    /// It may return true for no reason.
    pub(crate) fn wait(&mut self, condvar: &Condvar, deadline: Option<time::Instant>) -> bool {
        self.settle();
        self.bell.ring();
        self.state.activity.waits += 1;
        match deadline {
            Some(deadline) => !condvar.wait_until(&mut self.state, deadline).timed_out(),
            None => {
                condvar.wait(&mut self.state);
                true
            }
        }
    }

    fn settle(&mut self) {
        self.state.hand_out_events();
        let state = &self.state;
        if state.end.is_none()
            && (state.leaving.is_some() || state.stack.wants_turn_since(&state.last))
        {
            self.state.activity.rings += 1;
            self.bell.pulled = true;
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
        if thread::panicking() && !self.began_in_panic {
            // The host has panicked in these hands, and is not to be touched by anybody any more.
            self.state.finish(End::Panicked, self.turned);
            self.bell.pulled = true;
        } else {
            self.settle();
        }
    }
}

/// Rings the doorbell when it is let go of, if it has to be rung.
struct BellRope<'a> {
    doorbell: &'a Doorbell,
    pulled: bool,
}

impl BellRope<'_> {
    fn ring(&mut self) {
        if std::mem::take(&mut self.pulled) {
            self.doorbell.ring();
        }
    }
}

impl Drop for BellRope<'_> {
    fn drop(&mut self) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::Side;
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
    fn a_host_that_has_panicked_in_somebody_s_hands_is_taken_from_all() {
        let shared = shared();
        let waiting = {
            let mut access = shared.access().unwrap();
            let handle =
                access.stack.udp_bind("10.0.0.1:9".parse().unwrap(), &Default::default()).unwrap();
            let waiters = access.registry.enter(SocketId::Udp(handle));
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut access = shared.access().unwrap();
                while access.end.is_none() {
                    access.wait(waiters.of(Side::Read), None);
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

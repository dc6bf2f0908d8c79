//! The common part of all sockets: a handle of the host, waiting threads, and timeouts.

use crate::error::Error;
use crate::event_count::EventCount;
use crate::poller::Registration;
use crate::shared::{Access, Shared, State};
use crate::timeouts::{Direction, Timeouts, WaitLimit};
use crate::waiters::{SocketId, Waiters};
use linerate_stack::{Error as HostError, Stack};
use linerate_units::Instant;
use std::fmt;
use std::sync::Arc;
use std::time;

/// A handle by which the host identifies a socket of one kind, such as a connection or a listener.
pub(crate) trait Handle: Copy + fmt::Debug {
    /// Returns the identifier of the socket, which is unique among sockets of all kinds.
    fn id(self) -> SocketId;

    /// Has the socket more data, connections or room for another waiting thread? True if that is
    /// unknown.
    fn has_more(self, stack: &Stack, direction: Direction) -> bool;

    /// Closes the socket.
    fn close(self, access: &mut Access<'_>, shared: &Shared);
}

/// A socket, which is closed when it is dropped.
pub(crate) struct Socket<H: Handle> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: H,
    pub(crate) timeouts: Timeouts,
    waiters: Arc<Waiters>,
}

impl<H: Handle> Socket<H> {
    /// Creates the socket of a new handle.
    pub(crate) fn new(shared: &Arc<Shared>, state: &mut State, handle: H) -> Self {
        let waiters = state.registry.register(handle.id());
        Self::with_waiters(waiters, shared, handle)
    }

    /// Creates the socket of a new handle on one of several shards. The events of the socket are
    /// also counted in `events`, so that a thread can wait for the sockets of all shards.
    pub(crate) fn with_events(
        events: &Arc<EventCount>,
        shared: &Arc<Shared>,
        state: &mut State,
        handle: H,
    ) -> Self {
        let waiters = state.registry.register_with(handle.id(), Arc::clone(events));
        Self::with_waiters(waiters, shared, handle)
    }

    fn with_waiters(waiters: Arc<Waiters>, shared: &Arc<Shared>, handle: H) -> Self {
        Self { shared: Arc::clone(shared), handle, timeouts: Timeouts::default(), waiters }
    }

    /// Reports events to a registration from now on. If the socket is ready already, also reports
    /// that at once.
    ///
    /// # Errors
    /// [`Error::Registered`]; the error of [`Shared::access`].
    pub(crate) fn subscribe(&self, registration: &Arc<Registration>) -> Result<(), Error> {
        let access = self.shared.access()?;
        if !self.waiters.subscribe(registration) {
            return Err(Error::Registered);
        }
        for direction in [Direction::Read, Direction::Write] {
            if access.end.is_some() || self.handle.has_more(&access.stack, direction) {
                registration.notify(direction);
            }
        }
        Ok(())
    }

    /// Ends the registration.
    ///
    /// # Errors
    /// The error of [`Shared::access`].
    pub(crate) fn unsubscribe(&self) -> Result<(), Error> {
        let _access = self.shared.access()?;
        self.waiters.unsubscribe();
        Ok(())
    }

    /// Executes `step` with the host locked. `step` must not wait.
    ///
    /// # Errors
    /// The error of `step`; the error of [`Shared::access`].
    pub(crate) fn call<T, E: Into<Error>>(
        &self,
        step: impl FnOnce(&mut Stack, Instant) -> Result<T, E>,
    ) -> Result<T, Error> {
        let mut access = self.shared.access()?;
        let now = access.now();
        step(&mut access.stack, now).map_err(Into::into)
    }

    /// Executes `step` with the host locked. Then wakes all threads that wait for this socket, so
    /// that they check their conditions again.
    ///
    /// # Errors
    /// Those of [`Socket::call`].
    pub(crate) fn call_and_wake<T, E: Into<Error>>(
        &self,
        step: impl FnOnce(&mut Stack, Instant) -> Result<T, E>,
    ) -> Result<T, Error> {
        let mut access = self.shared.access()?;
        let now = access.now();
        let done = step(&mut access.stack, now).map_err(Into::into);
        self.waiters.wake_all();
        done
    }

    /// Repeats `attempt` until its result is not `WouldBlock`, at most for the socket's timeout.
    ///
    /// # Errors
    /// Those of [`Socket::block_within`].
    pub(crate) fn block<T>(
        &self,
        direction: Direction,
        attempt: impl FnMut(&mut State, Instant) -> Result<T, HostError>,
    ) -> Result<T, Error> {
        self.block_within(direction, self.timeouts.limit(direction), attempt)
    }

    /// Repeats `attempt` until its result is not `WouldBlock`, and waits between the attempts.
    ///
    /// # Errors
    /// The error of `attempt`; `WouldBlock` if `limit` forbids waiting; [`Error::TimedOut`] after
    /// the time in `limit`; the reason why the host has stopped.
    pub(crate) fn block_within<T>(
        &self,
        direction: Direction,
        limit: WaitLimit,
        attempt: impl FnMut(&mut State, Instant) -> Result<T, HostError>,
    ) -> Result<T, Error> {
        let (access, outcome) = self.wait(direction, limit, attempt)?;
        if self.handle.has_more(&access.stack, direction) {
            // An event wakes one thread, but may announce more data, connections or room than this
            // call has used. So the next thread that waits for the same direction is woken.
            self.waiters.of(direction).notify_one();
        }
        match (outcome, access.end) {
            // A network that ends aborts its sockets. The application learns the reason of the
            // network's end, because the abort is only a consequence.
            (Err(HostError::Closed | HostError::Tcp(linerate_tcp::Error::Aborted)), Some(end)) => {
                Err(end.into())
            }
            (outcome, _) => outcome.map_err(Error::from),
        }
    }

    /// Repeats `attempt` until its result is not `WouldBlock`, and waits in between. Returns the
    /// result, and the lock, which is still held.
    fn wait<T>(
        &self,
        direction: Direction,
        limit: WaitLimit,
        mut attempt: impl FnMut(&mut State, Instant) -> Result<T, HostError>,
    ) -> Result<(Access<'_>, Result<T, HostError>), Error> {
        let mut access = self.shared.access()?;
        let mut deadline = None;
        loop {
            if direction == Direction::Write {
                // Once the network has ended, a write fails at once, because its data would never
                // be sent. A read is attempted nevertheless, because data that has been received
                // can still be read.
                access.check_running()?;
            }
            let now = access.now();
            let outcome = attempt(&mut access, now);
            if !matches!(outcome, Err(HostError::WouldBlock)) {
                return Ok((access, outcome));
            }
            access.check_running()?;
            match (limit, deadline) {
                (WaitLimit::NoWait, _) => return Err(HostError::WouldBlock.into()),
                (WaitLimit::Within(timeout), None) => {
                    deadline = time::Instant::now().checked_add(timeout);
                }
                // The deadline is checked only after a failed attempt, and each wait is followed by
                // an attempt. So data that arrived before the deadline is not missed.
                (WaitLimit::Within(timeout), Some(at)) if at <= time::Instant::now() => {
                    return Err(Error::TimedOut(timeout));
                }
                (WaitLimit::Within(_) | WaitLimit::Forever, _) => {}
            }
            access.wait(self.waiters.of(direction), deadline);
        }
    }
}

impl<H: Handle> Drop for Socket<H> {
    fn drop(&mut self) {
        self.waiters.unsubscribe();
        if let Ok(mut access) = self.shared.access() {
            self.handle.close(&mut access, &self.shared);
            // `close` may wait for the linger time, and the network may end meanwhile. A network
            // that ends aborts all registered sockets, so the socket is unregistered only now.
            access.registry.remove(self.handle.id());
        }
    }
}

impl<H: Handle> fmt::Debug for Socket<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("handle", &self.handle)
            .field("timeouts", &self.timeouts)
            .finish()
    }
}

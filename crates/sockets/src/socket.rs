//! The common part of all sockets: the handle by which the host knows the socket, the threads that
//! wait for it, and its timeouts.

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

    /// Is there still data to read, a connection to accept, or room to write, so that another
    /// waiting thread can continue? Also true if that is unknown.
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
    /// Creates the socket for a handle that the host has just returned.
    pub(crate) fn new(shared: &Arc<Shared>, state: &mut State, handle: H) -> Self {
        let waiters = state.registry.register(handle.id());
        Self::with_waiters(waiters, shared, handle)
    }

    /// Creates the socket of a new handle on one of several shards. Events of the socket also
    /// increment `events`. If the sockets of all shards have one event count, a thread can wait for
    /// all of them at once.
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

    /// Starts reporting events of the socket to its registration with a poller. If the socket is
    /// already ready, reports that at once.
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

    /// Stops reporting events of the socket to its registration with a poller, if there is one.
    ///
    /// # Errors
    /// The error of [`Shared::access`].
    pub(crate) fn unsubscribe(&self) -> Result<(), Error> {
        let _access = self.shared.access()?;
        self.waiters.unsubscribe();
        Ok(())
    }

    /// Locks the host, and executes `step`, which must not wait.
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

    /// Executes `step` like [`Socket::call`]. Then wakes all threads that wait for this socket,
    /// because `step` may have fulfilled their conditions.
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

    /// Repeats `attempt` until its result is not `WouldBlock`, at most for the timeout that the
    /// application has set for this direction.
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

    /// Repeats `attempt` until its result is not `WouldBlock`. Between two attempts, waits for an
    /// event of the socket in this direction, at most for the time in `limit`.
    ///
    /// # Errors
    /// The error of `attempt`; `WouldBlock` if `limit` forbids waiting; [`Error::TimedOut`] after
    /// the time in `limit`; the reason why the host has stopped, if it has.
    pub(crate) fn block_within<T>(
        &self,
        direction: Direction,
        limit: WaitLimit,
        attempt: impl FnMut(&mut State, Instant) -> Result<T, HostError>,
    ) -> Result<T, Error> {
        let (access, outcome) = self.wait(direction, limit, attempt)?;
        if self.handle.has_more(&access.stack, direction) {
            // An event wakes only one thread, which is this one. The event may announce more data,
            // connections or room than this call has used. So the next thread that waits for this
            // direction is woken.
            self.waiters.of(direction).notify_one();
        }
        match (outcome, access.end) {
            // A network that ends aborts its sockets, so the error of the call is only a
            // consequence. The application gets the reason why the network has ended instead.
            (Err(HostError::Closed | HostError::Tcp(linerate_tcp::Error::Aborted)), Some(end)) => {
                Err(end.into())
            }
            (outcome, _) => outcome.map_err(Error::from),
        }
    }

    /// Repeats `attempt` like [`Socket::block_within`]. Returns its result together with the lock,
    /// which is still held.
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
                // After the network has ended, a write fails without an attempt, because its data
                // would never be sent. A read is attempted, because data that has been received can
                // still be read.
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
                // The deadline is checked only after an attempt that would block. So the last
                // attempt is after the deadline, and data that arrived in time is read.
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
            // The socket is unregistered only after `close`, which may wait for the linger time. If
            // the network ends meanwhile, it aborts all registered sockets, and must also abort
            // this one.
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

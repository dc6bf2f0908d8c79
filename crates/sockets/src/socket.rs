//! What sockets of all kinds have in common: a handle of the host's, a place to wait, and patience.

use crate::error::Error;
use crate::gate::Gate;
use crate::patience::{Limit, Patience, Side};
use crate::shared::{Access, Shared, State};
use crate::waiters::{SocketId, Waiters};
use linerate_stack::{Error as HostError, Stack};
use linerate_units::Instant;
use std::fmt;
use std::sync::Arc;
use std::time;

/// A socket of one kind, by its handle on the host.
pub(crate) trait Handle: Copy + fmt::Debug {
    /// The same among sockets of all kinds.
    fn id(self) -> SocketId;

    /// Is there something for one more thread that waits on this side? If that cannot be told, yes.
    fn has_more(self, stack: &Stack, side: Side) -> bool;

    /// Lets go of it.
    fn close(self, access: &mut Access<'_>, shared: &Shared);
}

/// A socket. The last clone of what holds it closes it.
pub(crate) struct Socket<H: Handle> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: H,
    pub(crate) patience: Patience,
    waiters: Arc<Waiters>,
}

impl<H: Handle> Socket<H> {
    /// The socket of a handle that the host has just given.
    pub(crate) fn new(shared: &Arc<Shared>, state: &mut State, handle: H) -> Self {
        let waiters = state.registry.enter(handle.id());
        Self::waited_for_by(waiters, shared, handle)
    }

    /// One of several sockets, for which threads wait at `gate`.
    pub(crate) fn behind(
        gate: &Arc<Gate>,
        shared: &Arc<Shared>,
        state: &mut State,
        handle: H,
    ) -> Self {
        let waiters = state.registry.enter_by(handle.id(), Arc::clone(gate));
        Self::waited_for_by(waiters, shared, handle)
    }

    fn waited_for_by(waiters: Arc<Waiters>, shared: &Arc<Shared>, handle: H) -> Self {
        Self { shared: Arc::clone(shared), handle, patience: Patience::default(), waiters }
    }

    /// Does something that never has to wait.
    ///
    /// # Errors
    /// What `step` says, or why the host is not to be touched.
    pub(crate) fn call<T, E: Into<Error>>(
        &self,
        step: impl FnOnce(&mut Stack, Instant) -> Result<T, E>,
    ) -> Result<T, Error> {
        let mut access = self.shared.access()?;
        let now = access.now();
        step(&mut access.stack, now).map_err(Into::into)
    }

    /// Does something that concerns every thread that waits for this socket: all of them look again.
    ///
    /// # Errors
    /// As for [`Socket::call`].
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

    /// Does something as soon as it can be done, within the socket's own limit.
    ///
    /// # Errors
    /// As for [`Socket::block_within`].
    pub(crate) fn block<T>(
        &self,
        side: Side,
        attempt: impl FnMut(&mut State, Instant) -> Result<T, HostError>,
    ) -> Result<T, Error> {
        self.block_within(side, self.patience.limit(side), attempt)
    }

    /// Repeats `attempt` until it answers something else than `WouldBlock`, and waits in between.
    ///
    /// # Errors
    /// What `attempt` says; `WouldBlock` or [`Error::TimedOut`] when patience is at its end; why the
    /// host has ended.
    pub(crate) fn block_within<T>(
        &self,
        side: Side,
        limit: Limit,
        attempt: impl FnMut(&mut State, Instant) -> Result<T, HostError>,
    ) -> Result<T, Error> {
        let (access, outcome) = self.wait(side, limit, attempt)?;
        if self.handle.has_more(&access.stack, side) {
            // The rest is for the next thread that waits, if there is any.
            self.waiters.of(side).notify_one();
        }
        match (outcome, access.end) {
            // What the end of the network did to the socket is told as that end.
            (Err(HostError::Closed | HostError::Tcp(linerate_tcp::Error::Aborted)), Some(end)) => {
                Err(end.into())
            }
            (outcome, _) => outcome.map_err(Error::from),
        }
    }

    /// Waits until `attempt` answers.
    fn wait<T>(
        &self,
        side: Side,
        limit: Limit,
        mut attempt: impl FnMut(&mut State, Instant) -> Result<T, HostError>,
    ) -> Result<(Access<'_>, Result<T, HostError>), Error> {
        let mut access = self.shared.access()?;
        let mut deadline = None;
        loop {
            if side == Side::Write {
                // What had arrived can still be read, but what is written now would never leave.
                access.check_running()?;
            }
            let now = access.now();
            let outcome = attempt(&mut access, now);
            if !matches!(outcome, Err(HostError::WouldBlock)) {
                return Ok((access, outcome));
            }
            access.check_running()?;
            match (limit, deadline) {
                (Limit::None, _) => return Err(HostError::WouldBlock.into()),
                (Limit::Within(timeout), None) => {
                    deadline = time::Instant::now().checked_add(timeout);
                }
                // The deadline had passed before this attempt.
                (Limit::Within(timeout), Some(at)) if at <= time::Instant::now() => {
                    return Err(Error::TimedOut(timeout));
                }
                (Limit::Within(_) | Limit::Endless, _) => {}
            }
            access.wait(self.waiters.of(side), deadline);
        }
    }
}

impl<H: Handle> Drop for Socket<H> {
    fn drop(&mut self) {
        if let Ok(mut access) = self.shared.access() {
            self.handle.close(&mut access, &self.shared);
            // Not before: one that lingers ends with the network as the others do.
            access.registry.leave(self.handle.id());
        }
    }
}

impl<H: Handle> fmt::Debug for Socket<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("handle", &self.handle)
            .field("patience", &self.patience)
            .finish()
    }
}

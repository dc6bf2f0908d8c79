//! The common part of all sockets: the identifier of a socket of the host, which is closed on drop.

use crate::error::{End, Error};
use crate::host::{Net, State};
use crate::waiters::{Direction, SocketId};
use linerate_stack::{Error as HostError, Stack};
use linerate_units::Instant;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use tokio::io::{Interest, Ready};

/// A socket of a host. Dropping it closes the socket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) net: Net,
    id: SocketId,
}

impl Socket {
    /// Opens a socket with `open`, and registers it, so that tasks can wait for it.
    pub(crate) fn open<H: Copy>(
        net: &Net,
        id: fn(H) -> SocketId,
        open: impl FnOnce(&mut Stack, Instant) -> Result<H, HostError>,
    ) -> io::Result<(Self, H)> {
        let handle = net.call(|state, now| -> Result<H, Error> {
            state.check_running()?;
            let handle = open(&mut state.stack, now)?;
            state.registry.insert(id(handle));
            Ok(handle)
        })?;
        Ok((Self { net: net.clone(), id: id(handle) }, handle))
    }

    /// Creates the `Socket` of a handle that is registered already.
    pub(crate) fn of(net: &Net, id: SocketId) -> Self {
        Self { net: net.clone(), id }
    }

    /// Creates the `Socket` of a handle that the host has opened, and registers it.
    pub(crate) fn adopt(net: &Net, id: SocketId) -> Self {
        net.call(|state, _| state.registry.insert(id));
        Self { net: net.clone(), id }
    }

    /// Executes `step` once on the locked host. Returns its error to the caller, even if it is
    /// `WouldBlock`, without registering a task.
    pub(crate) fn call<T>(
        &self,
        step: impl FnOnce(&mut Stack, Instant) -> Result<T, HostError>,
    ) -> io::Result<T> {
        let result = self.net.call(|state, now| {
            state.check_usable()?;
            Ok(step(&mut state.stack, now)?)
        });
        result.map_err(|error: Error| error.into())
    }

    /// Executes `step` once, without registering a task. If a write would block, the socket counts
    /// as not writable until the next event that reports room.
    pub(crate) fn attempt<T>(
        &self,
        direction: Direction,
        step: impl FnOnce(&mut Stack, Instant) -> Result<T, HostError>,
    ) -> io::Result<T> {
        let result = self.net.call(|state, now| self.step(state, now, direction, step));
        Ok(result?)
    }

    /// Executes `step` once. If it would block, the task is woken at the next event in this
    /// direction.
    pub(crate) fn poll<T>(
        &self,
        direction: Direction,
        context: &Context<'_>,
        step: impl FnOnce(&mut Stack, Instant) -> Result<T, HostError>,
    ) -> Poll<io::Result<T>> {
        let result = self.net.call(|state, now| {
            let result = self.step(state, now, direction, step);
            if matches!(result, Err(Error::Host(HostError::WouldBlock))) {
                state.registry.wait(self.id, direction, context.waker());
            }
            result
        });
        match result {
            Err(Error::Host(HostError::WouldBlock)) => Poll::Pending,
            result => Poll::Ready(result.map_err(Into::into)),
        }
    }

    /// Executes `step` on the locked host. If the host has stopped, errors that result from the
    /// stop are replaced by the reason for the stop.
    fn step<T>(
        &self,
        state: &mut State,
        now: Instant,
        direction: Direction,
        step: impl FnOnce(&mut Stack, Instant) -> Result<T, HostError>,
    ) -> Result<T, Error> {
        match (direction, state.end) {
            // After the host has ended, a write fails here, because its data would never be sent. A
            // read is still attempted, because received data can still be read. After a panic, a
            // read fails here as well.
            (Direction::Write, Some(end)) | (_, Some(end @ End::Panicked)) => {
                return Err(end.into());
            }
            _ => {}
        }
        match (step(&mut state.stack, now), state.end) {
            (
                Err(
                    HostError::WouldBlock
                    | HostError::Closed
                    | HostError::Tcp(linerate_tcp::Error::Aborted),
                ),
                Some(end),
            ) => Err(end.into()),
            (Err(HostError::WouldBlock), None) => {
                if direction == Direction::Write {
                    state.registry.note_refused_write(self.id);
                }
                Err(HostError::WouldBlock.into())
            }
            (result, _) => Ok(result?),
        }
    }

    /// Repeats `step` until it does not block. Dropping the future loses no data: the step takes
    /// effect in the poll that returns its result.
    pub(crate) async fn wait<T>(
        &self,
        direction: Direction,
        mut step: impl FnMut(&mut Stack, Instant) -> Result<T, HostError>,
    ) -> io::Result<T> {
        poll_fn(|context| self.poll(direction, context, &mut step)).await
    }

    /// Returns the readiness in the directions of `interest`. `look` determines everything except
    /// whether there is room to write. A refused write makes the socket not writable until the next
    /// event that reports room, as in tokio.
    pub(crate) fn readiness(
        &self,
        interest: Interest,
        look: impl FnOnce(&Stack) -> Ready,
    ) -> Ready {
        self.net.call(|state, _| self.look(state, interest, look))
    }

    /// Returns the readiness in the directions of `interest`. If the socket is ready in none, the
    /// task is woken at the next event.
    pub(crate) fn poll_ready(
        &self,
        interest: Interest,
        context: &Context<'_>,
        look: impl FnOnce(&Stack) -> Ready,
    ) -> Poll<Ready> {
        self.net.call(|state, _| {
            let ready = self.look(state, interest, look);
            if !ready.is_empty() {
                return Poll::Ready(ready);
            }
            if interest.is_readable() {
                state.registry.wait(self.id, Direction::Read, context.waker());
            }
            if interest.is_writable() {
                state.registry.wait(self.id, Direction::Write, context.waker());
            }
            Poll::Pending
        })
    }

    fn look(&self, state: &State, interest: Interest, look: impl FnOnce(&Stack) -> Ready) -> Ready {
        let ready = match state.end {
            // After the end of the host calls fail at once, so the socket is ready in both
            // directions.
            Some(_) => Ready::READABLE | Ready::WRITABLE | Ready::READ_CLOSED | Ready::WRITE_CLOSED,
            None if state.registry.is_write_blocked(self.id) => look(&state.stack),
            None => look(&state.stack) | Ready::WRITABLE,
        };
        let mut asked = Ready::EMPTY;
        if interest.is_readable() {
            asked |= ready & (Ready::READABLE | Ready::READ_CLOSED);
        }
        if interest.is_writable() {
            asked |= ready & (Ready::WRITABLE | Ready::WRITE_CLOSED);
        }
        asked
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.net.call(|state, now| {
            state.registry.remove(self.id);
            if state.check_usable().is_err() {
                return;
            }
            // Only this socket has the handle. The call therefore fails only for a listener that
            // the end of the host has already closed, and that error is ignored.
            let _ = match self.id {
                SocketId::Tcp(handle) => state.stack.tcp_close(now, handle),
                SocketId::Listen(handle) => state.stack.tcp_listen_close(now, handle),
                SocketId::Udp(handle) => state.stack.udp_close(handle),
            };
        });
    }
}

//! Closing a connection when its last clone is dropped, with `SO_LINGER`.

use crate::shared::{Access, Shared};
use crate::socket::Handle;
use crate::timeouts::Direction;
use crate::waiters::SocketId;
use linerate_stack::{Stack, TcpHandle};
use linerate_tcp::State;
use std::time::{self, Duration};

impl Handle for TcpHandle {
    fn id(self) -> SocketId {
        SocketId::Tcp(self)
    }

    fn has_more(self, stack: &Stack, direction: Direction) -> bool {
        stack.tcp(self).is_some_and(|connection| match direction {
            Direction::Read => connection.readable_bytes() > 0 || connection.is_at_end_of_stream(),
            Direction::Write => connection.writable_bytes() > 0 || !connection.state().may_write(),
        })
    }

    fn close(self, access: &mut Access<'_>, shared: &Shared) {
        let is_in_time = wait_for_acknowledgement(self, access, shared);
        let now = access.now();
        // If `is_in_time` is false, data was still unacknowledged at the end of the linger time, so
        // the connection is reset. Both calls fail only if the handle was closed before. That is
        // impossible, because no other socket has this handle.
        let _ = if is_in_time {
            access.stack.tcp_close(now, self)
        } else {
            access.stack.tcp_abort(now, self)
        };
    }
}

/// If the application has set a linger time, closes the sending direction and waits. Returns true
/// if the peer has acknowledged all data and our FIN, or if there is no linger time. Returns false
/// if the linger time has passed or the network has ended before that.
fn wait_for_acknowledgement(handle: TcpHandle, access: &mut Access<'_>, shared: &Shared) -> bool {
    let Some(linger) = linger_of(handle, &access.stack) else { return true };
    let now = access.now();
    // An error means that the application has already shut the sending direction down. The FIN was
    // queued at that time, so the error is ignored.
    let _ = access.stack.tcp_shutdown_write(now, handle);
    let deadline = time::Instant::now().checked_add(linger);
    let mut in_time = true;
    while in_time && access.end.is_none() && has_unacknowledged(handle, &access.stack) {
        in_time = access.wait(shared.turned(), deadline);
    }
    !has_unacknowledged(handle, &access.stack)
}

/// Returns the linger time for which closing waits. Returns `None` if closing does not wait: the
/// time is unset or zero, or there is unread data, because of which closing resets the connection.
fn linger_of(handle: TcpHandle, stack: &Stack) -> Option<Duration> {
    let connection = stack.tcp(handle).filter(|connection| connection.readable_bytes() == 0)?;
    let linger: Duration = connection.linger()?.into();
    Some(linger).filter(|linger| !linger.is_zero())
}

fn has_unacknowledged(handle: TcpHandle, stack: &Stack) -> bool {
    let state = stack.tcp(handle).map_or(State::Closed, |connection| connection.state());
    !matches!(state, State::FinWait2 | State::TimeWait | State::Closed | State::SynSent)
}

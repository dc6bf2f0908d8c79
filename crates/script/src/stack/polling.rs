//! Readiness of sockets, as `poll` and `ioctl` report it.

use super::StackMachine;
use super::error_queue::ErrorQueue;
use super::sockets::Socket;
use crate::machine::{Answer, Output};
use crate::syntax::{Errno, PollEntry};
use linerate_tcp::State;
use linerate_units::Duration;

impl StackMachine {
    pub(super) fn poll(
        &self,
        entries: &[PollEntry],
        timeout: i64,
        began: Duration,
    ) -> Option<Result<Answer, Errno>> {
        let found: Vec<i64> = entries.iter().map(|entry| self.found(entry)).collect();
        let count = found.iter().filter(|&&found| found != 0).count();
        if count == 0 && self.is_before(timeout, began) {
            return None;
        }
        Some(Ok(Answer::of_count(count, Output::Events(found))))
    }

    /// Returns whether a call that started at `began` has not timed out. `timeout` is in
    /// milliseconds; a negative timeout is unlimited.
    pub(super) fn is_before(&self, timeout: i64, began: Duration) -> bool {
        let limit = u64::try_from(timeout).ok().map(|millis| began + Duration::from_millis(millis));
        limit.is_none_or(|limit| self.now.since(self.begin) < limit)
    }

    /// Returns the `revents` of one socket.
    pub(super) fn found(&self, entry: &PollEntry) -> i64 {
        const IN: i64 = 1;
        const OUT: i64 = 4;
        const ERROR: i64 = 8;
        const HANG_UP: i64 = 0x10;
        const INVALID: i64 = 0x20;
        const PEER_CLOSED: i64 = 0x2000;
        let flag = |bit, is: bool| if is { bit } else { 0 };
        match self.sockets.get(entry.fd) {
            None => INVALID,
            Some(Socket::Epoll(_)) => 0,
            Some(Socket::Datagrams { handle, .. }) => {
                let is_readable = handle
                    .is_some_and(|handle| self.host.stack().udp_is_readable(handle) == Ok(true));
                (flag(IN, is_readable) | OUT) & entry.events
            }
            Some(Socket::Unconnected { .. }) => HANG_UP | OUT & entry.events,
            Some(Socket::Listener { handle, .. }) => {
                let listener = self.host.stack().tcp_listen_statistics(*handle);
                flag(IN, listener.is_ok_and(|counted| counted.acceptable > 0)) & entry.events
            }
            Some(Socket::Connection { handle, connecting, is_error_taken, .. }) => {
                let Some(connection) = self.host.stack().tcp(*handle) else { return INVALID };
                let state = connection.state();
                let queue = self.error_queues.get(&entry.fd);
                let has_notices = queue.is_some_and(ErrorQueue::is_readable);
                let ended = connection.is_at_end_of_stream();
                let closed = state == State::Closed;
                // A connection that this host opens becomes writable when the handshake is
                // complete. A connection that it accepts by Fast Open is writable earlier, in the
                // state SYN-RECEIVED (RFC 7413 §4.2). `connecting` tells them apart.
                let opening = *connecting && matches!(state, State::SynSent | State::SynReceived);
                let both = closed
                    || ended && matches!(state, State::TimeWait | State::LastAck | State::Closing);
                let wanted = flag(IN, connection.readable_bytes() > 0 || ended)
                    | flag(OUT, !opening && (connection.writable_bytes() > 0 || both || closed))
                    | flag(PEER_CLOSED, ended);
                wanted & entry.events
                    | flag(ERROR, connection.error().is_some() && !is_error_taken || has_notices)
                    | flag(HANG_UP, both)
            }
        }
    }

    pub(super) fn ioctl(&self, fd: i32, request: i64) -> Result<Answer, Errno> {
        const UNREAD: i64 = 0x541b;
        const UNACKNOWLEDGED: i64 = 0x5411;
        const UNSENT: i64 = 0x894b;
        let connection = self.connection(fd)?;
        let number = match request {
            UNREAD => connection.readable_bytes() as u64,
            UNACKNOWLEDGED => connection.unacknowledged_bytes() as u64,
            UNSENT => connection.information().unsent.into(),
            _ => return Err(Errno::INVAL),
        };
        let output = Output::Number(i64::try_from(number).unwrap_or(i64::MAX));
        Ok(Answer { result: Ok(0), output })
    }
}

//! Epoll instances, and the sockets that they watch.

use crate::machine::Answer;
use crate::syntax::{EpollEvent, EpollOperation, Errno};
use std::collections::BTreeMap;

const ONE_SHOT: i64 = 1 << 30;
const EDGE_TRIGGERED: i64 = 1 << 31;

/// The sockets that an epoll instance watches.
#[derive(Debug, Default)]
pub(super) struct Epoll {
    watches: BTreeMap<i32, Watch>,
}

/// A socket that an epoll instance watches, with the requested events.
#[derive(Debug)]
struct Watch {
    event: EpollEvent,
    /// Whether events of the socket may be reported. With `EPOLLONESHOT`, a report disarms the
    /// socket, until `EPOLL_CTL_MOD` arms it again.
    is_armed: bool,
    /// Whether an event has occurred since the most recent report of the socket (`EPOLLET`).
    is_new: bool,
}

impl Epoll {
    /// Notes that an event has occurred on a socket.
    pub(super) fn note(&mut self, fd: i32) {
        if let Some(watch) = self.watches.get_mut(&fd) {
            watch.is_new = true;
        }
    }

    /// Stops watching a socket, because it was closed.
    pub(super) fn forget(&mut self, fd: i32) {
        self.watches.remove(&fd);
    }

    /// Executes `epoll_ctl`: adds, changes or removes a socket.
    pub(super) fn control(
        &mut self,
        operation: EpollOperation,
        fd: i32,
        event: EpollEvent,
    ) -> Result<Answer, Errno> {
        let is_known = self.watches.contains_key(&fd);
        match operation {
            EpollOperation::Add if is_known => return Err(Errno::EXIST),
            EpollOperation::Modify | EpollOperation::Delete if !is_known => {
                return Err(Errno::NOENT);
            }
            EpollOperation::Delete => self.forget(fd),
            EpollOperation::Add | EpollOperation::Modify => {
                self.watches.insert(fd, Watch { event, is_armed: true, is_new: true });
            }
        }
        Ok(Answer::of(0))
    }

    /// Returns the sockets whose readiness `epoll_wait` must check now, each with the events
    /// requested for it. These are the armed sockets, except edge-triggered ones without an event
    /// since their last report.
    pub(super) fn due(&self) -> impl Iterator<Item = (i32, EpollEvent)> {
        let is_due = |watch: &Watch| {
            watch.is_armed && (watch.is_new || watch.event.events & EDGE_TRIGGERED == 0)
        };
        let watches = self.watches.iter().filter(move |(_, watch)| is_due(watch));
        watches.map(|(&fd, watch)| (fd, watch.event))
    }

    /// Notes that a socket has been reported.
    pub(super) fn mark_reported(&mut self, fd: i32) {
        if let Some(watch) = self.watches.get_mut(&fd) {
            watch.is_new = false;
            watch.is_armed = watch.event.events & ONE_SHOT == 0;
        }
    }
}

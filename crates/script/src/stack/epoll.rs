//! `epoll` over the sockets of linerate's host.

use super::StackMachine;
use super::sockets::Socket;
use crate::machine::{Answer, Output};
use crate::syntax::{EpollEvent, EpollOperation, Errno, PollEntry};
use linerate_units::Duration;
use std::collections::BTreeMap;

const ONE_SHOT: i64 = 1 << 30;
const EDGE_TRIGGERED: i64 = 1 << 31;

/// The sockets that an epoll instance watches.
#[derive(Debug, Default)]
pub(super) struct Epoll {
    watches: BTreeMap<i32, Watch>,
}

/// A socket that is watched.
#[derive(Debug)]
struct Watch {
    event: EpollEvent,
    /// Has the socket not been reported yet, or may it be reported again (no `EPOLLONESHOT`)?
    is_armed: bool,
    /// Has something happened since the last report (`EPOLLET`)?
    is_new: bool,
}

impl Epoll {
    /// Notes an event of a socket.
    pub(super) fn note(&mut self, fd: i32) {
        if let Some(watch) = self.watches.get_mut(&fd) {
            watch.is_new = true;
        }
    }

    /// Removes a closed socket.
    pub(super) fn forget(&mut self, fd: i32) {
        self.watches.remove(&fd);
    }

    fn control(
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
}

impl StackMachine {
    /// Creates an epoll instance.
    pub(super) fn epoll_create(&mut self, name: i32) -> Answer {
        self.sockets.insert(name, Socket::Epoll(Epoll::default()), false);
        Answer::of(name.into())
    }

    /// Adds, changes or removes a socket of an instance.
    pub(super) fn epoll_control(
        &mut self,
        epoll: i32,
        operation: EpollOperation,
        fd: i32,
        event: EpollEvent,
    ) -> Result<Answer, Errno> {
        if self.sockets.get(fd).is_none() {
            return Err(Errno::BADF);
        }
        match self.sockets.get_mut(epoll) {
            None => Err(Errno::BADF),
            Some(Socket::Epoll(watcher)) if epoll != fd => watcher.control(operation, fd, event),
            Some(_) => Err(Errno::INVAL),
        }
    }

    /// Returns the events of the sockets; `None` to wait.
    pub(super) fn epoll_wait(
        &mut self,
        epoll: i32,
        most: usize,
        timeout: i64,
        began: Duration,
    ) -> Option<Result<Answer, Errno>> {
        let watches = match self.sockets.get(epoll) {
            None => return Some(Err(Errno::BADF)),
            Some(Socket::Epoll(watcher)) => &watcher.watches,
            Some(_) => return Some(Err(Errno::INVAL)),
        };
        let is_due = |watch: &Watch| {
            watch.is_armed && (watch.is_new || watch.event.events & EDGE_TRIGGERED == 0)
        };
        let found = watches.iter().filter(|&(_, watch)| is_due(watch)).map(|(&fd, watch)| {
            let entry = PollEntry { fd, events: watch.event.events, revents: 0 };
            (fd, EpollEvent { events: self.found(&entry), data: watch.event.data })
        });
        let ready: Vec<_> = found.filter(|(_, event)| event.events != 0).take(most).collect();
        if ready.is_empty() && self.is_before(timeout, began) {
            return None;
        }
        if let Some(Socket::Epoll(watcher)) = self.sockets.get_mut(epoll) {
            for (fd, _) in &ready {
                if let Some(watch) = watcher.watches.get_mut(fd) {
                    watch.is_new = false;
                    watch.is_armed = watch.event.events & ONE_SHOT == 0;
                }
            }
        }
        let count = i64::try_from(ready.len()).unwrap_or(i64::MAX);
        let events = ready.into_iter().map(|(_, event)| event).collect();
        Some(Ok(Answer { result: Ok(count), output: Output::Epoll(events) }))
    }
}

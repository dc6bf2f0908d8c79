//! Executes the calls of `epoll` on the sockets of linerate's host.

use super::StackMachine;
use super::epoll::Epoll;
use super::sockets::Socket;
use crate::machine::{Answer, Output};
use crate::syntax::{EpollEvent, EpollOperation, Errno, PollEntry};
use linerate_units::Duration;

impl StackMachine {
    /// Creates an epoll instance.
    pub(super) fn epoll_create(&mut self, name: i32) -> Answer {
        self.sockets.insert(name, Socket::Epoll(Epoll::default()), false);
        Answer::of(name.into())
    }

    /// Executes `epoll_ctl`: adds, changes or removes a socket of an epoll instance.
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

    /// Executes an `epoll_wait` that started at `began`, and returns at most `most` events. Returns
    /// `None` if the call must wait, because there is no event and it has not timed out.
    pub(super) fn epoll_wait(
        &mut self,
        epoll: i32,
        most: usize,
        timeout: i64,
        began: Duration,
    ) -> Option<Result<Answer, Errno>> {
        let watcher = match self.sockets.get(epoll) {
            None => return Some(Err(Errno::BADF)),
            Some(Socket::Epoll(watcher)) => watcher,
            Some(_) => return Some(Err(Errno::INVAL)),
        };
        let found = watcher.due().map(|(fd, EpollEvent { events, data })| {
            let entry = PollEntry { fd, events, revents: 0 };
            (fd, EpollEvent { events: self.found(&entry), data })
        });
        let ready: Vec<_> = found.filter(|(_, event)| event.events != 0).take(most).collect();
        if ready.is_empty() && self.is_before(timeout, began) {
            return None;
        }
        if let Some(Socket::Epoll(watcher)) = self.sockets.get_mut(epoll) {
            ready.iter().for_each(|&(fd, _)| watcher.mark_reported(fd));
        }
        let events: Vec<_> = ready.into_iter().map(|(_, event)| event).collect();
        Some(Ok(Answer::of_count(events.len(), Output::Epoll(events))))
    }
}

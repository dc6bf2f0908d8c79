//! Parses the arguments of `poll`, `epoll_ctl` and `epoll_wait`.

use super::arguments::Arguments;
use super::{Call, EpollEvent, EpollOperation, PollEntry, SyntaxError};
use crate::syntax::value::Value;

impl Arguments<'_, '_> {
    /// Parses `poll([{fd=3, events=POLLIN, revents=POLLIN}], 1, 1000)`.
    pub(super) fn poll(&self) -> Result<Call, SyntaxError> {
        let wrong =
            || self.cursor.error("poll takes [{fd=3, events=POLLIN, revents=POLLIN}], 1, 1000");
        let Value::List(list) = &self.list[0] else { return Err(wrong()) };
        let entry = |value: &Value| {
            let Value::Braces(fields) = value else { return Err(wrong()) };
            let field = |name| {
                Value::field(fields, name).map(|value| value.number(self.cursor)).transpose()
            };
            let fd = field("fd")?.and_then(|fd| i32::try_from(fd).ok()).ok_or_else(wrong)?;
            let events = field("events")?.ok_or_else(wrong)?;
            Ok(PollEntry { fd, events, revents: field("revents")?.unwrap_or(0) })
        };
        Ok(Call::Poll {
            entries: list.iter().map(entry).collect::<Result<_, _>>()?,
            timeout: self.number(2)?,
        })
    }

    /// Parses `epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN, fd=4})`.
    pub(super) fn epoll_control(&self) -> Result<Call, SyntaxError> {
        let operation = match self.number(1)? {
            1 => EpollOperation::Add,
            2 => EpollOperation::Delete,
            3 => EpollOperation::Modify,
            _ => {
                return Err(self
                    .cursor
                    .error("epoll_ctl supports EPOLL_CTL_ADD, EPOLL_CTL_MOD and EPOLL_CTL_DEL"));
            }
        };
        let event = match operation {
            EpollOperation::Delete => EpollEvent { events: 0, data: 0 },
            _ => self.epoll_event(&self.list[3])?,
        };
        Ok(Call::EpollControl { epoll: self.fd()?, operation, fd: self.narrow(2)?, event })
    }

    /// Parses `epoll_wait(5, {events=EPOLLIN, fd=4}, 1, 0)`, with a list for several events.
    pub(super) fn epoll_wait(&self) -> Result<Call, SyntaxError> {
        let expected = match &self.list[1] {
            Value::Ignored => None,
            Value::List(list) => Some(
                list.iter().map(|event| self.epoll_event(event)).collect::<Result<Vec<_>, _>>()?,
            ),
            event => Some(vec![self.epoll_event(event)?]),
        };
        let most = usize::try_from(self.number(2)?).ok().filter(|most| (1..=1_024).contains(most));
        let most = most.ok_or_else(|| self.cursor.error("epoll_wait takes 1 to 1024 events"))?;
        Ok(Call::EpollWait { epoll: self.fd()?, expected, most, timeout: self.number(3)? })
    }

    fn epoll_event(&self, value: &Value) -> Result<EpollEvent, SyntaxError> {
        let wrong = || self.cursor.error("an epoll event is written {events=EPOLLIN, fd=4}");
        let Value::Braces(fields) = value else { return Err(wrong()) };
        let field = |name| Value::field(fields, name).map(|value| value.number(self.cursor));
        let events = field("events").ok_or_else(wrong)??;
        let data = ["fd", "u32", "u64", "ptr"].into_iter().find_map(field);
        Ok(EpollEvent { events, data: data.transpose()?.unwrap_or(0) })
    }
}

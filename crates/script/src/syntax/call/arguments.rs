//! Converts the arguments of a system call from text to values.

use super::{Call, MAX_TRANSFER, OptionValue, SocketOption, SyntaxError, Transfer};
use crate::syntax::cursor::Cursor;
use crate::syntax::names::constant;
use crate::syntax::value::Value;

/// A system call whose arguments are being converted.
pub(super) struct Arguments<'a, 'b> {
    pub(super) name: &'a str,
    pub(super) list: &'a [Value],
    pub(super) cursor: &'a Cursor<'b>,
}

impl Arguments<'_, '_> {
    /// Returns the system call with its arguments.
    pub(super) fn call(&self) -> Result<Call, SyntaxError> {
        let nonblocking = |flags: i64| flags & 0o4000 != 0;
        Ok(match (self.name, self.list.len()) {
            ("socket", 3) => self.socket()?,
            ("bind", 3) => {
                Call::Bind { fd: self.fd()?, address: self.list[1].address(self.cursor)? }
            }
            ("listen", 2) => Call::Listen { fd: self.fd()?, backlog: self.narrow(1)? },
            ("accept", 3) => Call::Accept { fd: self.fd()?, nonblocking: false },
            ("accept4", 4) => {
                Call::Accept { fd: self.fd()?, nonblocking: nonblocking(self.number(3)?) }
            }
            ("connect", 3) => {
                Call::Connect { fd: self.fd()?, address: self.list[1].address(self.cursor)? }
            }
            ("read", 3) | ("recv", 4) | ("recvfrom", 6) => Call::Read(self.transfer()?),
            ("write", 3) | ("send", 4) => Call::Write(self.transfer()?),
            ("sendto", 6) => Call::Write(Transfer {
                address: self.list[4].address(self.cursor)?,
                ..self.transfer()?
            }),
            ("readv", 3) => Call::Read(self.vector(1, 0)?),
            ("writev", 3) => Call::Write(self.vector(1, 0)?),
            ("recvmsg", 3) => Call::Read(self.message()?),
            ("sendmsg", 3) => Call::Write(self.message()?),
            ("close", 1) => Call::Close { fd: self.fd()? },
            ("shutdown", 2) => Call::Shutdown { fd: self.fd()?, how: self.number(1)? },
            ("setsockopt", 5) => {
                Call::SetOption { fd: self.fd()?, option: self.option()?, value: self.value(3)? }
            }
            ("getsockopt", 5) => {
                let value = if self.is_ignored(3) { None } else { Some(self.value(3)?) };
                Call::GetOption { fd: self.fd()?, option: self.option()?, value }
            }
            ("fcntl", 2 | 3) => self.fcntl()?,
            ("poll", 3) => self.poll()?,
            ("epoll_create" | "epoll_create1", 1) => Call::EpollCreate,
            ("epoll_ctl", 4) => self.epoll_control()?,
            ("epoll_wait", 4) => self.epoll_wait()?,
            ("ioctl", 3) => {
                let value = if self.is_ignored(2) { None } else { Some(self.number(2)?) };
                Call::Ioctl { fd: self.fd()?, request: self.number(1)?, value }
            }
            (name, count) => return Err(self.unknown(name, count)),
        })
    }

    fn unknown(&self, name: &str, count: usize) -> SyntaxError {
        const CALLS: [&str; 25] = [
            "socket",
            "bind",
            "listen",
            "accept",
            "accept4",
            "connect",
            "read",
            "recv",
            "recvfrom",
            "readv",
            "recvmsg",
            "write",
            "send",
            "sendto",
            "writev",
            "sendmsg",
            "close",
            "shutdown",
            "fcntl",
            "poll",
            "epoll_create",
            "epoll_create1",
            "epoll_ctl",
            "epoll_wait",
            "ioctl",
        ];
        let known = CALLS.contains(&name) || name.ends_with("sockopt");
        self.cursor.error(if known {
            format!("{name} does not take {count} arguments")
        } else {
            format!(
                "the system call `{name}` is not supported: {}, setsockopt, getsockopt",
                CALLS.join(", ")
            )
        })
    }

    fn socket(&self) -> Result<Call, SyntaxError> {
        let kind = self.number(1)?;
        let protocol = self.number(2)?;
        let datagrams = match (kind & 0xf, protocol) {
            (1, 6 | 0) => false,
            (2, 17 | 0) => true,
            _ => {
                return Err(self.cursor.error(
                    "only sockets of TCP and UDP are supported: SOCK_STREAM, IPPROTO_TCP and \
                     SOCK_DGRAM, IPPROTO_UDP",
                ));
            }
        };
        Ok(Call::Socket { nonblocking: kind & 0o4000 != 0, datagrams })
    }

    pub(super) fn fd(&self) -> Result<i32, SyntaxError> {
        self.narrow(0)
    }

    pub(super) fn number(&self, at: usize) -> Result<i64, SyntaxError> {
        self.list[at].number(self.cursor)
    }

    pub(super) fn narrow(&self, at: usize) -> Result<i32, SyntaxError> {
        let number = self.number(at)?;
        i32::try_from(number).map_err(|_| self.cursor.error(format!("{number} is not an int")))
    }

    fn is_ignored(&self, at: usize) -> bool {
        match &self.list[at] {
            Value::Ignored => true,
            Value::List(list) => matches!(list[..], [Value::Ignored]),
            _ => false,
        }
    }

    fn count(&self, number: i64) -> Result<usize, SyntaxError> {
        let fits = (0..=MAX_TRANSFER).contains(&number).then_some(number);
        let count = fits.and_then(|number| usize::try_from(number).ok());
        count.ok_or_else(|| {
            self.cursor.error(format!("{number} bytes: one call moves at most {MAX_TRANSFER}"))
        })
    }

    /// Converts the arguments `fd, data, count, flags` of a read or write.
    fn transfer(&self) -> Result<Transfer, SyntaxError> {
        let data = match &self.list[1] {
            Value::Ignored => None,
            Value::Text(text) => Some(text.clone().into_bytes()),
            _ => return Err(self.cursor.error("data is written `...` or \"in quotes\"")),
        };
        let flags = if self.list.len() > 3 { self.number(3)? } else { 0 };
        let count = self.count(self.number(2)?)?;
        if data.as_ref().is_some_and(|data| data.len() > count) {
            return Err(self
                .cursor
                .error(format!("the data is longer than the {count} bytes to move")));
        }
        Ok(Transfer { fd: self.fd()?, count, flags, data, address: None, control: None })
    }

    /// Converts the arguments of `readv` or `writev`: `fd, [{..., 1000}, {..., 2000}], 2`.
    fn vector(&self, at: usize, flags: i64) -> Result<Transfer, SyntaxError> {
        let Value::List(parts) = &self.list[at] else {
            return Err(self.cursor.error("a vector is written [{..., 1000}, {..., 2000}]"));
        };
        self.scatter_gather(parts, flags)
    }

    fn scatter_gather(&self, parts: &[Value], flags: i64) -> Result<Transfer, SyntaxError> {
        let mut count = 0_i64;
        for part in parts {
            let Value::Braces(part) = part else {
                return Err(self.cursor.error("a part of a vector is written {..., 1000}"));
            };
            let [Value::Ignored, length] = &part[..] else {
                return Err(self.cursor.error("a part of a vector is written {..., 1000}"));
            };
            count = count.saturating_add(length.number(self.cursor)?);
        }
        Ok(Transfer {
            fd: self.fd()?,
            count: self.count(count)?,
            flags,
            data: None,
            address: None,
            control: None,
        })
    }

    /// Converts the arguments of `recvmsg` or `sendmsg`: `fd, {msg_name(...)=..., msg_iov(1)=[{...,
    /// 1000}], msg_flags=0}, flags`.
    fn message(&self) -> Result<Transfer, SyntaxError> {
        let Value::Braces(fields) = &self.list[1] else {
            return Err(self
                .cursor
                .error("a message is written {msg_name(...)=..., msg_iov(1)=[…], msg_flags=0}"));
        };
        let Some(Value::List(parts)) = Value::field(fields, "msg_iov") else {
            return Err(self.cursor.error("a message needs msg_iov(1)=[{..., 1000}]"));
        };
        let control = self.control(fields)?;
        Ok(Transfer { control, ..self.scatter_gather(parts, self.number(2)?)? })
    }

    fn option(&self) -> Result<SocketOption, SyntaxError> {
        Ok(SocketOption { level: self.number(1)?, name: self.number(2)? })
    }

    fn value(&self, at: usize) -> Result<OptionValue, SyntaxError> {
        match &self.list[at] {
            Value::Text(text) => Ok(OptionValue::Text(text.clone())),
            Value::Braces(fields) => {
                let field =
                    |name| Value::field(fields, name).map(|value| value.number(self.cursor));
                match (field("onoff"), field("linger")) {
                    (Some(on), Some(seconds)) => {
                        Ok(OptionValue::Linger { on: on? != 0, seconds: seconds? })
                    }
                    _ => Err(self
                        .cursor
                        .error("this structure is not supported: write {onoff=1, linger=0}")),
                }
            }
            value => value.number(self.cursor).map(OptionValue::Number),
        }
    }

    fn fcntl(&self) -> Result<Call, SyntaxError> {
        let command = self.number(1)?;
        if Some(command) == constant("F_GETFL") {
            Ok(Call::GetFlags { fd: self.fd()? })
        } else if Some(command) == constant("F_SETFL") && self.list.len() == 3 {
            Ok(Call::SetFlags { fd: self.fd()?, flags: self.number(2)? })
        } else {
            Err(self.cursor.error("fcntl supports F_GETFL and F_SETFL"))
        }
    }
}

//! System calls: `connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)`.

use super::SyntaxError;
use super::cursor::Cursor;
use super::names::{Errno, constant, errno};
use super::value::Value;
use linerate_units::Duration;
use std::net::SocketAddrV4;

/// The most that one call reads or writes: scripts are about segments.
const MOST: i64 = 64 << 20;

/// A call of the application's, and what it should come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEvent {
    /// The call as it is written.
    pub text: String,
    /// The call.
    pub call: Call,
    /// What it returns.
    pub expected: Expected,
    /// For a call that waits: when it returns, as long after its own time.
    pub ends: Option<Ends>,
}

/// When a call that waits returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// So long after the beginning of the script.
    At(Duration),
    /// So long after the moment from which the call's own time is counted.
    After(Duration),
}

/// What a call should return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// `...`: whatever it is.
    Anything,
    /// This number.
    Value(i64),
    /// `-1`, for this reason.
    Error(Errno),
}

/// How bytes are moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The socket.
    pub fd: i32,
    /// Bytes at the most.
    pub count: usize,
    /// `MSG_…`.
    pub flags: i64,
    /// The bytes, where the script says which.
    pub data: Option<Vec<u8>>,
    /// Where to (`sendto`).
    pub address: Option<SocketAddrV4>,
}

/// An option of a socket: its level and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOption {
    /// `SOL_…`.
    pub level: i64,
    /// `SO_…`, `TCP_…`, `IP_…`.
    pub name: i64,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// An `int`.
    Number(i64),
    /// `struct linger`.
    Linger {
        /// Does `close` wait, or reset?
        on: bool,
        /// For how long.
        seconds: i64,
    },
    /// A name, such as that of a congestion control.
    Text(String),
}

/// One socket of a `poll`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollEntry {
    /// The socket.
    pub fd: i32,
    /// What is asked for.
    pub events: i64,
    /// What should be found.
    pub revents: i64,
}

/// A system call. Sockets have the script's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the arguments of the call")]
pub enum Call {
    /// `socket(..., SOCK_STREAM, IPPROTO_TCP)`.
    Socket { nonblocking: bool },
    /// `bind`; without an address, to the usual port of the host's own address.
    Bind { fd: i32, address: Option<SocketAddrV4> },
    /// `listen`.
    Listen { fd: i32, backlog: i32 },
    /// `accept`, `accept4`.
    Accept { fd: i32, nonblocking: bool },
    /// `connect`; without an address, to the usual one.
    Connect { fd: i32, address: Option<SocketAddrV4> },
    /// `read`, `recv`, `recvfrom`, `readv`, `recvmsg`.
    Read(Transfer),
    /// `write`, `send`, `sendto`, `writev`, `sendmsg`.
    Write(Transfer),
    /// `close`.
    Close { fd: i32 },
    /// `shutdown`.
    Shutdown { fd: i32, how: i64 },
    /// `setsockopt`.
    SetOption { fd: i32, option: SocketOption, value: OptionValue },
    /// `getsockopt`; without a value, whatever it is.
    GetOption { fd: i32, option: SocketOption, value: Option<OptionValue> },
    /// `fcntl(…, F_GETFL)`.
    GetFlags { fd: i32 },
    /// `fcntl(…, F_SETFL, …)`.
    SetFlags { fd: i32, flags: i64 },
    /// `poll`; the time is in milliseconds, negative for no end.
    Poll { entries: Vec<PollEntry>, timeout: i64 },
    /// `ioctl`; without a value, whatever it is.
    Ioctl { fd: i32, request: i64, value: Option<i64> },
}

/// Reads a call and what it should return.
pub(super) fn call(cursor: &mut Cursor<'_>, ends: Option<Ends>) -> Result<CallEvent, SyntaxError> {
    cursor.peek();
    let start = cursor.rest();
    let name = cursor.word("a system call, a packet (< or >), `a command` or %{ code }%")?;
    cursor.want("(")?;
    let arguments = cursor.list(")", Value::read)?;
    let call = Arguments { name, list: &arguments, cursor }.call()?;
    cursor.want("=")?;
    let expected = expected(cursor)?;
    let text =
        start[..start.len() - cursor.rest().len()].split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(CallEvent { text, call, expected, ends })
}

/// `0`, `-1 EAGAIN (Resource temporarily unavailable)`, `0x2 (flags O_RDWR)`, `...`.
fn expected(cursor: &mut Cursor<'_>) -> Result<Expected, SyntaxError> {
    if cursor.take("...") {
        return Ok(Expected::Anything);
    }
    let value = Value::read(cursor)?.number(cursor)?;
    let error = match cursor.peek_word() {
        Some(word) if value == -1 && word.starts_with('E') => {
            let found = errno(word);
            let known = cursor.take_word(word).then_some(found).flatten();
            Some(known.ok_or_else(|| {
                cursor.error(format!("{word} is no name of an error that is known here"))
            })?)
        }
        _ => None,
    };
    if cursor.sees("(") {
        cursor.enclosed("(", ")")?;
    }
    match error {
        Some(error) => Ok(Expected::Error(error)),
        None if value == -1 => Err(cursor.error("-1 needs its reason: write `-1 EAGAIN (…)`")),
        None => Ok(Expected::Value(value)),
    }
}

/// The arguments of a call, while they are judged.
struct Arguments<'a, 'b> {
    name: &'a str,
    list: &'a [Value],
    cursor: &'a Cursor<'b>,
}

impl Arguments<'_, '_> {
    fn call(&self) -> Result<Call, SyntaxError> {
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
            ("ioctl", 3) => {
                let value = if self.is_ignored(2) { None } else { Some(self.number(2)?) };
                Call::Ioctl { fd: self.fd()?, request: self.number(1)?, value }
            }
            (name, count) => return Err(self.unknown(name, count)),
        })
    }

    fn unknown(&self, name: &str, count: usize) -> SyntaxError {
        const CALLS: [&str; 21] = [
            "socket", "bind", "listen", "accept", "accept4", "connect", "read", "recv", "recvfrom",
            "readv", "recvmsg", "write", "send", "sendto", "writev", "sendmsg", "close",
            "shutdown", "fcntl", "poll", "ioctl",
        ];
        let known = CALLS.contains(&name) || name.ends_with("sockopt");
        self.cursor.error(if known {
            format!("{name} does not take {count} arguments")
        } else {
            format!(
                "there is no system call `{name}` here: {}, setsockopt, getsockopt",
                CALLS.join(", ")
            )
        })
    }

    fn socket(&self) -> Result<Call, SyntaxError> {
        let kind = self.number(1)?;
        let protocol = self.number(2)?;
        if kind & 0xf != 1 || protocol != 6 && protocol != 0 {
            return Err(self
                .cursor
                .error("only sockets of TCP can be had: SOCK_STREAM, IPPROTO_TCP"));
        }
        Ok(Call::Socket { nonblocking: kind & 0o4000 != 0 })
    }

    fn fd(&self) -> Result<i32, SyntaxError> {
        self.narrow(0)
    }

    fn number(&self, at: usize) -> Result<i64, SyntaxError> {
        self.list[at].number(self.cursor)
    }

    fn narrow(&self, at: usize) -> Result<i32, SyntaxError> {
        let number = self.number(at)?;
        i32::try_from(number).map_err(|_| self.cursor.error(format!("{number} is no int")))
    }

    fn is_ignored(&self, at: usize) -> bool {
        match &self.list[at] {
            Value::Ignored => true,
            Value::List(list) => matches!(list[..], [Value::Ignored]),
            _ => false,
        }
    }

    fn count(&self, number: i64) -> Result<usize, SyntaxError> {
        let fits = (0..=MOST).contains(&number).then_some(number);
        let count = fits.and_then(|number| usize::try_from(number).ok());
        count.ok_or_else(|| {
            self.cursor.error(format!("{number} bytes: from 0 to {MOST} can be moved at once"))
        })
    }

    /// `fd, data, count, flags`.
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
                .error(format!("the data is longer than the {count} bytes that are moved")));
        }
        Ok(Transfer { fd: self.fd()?, count, flags, data, address: None })
    }

    /// `fd, [{..., 1000}, {..., 2000}], 2`.
    fn vector(&self, at: usize, flags: i64) -> Result<Transfer, SyntaxError> {
        let Value::List(parts) = &self.list[at] else {
            return Err(self.cursor.error("a vector is written [{..., 1000}, {..., 2000}]"));
        };
        self.gathered(parts, flags)
    }

    fn gathered(&self, parts: &[Value], flags: i64) -> Result<Transfer, SyntaxError> {
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
        Ok(Transfer { fd: self.fd()?, count: self.count(count)?, flags, data: None, address: None })
    }

    /// `fd, {msg_name(...)=..., msg_iov(1)=[{..., 1000}], msg_flags=0}, flags`.
    fn message(&self) -> Result<Transfer, SyntaxError> {
        let Value::Braces(fields) = &self.list[1] else {
            return Err(self
                .cursor
                .error("a message is written {msg_name(...)=..., msg_iov(1)=[…], msg_flags=0}"));
        };
        if Value::field(fields, "msg_control").is_some() {
            return Err(self.cursor.error("control messages cannot be had here"));
        }
        let Some(Value::List(parts)) = Value::field(fields, "msg_iov") else {
            return Err(self.cursor.error("a message has its msg_iov(1)=[{..., 1000}]"));
        };
        self.gathered(parts, self.number(2)?)
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
                        .error("this structure is not known: {onoff=1, linger=0} is")),
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
            Err(self.cursor.error("fcntl knows F_GETFL and F_SETFL here"))
        }
    }

    /// `poll([{fd=3, events=POLLIN, revents=POLLIN}], 1, 1000)`.
    fn poll(&self) -> Result<Call, SyntaxError> {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CallEvent, SyntaxError> {
        call(&mut Cursor::new(text, 1), None)
    }

    #[test]
    fn calls_are_understood() {
        for (text, expected) in [
            ("socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", Call::Socket { nonblocking: false }),
            ("bind(3, ..., ...) = 0", Call::Bind { fd: 3, address: None }),
            ("fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0", Call::SetFlags { fd: 3, flags: 0o4002 }),
            ("fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)", Call::GetFlags { fd: 3 }),
            (
                "setsockopt(3, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0",
                Call::SetOption {
                    fd: 3,
                    option: SocketOption { level: 1, name: 13 },
                    value: OptionValue::Linger { on: true, seconds: 0 },
                },
            ),
            (
                "poll([{fd=4, events=POLLIN, revents=POLLIN|POLLHUP}], 1, 0) = 1",
                Call::Poll {
                    entries: vec![PollEntry { fd: 4, events: 1, revents: 0x11 }],
                    timeout: 0,
                },
            ),
            (
                "ioctl(4, SIOCINQ, [1000]) = 0",
                Call::Ioctl { fd: 4, request: 0x541b, value: Some(1_000) },
            ),
        ] {
            let read = read(text).unwrap();
            assert_eq!((&read.call, read.text.as_str()), (&expected, text));
        }
    }

    #[test]
    fn what_a_call_should_return_is_understood() {
        for (text, expected) in [
            ("close(3) = 0", Expected::Value(0)),
            ("close(3) = ...", Expected::Anything),
            ("close(3) = -1 EBADF (Bad file descriptor)", Expected::Error(Errno::BADF)),
        ] {
            assert_eq!(read(text).unwrap().expected, expected);
        }
        assert!(read("close(3) = -1").unwrap_err().what.contains("needs its reason"));
    }

    #[test]
    fn vectors_and_messages_are_reads_and_writes() {
        let message = "sendmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 10},{..., 20}], msg_flags=0}, 0) = 30";
        for text in [message, "writev(4, [{..., 10}, {..., 20}], 2) = 30"] {
            let Call::Write(transfer) = read(text).unwrap().call else {
                panic!("{text} is no write")
            };
            assert_eq!((transfer.fd, transfer.count), (4, 30));
        }
    }

    #[test]
    fn what_cannot_be_had_is_refused_with_what_can() {
        for (text, says) in [
            ("splice(3, 4) = 0", "no system call `splice`"),
            ("bind(3) = 0", "does not take 1 arguments"),
            ("socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3", "only sockets of TCP"),
            ("write(4, ..., 99999999999) = 1", "can be moved at once"),
            ("write(4, \"four\", 3) = 3", "longer than"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.what.contains(says), "{text}: {error}");
        }
    }
}

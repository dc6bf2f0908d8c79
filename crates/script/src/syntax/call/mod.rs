//! System calls: `connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)`.

mod arguments;
mod control;
mod polling;

use super::SyntaxError;
use super::cursor::Cursor;
use super::names::{Errno, errno};
use super::value::Value;
use arguments::Arguments;

pub use control::{ControlData, ControlMessage, ExtendedError};
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
    /// Control messages: those that are sent, or that should be received; `None` if the script does
    /// not say.
    pub control: Option<Vec<ControlMessage>>,
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

/// A change to the sockets that an epoll instance watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpollOperation {
    /// `EPOLL_CTL_ADD`.
    Add,
    /// `EPOLL_CTL_MOD`.
    Modify,
    /// `EPOLL_CTL_DEL`.
    Delete,
}

/// `struct epoll_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpollEvent {
    /// `EPOLL…`.
    pub events: i64,
    /// The number that the application gave with them, usually the socket.
    pub data: i64,
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
    /// `epoll_create`.
    EpollCreate,
    /// `epoll_ctl`.
    EpollControl { epoll: i32, operation: EpollOperation, fd: i32, event: EpollEvent },
    /// `epoll_wait`; the time is in milliseconds, negative for no end.
    EpollWait { epoll: i32, expected: Option<Vec<EpollEvent>>, most: usize, timeout: i64 },
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

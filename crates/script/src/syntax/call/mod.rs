//! System calls in scripts: `connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)`.

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
use std::net::SocketAddr;

/// Maximum number of bytes that one call reads or writes.
const MAX_TRANSFER: i64 = 64 << 20;

/// A call of the application, with its expected result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEvent {
    /// The text of the call in the script.
    pub text: String,
    /// The system call and its arguments.
    pub call: Call,
    /// The result that the script expects.
    pub expected: Expected,
    /// Time at which the call returns, if the script gives one. `None` means that the call must
    /// return at once.
    pub ends: Option<ReturnTime>,
}

/// The time at which a waiting call returns, as the script writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnTime {
    /// A time from the start of the script.
    At(Duration),
    /// A time after the event before the call. The start of the call is given relative to the same
    /// event.
    After(Duration),
}

/// The expected result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any result, written `...`.
    Anything,
    /// This number as the return value.
    Value(i64),
    /// The return value `-1` with this error number.
    Error(Errno),
}

/// The arguments of a read or write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Number of the socket.
    pub fd: i32,
    /// Maximum number of bytes to read or write.
    pub count: usize,
    /// The flags of the call, `MSG_…`.
    pub flags: i64,
    /// The data to write or to expect, if the script specifies them.
    pub data: Option<Vec<u8>>,
    /// The destination of a `sendto`; `None` if the call names none.
    pub address: Option<SocketAddr>,
    /// Control messages, sent or expected; `None` if the script does not specify them.
    pub control: Option<Vec<ControlMessage>>,
}

/// A socket option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOption {
    /// Protocol level, `SOL_…`.
    pub level: i64,
    /// Name of the option, `SO_…`, `TCP_…` or `IP_…`.
    pub name: i64,
}

/// The value of a socket option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A number (`int`).
    Number(i64),
    /// A linger time (`struct linger`).
    Linger {
        /// Whether lingering is on. If it is on, `close` waits for at most `seconds` until all data
        /// are acknowledged, or resets the connection if `seconds` is zero.
        on: bool,
        /// The linger time in seconds.
        seconds: i64,
    },
    /// A text, such as the name of a congestion control.
    Text(String),
}

/// A socket in the list of a `poll`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollEntry {
    /// Number of the socket.
    pub fd: i32,
    /// The requested events, `POLL…`.
    pub events: i64,
    /// The events that the script expects to be returned, `POLL…`.
    pub revents: i64,
}

/// An operation of `epoll_ctl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpollOperation {
    /// `EPOLL_CTL_ADD`: watches a socket.
    Add,
    /// `EPOLL_CTL_MOD`: changes the events of a socket.
    Modify,
    /// `EPOLL_CTL_DEL`: stops watching a socket.
    Delete,
}

/// Events of a socket that the application requests from epoll, or that epoll reports to it
/// (`struct epoll_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpollEvent {
    /// The events, `EPOLL…`.
    pub events: i64,
    /// The number that the application has stored with the socket, usually the number of the
    /// socket.
    pub data: i64,
}

/// A system call. Sockets have the numbers that the script uses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the arguments of the call")]
pub enum Call {
    /// `socket(..., SOCK_STREAM, IPPROTO_TCP)`, or for datagrams
    /// `socket(..., SOCK_DGRAM, IPPROTO_UDP)`.
    Socket { nonblocking: bool, datagrams: bool },
    /// `bind`; without an address, to the default port of the host's address.
    Bind { fd: i32, address: Option<SocketAddr> },
    /// `listen`.
    Listen { fd: i32, backlog: i32 },
    /// `accept` or `accept4`.
    Accept { fd: i32, nonblocking: bool },
    /// `connect`; without an address, to the default address of the peer.
    Connect { fd: i32, address: Option<SocketAddr> },
    /// `read`, `recv`, `recvfrom`, `readv` or `recvmsg`.
    Read(Transfer),
    /// `write`, `send`, `sendto`, `writev` or `sendmsg`.
    Write(Transfer),
    /// `close`.
    Close { fd: i32 },
    /// `shutdown`.
    Shutdown { fd: i32, how: i64 },
    /// `setsockopt`.
    SetOption { fd: i32, option: SocketOption, value: OptionValue },
    /// `getsockopt`. Without a value, the result is not compared.
    GetOption { fd: i32, option: SocketOption, value: Option<OptionValue> },
    /// `fcntl(…, F_GETFL)`: returns the flags of the descriptor.
    GetFlags { fd: i32 },
    /// `fcntl(…, F_SETFL, …)`: sets the flags of the descriptor.
    SetFlags { fd: i32, flags: i64 },
    /// `poll`. The timeout is in milliseconds; a negative one is unlimited.
    Poll { entries: Vec<PollEntry>, timeout: i64 },
    /// `epoll_create`.
    EpollCreate,
    /// `epoll_ctl`.
    EpollControl { epoll: i32, operation: EpollOperation, fd: i32, event: EpollEvent },
    /// `epoll_wait`. The timeout is in milliseconds; a negative one is unlimited. Without expected
    /// events, the events are not compared.
    EpollWait { epoll: i32, expected: Option<Vec<EpollEvent>>, most: usize, timeout: i64 },
    /// `ioctl`. Without a value, the result is not compared.
    Ioctl { fd: i32, request: i64, value: Option<i64> },
}

/// Parses a call and its expected result. `ends` is the return time, which the script writes before
/// the call.
pub(super) fn call(
    cursor: &mut Cursor<'_>,
    ends: Option<ReturnTime>,
) -> Result<CallEvent, SyntaxError> {
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

/// Parses the expected result: `0`, `-1 EAGAIN (Resource temporarily unavailable)`, `0x2 (flags
/// O_RDWR)` or `...`.
fn expected(cursor: &mut Cursor<'_>) -> Result<Expected, SyntaxError> {
    if cursor.take("...") {
        return Ok(Expected::Anything);
    }
    let value = Value::read(cursor)?.number(cursor)?;
    let error = match cursor.peek_word() {
        Some(word) if value == -1 && word.starts_with('E') => {
            let found = errno(word);
            let known = cursor.take_word(word).then_some(found).flatten();
            Some(known.ok_or_else(|| cursor.error(format!("{word} is not a known error")))?)
        }
        _ => None,
    };
    if cursor.sees("(") {
        cursor.enclosed("(", ")")?;
    }
    match error {
        Some(error) => Ok(Expected::Error(error)),
        None if value == -1 => Err(cursor.error("-1 needs an error: write `-1 EAGAIN (…)`")),
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
    fn calls_are_parsed() {
        for (text, expected) in [
            (
                "socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
                Call::Socket { nonblocking: false, datagrams: false },
            ),
            (
                "socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3",
                Call::Socket { nonblocking: false, datagrams: true },
            ),
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
    fn expected_results_are_parsed() {
        for (text, expected) in [
            ("close(3) = 0", Expected::Value(0)),
            ("close(3) = ...", Expected::Anything),
            ("close(3) = -1 EBADF (Bad file descriptor)", Expected::Error(Errno::BADF)),
        ] {
            assert_eq!(read(text).unwrap().expected, expected);
        }
        assert!(read("close(3) = -1").unwrap_err().what.contains("needs an error"));
    }

    #[test]
    fn vectored_calls_are_reads_and_writes() {
        let message = "sendmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 10},{..., 20}], \
                       msg_flags=0}, 0) = 30";
        for text in [message, "writev(4, [{..., 10}, {..., 20}], 2) = 30"] {
            let Call::Write(transfer) = read(text).unwrap().call else {
                panic!("{text} is not a write")
            };
            assert_eq!((transfer.fd, transfer.count), (4, 30));
        }
    }

    #[test]
    fn unsupported_calls_are_refused_with_an_alternative() {
        for (text, says) in [
            ("splice(3, 4) = 0", "the system call `splice` is not supported"),
            ("bind(3) = 0", "does not take 1 arguments"),
            ("socket(..., 3, IPPROTO_UDP) = 3", "only sockets of TCP and UDP"),
            ("write(4, ..., 99999999999) = 1", "one call moves at most"),
            ("write(4, \"four\", 3) = 3", "longer than"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.what.contains(says), "{text}: {error}");
        }
    }
}

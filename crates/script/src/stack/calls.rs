//! System calls as linerate's host carries them out, in the words of BSD.

use super::StackMachine;
use super::sockets::{FreshOptions, Socket};
use crate::machine::{Answer, Output};
use crate::syntax::{Call, Errno, PollEntry, Transfer};
use linerate_stack::{ConnectOptions, Error, ListenOptions, TcpHandle};
use linerate_tcp::{Connection, State};
use linerate_units::Duration;
use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddrV4};

pub(super) const DONT_WAIT: i64 = 0x40;
const PEEK: i64 = 2;
const OUT_OF_BAND: i64 = 1;
pub(super) const FAST_OPEN: i64 = 0x2000_0000;
/// Flags of a read or a write that change nothing here: no signals are sent.
const HARMLESS: i64 = 0x4000 | 0x80;

impl StackMachine {
    /// What of a call this machine does not have, if anything.
    pub(super) fn lacks(&self, call: &Call) -> Option<String> {
        match call {
            Call::Read(transfer) if transfer.flags & !(DONT_WAIT | PEEK | HARMLESS) != 0 => {
                Some(format!(
                    "reading with flags {:#x}: MSG_PEEK and MSG_DONTWAIT are there",
                    transfer.flags
                ))
            }
            Call::Write(transfer)
                if transfer.flags & !(DONT_WAIT | OUT_OF_BAND | FAST_OPEN | HARMLESS) != 0 =>
            {
                Some(format!(
                    "writing with flags {:#x}: MSG_OOB, MSG_DONTWAIT and MSG_FASTOPEN are there",
                    transfer.flags
                ))
            }
            Call::SetOption { fd, option, value } => self.lacks_option(*fd, *option, Some(value)),
            Call::GetOption { fd, option, .. } => self.lacks_option(*fd, *option, None),
            _ => None,
        }
    }

    /// Does what a call asks for. `None`: it waits, and is to be tried again when something has happened.
    pub(super) fn attempt(&mut self, call: &Call, name: i32, began: Duration) -> Option<Answer> {
        let answer = match call {
            Call::Socket { nonblocking } => Ok(self.socket(name, *nonblocking)),
            Call::Bind { fd, address } => self.bind(*fd, *address),
            Call::Listen { fd, backlog } => self.listen(*fd, *backlog),
            Call::Accept { fd, nonblocking } => self.accept(*fd, name, *nonblocking)?,
            Call::Connect { fd, address } => self.connect(*fd, *address)?,
            Call::Read(transfer) => self.read(transfer)?,
            Call::Write(transfer) if transfer.flags & FAST_OPEN != 0 => {
                self.write_fast(transfer)?
            }
            Call::Write(transfer) => self.write(transfer)?,
            Call::Close { fd } => self.close(*fd),
            Call::Shutdown { fd, how } => self.shutdown(*fd, *how),
            Call::SetOption { fd, option, value } => self.set_option(*fd, *option, value),
            Call::GetOption { fd, option, .. } => self.get_option(*fd, *option),
            Call::GetFlags { fd } => self.get_flags(*fd),
            Call::SetFlags { fd, flags } => {
                self.sockets.set_nonblocking(*fd, flags & 0o4000 != 0);
                self.known(*fd).map(|()| Answer::of(0))
            }
            Call::Poll { entries, timeout } => self.poll(entries, *timeout, began)?,
            Call::Ioctl { fd, request, .. } => self.ioctl(*fd, *request),
        };
        Some(answer.unwrap_or_else(Answer::error))
    }

    fn known(&self, fd: i32) -> Result<(), Errno> {
        self.sockets.get(fd).map(|_| ()).ok_or(Errno::BADF)
    }

    /// The connection that a socket is.
    pub(super) fn handle(&self, fd: i32) -> Result<TcpHandle, Errno> {
        match self.sockets.get(fd) {
            None => Err(Errno::BADF),
            Some(Socket::Connection { handle, .. }) => Ok(*handle),
            Some(_) => Err(Errno::NOTCONN),
        }
    }

    pub(super) fn connection(&self, fd: i32) -> Result<Cow<'_, Connection>, Errno> {
        self.host.stack().tcp(self.handle(fd)?).ok_or(Errno::BADF)
    }

    fn socket(&mut self, name: i32, nonblocking: bool) -> Answer {
        let socket = Socket::Fresh {
            config: Box::new(self.config),
            bound: None,
            options: FreshOptions::default(),
        };
        self.sockets.insert(name, socket, nonblocking);
        Answer::of(name.into())
    }

    fn bind(&mut self, fd: i32, address: Option<SocketAddrV4>) -> Result<Answer, Errno> {
        let usual = SocketAddrV4::new(self.local, self.ports.0);
        match self.sockets.get_mut(fd) {
            None => Err(Errno::BADF),
            Some(Socket::Fresh { bound, .. }) if bound.is_none() => {
                *bound = Some(address.unwrap_or(usual));
                Ok(Answer::of(0))
            }
            Some(_) => Err(Errno::INVAL),
        }
    }

    fn listen(&mut self, fd: i32, backlog: i32) -> Result<Answer, Errno> {
        let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let (config, bound, wanted) = match self.sockets.get(fd) {
            None => return Err(Errno::BADF),
            Some(Socket::Fresh { config, bound, options }) => {
                (**config, bound.unwrap_or(anywhere), options.fast_open)
            }
            Some(Socket::Listener { .. }) => return Ok(Answer::of(0)),
            Some(Socket::Connection { .. }) => return Err(Errno::INVAL),
        };
        // As many wait as BSD lets wait: one more than is asked for.
        let backlog = usize::try_from(backlog).unwrap_or(0).saturating_add(1);
        let options = ListenOptions {
            backlog,
            config: Some(config),
            syn_cookies: self.syn_cookies,
            fast_open: self.fast_open.of_listener(wanted, backlog),
            ..ListenOptions::default()
        };
        self.listen_at(fd, bound, &options).map(|()| Answer::of(0))
    }

    /// Makes a socket a listener.
    pub(super) fn listen_at(
        &mut self,
        fd: i32,
        local: SocketAddrV4,
        options: &ListenOptions,
    ) -> Result<(), Errno> {
        let handle = self.host.stack_mut().tcp_listen(local, options).map_err(errno)?;
        self.sockets
            .replace(fd, Socket::Listener { handle, incoming: false, options: Box::new(*options) });
        Ok(())
    }

    fn accept(&mut self, fd: i32, name: i32, nonblocking: bool) -> Option<Result<Answer, Errno>> {
        let waits = !self.sockets.is_nonblocking(fd);
        let keep_alive = self.keep_alive;
        let listener = match self.sockets.get_mut(fd) {
            None => return Some(Err(Errno::BADF)),
            Some(Socket::Listener { handle, incoming, .. }) => {
                *incoming = false;
                *handle
            }
            Some(_) => return Some(Err(Errno::INVAL)),
        };
        match self.host.stack_mut().tcp_accept(listener) {
            Some((handle, _)) => {
                let socket =
                    Socket::Connection { handle, connecting: false, told: false, keep_alive };
                self.sockets.insert(name, socket, nonblocking);
                Some(Ok(Answer::of(name.into())))
            }
            None if waits => None,
            None => Some(Err(Errno::AGAIN)),
        }
    }

    fn connect(&mut self, fd: i32, address: Option<SocketAddrV4>) -> Option<Result<Answer, Errno>> {
        let waits = !self.sockets.is_nonblocking(fd);
        match self.sockets.get(fd) {
            None => return Some(Err(Errno::BADF)),
            Some(Socket::Listener { .. }) => return Some(Err(Errno::ISCONN)),
            Some(Socket::Connection { .. }) => return self.connect_again(fd, waits),
            Some(Socket::Fresh { .. }) => {}
        }
        if let Err(errno) = self.open(fd, address, false) {
            return Some(Err(errno));
        }
        if waits { None } else { Some(Err(Errno::INPROGRESS)) }
    }

    /// Opens a connection to `address`, or to the usual one, by TCP Fast Open if that is wanted.
    pub(super) fn open(
        &mut self,
        fd: i32,
        address: Option<SocketAddrV4>,
        fast_open: bool,
    ) -> Result<(), Errno> {
        let remote = address.unwrap_or_else(|| SocketAddrV4::new(self.remote, self.ports.1));
        let Some(Socket::Fresh { config, bound, options }) = self.sockets.get(fd) else {
            return Err(Errno::BADF);
        };
        let connect = ConnectOptions { local: *bound, config: Some(**config), fast_open };
        let fresh = *options;
        let stack = self.host.stack_mut();
        let handle = stack.tcp_connect(self.now, remote, &connect).map_err(errno)?;
        let tos = linerate_wire::TypeOfService::from_byte(fresh.type_of_service);
        stack.tcp_set_type_of_service(handle, tos).map_err(errno)?;
        if let Some(ttl) = fresh.ttl.and_then(core::num::NonZeroU8::new) {
            stack.tcp_set_ttl(handle, ttl).map_err(errno)?;
        }
        let keep_alive = fresh.keep_alive.unwrap_or(self.keep_alive);
        self.sockets
            .replace(fd, Socket::Connection { handle, connecting: true, told: false, keep_alive });
        Ok(())
    }

    /// `connect` on a socket that is connecting, or was.
    pub(super) fn connect_again(&mut self, fd: i32, waits: bool) -> Option<Result<Answer, Errno>> {
        let state = match self.connection(fd) {
            Ok(connection) => connection.state(),
            Err(errno) => return Some(Err(errno)),
        };
        let Some(Socket::Connection { connecting, .. }) = self.sockets.get_mut(fd) else {
            return Some(Err(Errno::BADF));
        };
        match state {
            State::SynSent | State::SynReceived if waits => None,
            State::SynSent | State::SynReceived => Some(Err(Errno::ALREADY)),
            State::Closed => Some(Err(self.take_error(fd).unwrap_or(Errno::CONNABORTED))),
            _ if *connecting => {
                *connecting = false;
                Some(Ok(Answer::of(0)))
            }
            _ => Some(Err(Errno::ISCONN)),
        }
    }

    /// Why the connection ended, which an application is told once.
    pub(super) fn take_error(&mut self, fd: i32) -> Option<Errno> {
        let error = self.connection(fd).ok()?.error().map(of_connection)?;
        let Some(Socket::Connection { told, .. }) = self.sockets.get_mut(fd) else { return None };
        (!core::mem::replace(told, true)).then_some(error)
    }

    fn read(&mut self, transfer: &Transfer) -> Option<Result<Answer, Errno>> {
        let handle = match self.handle(transfer.fd) {
            Ok(handle) => handle,
            Err(errno) => return Some(Err(errno)),
        };
        let waits = !self.sockets.is_nonblocking(transfer.fd) && transfer.flags & DONT_WAIT == 0;
        let mut bytes = vec![0; transfer.count];
        let stack = self.host.stack_mut();
        let result = if transfer.flags & PEEK == 0 {
            stack.tcp_read(self.now, handle, &mut bytes)
        } else {
            stack.tcp_peek(handle, &mut bytes)
        };
        match result {
            Ok(count) => {
                bytes.truncate(count);
                let value = i64::try_from(count).unwrap_or(i64::MAX);
                Some(Ok(Answer { result: Ok(value), output: Output::Bytes(bytes) }))
            }
            Err(Error::WouldBlock) if waits => None,
            Err(Error::WouldBlock) => Some(Err(Errno::AGAIN)),
            Err(_) => Some(self.take_error(transfer.fd).map_or(Ok(Answer::of(0)), Err)),
        }
    }

    pub(super) fn write(&mut self, transfer: &Transfer) -> Option<Result<Answer, Errno>> {
        let handle = match self.handle(transfer.fd) {
            Ok(handle) => handle,
            Err(Errno::NOTCONN) => return Some(Err(Errno::PIPE)),
            Err(errno) => return Some(Err(errno)),
        };
        let waits = !self.sockets.is_nonblocking(transfer.fd) && transfer.flags & DONT_WAIT == 0;
        let mut bytes = transfer.data.clone().unwrap_or_default();
        bytes.resize(transfer.count, 0);
        let rest = &bytes[self.given.min(bytes.len())..];
        let stack = self.host.stack_mut();
        let result = if transfer.flags & OUT_OF_BAND == 0 {
            stack.tcp_write(self.now, handle, rest)
        } else {
            stack.tcp_write_urgent(self.now, handle, rest)
        };
        match result {
            Ok(taken) => self.given += taken,
            Err(_) => return Some(Err(self.take_error(transfer.fd).unwrap_or(Errno::PIPE))),
        }
        let given = i64::try_from(self.given).unwrap_or(i64::MAX);
        if self.given == transfer.count || !waits && self.given > 0 {
            Some(Ok(Answer::of(given)))
        } else if waits {
            None
        } else {
            Some(Err(Errno::AGAIN))
        }
    }

    fn close(&mut self, fd: i32) -> Result<Answer, Errno> {
        let stack = self.host.stack_mut();
        match self.sockets.remove(fd).ok_or(Errno::BADF)? {
            Socket::Fresh { .. } => {}
            Socket::Listener { handle, .. } => {
                stack.tcp_listen_close(self.now, handle).map_err(errno)?
            }
            Socket::Connection { handle, .. } => {
                stack.tcp_close(self.now, handle).map_err(errno)?
            }
        }
        Ok(Answer::of(0))
    }

    fn shutdown(&mut self, fd: i32, how: i64) -> Result<Answer, Errno> {
        let handle = self.handle(fd)?;
        let state = self.connection(fd)?.state();
        if state == State::Closed || state == State::SynSent {
            return Err(Errno::NOTCONN);
        }
        let stack = self.host.stack_mut();
        if how == 1 || how == 2 {
            stack.tcp_shutdown_write(self.now, handle).map_err(errno)?;
        }
        if how == 0 || how == 2 {
            stack.tcp_shutdown_read(self.now, handle).map_err(errno)?;
        }
        Ok(Answer::of(0))
    }

    fn get_flags(&self, fd: i32) -> Result<Answer, Errno> {
        self.known(fd)?;
        Ok(Answer::of(if self.sockets.is_nonblocking(fd) { 0o4002 } else { 2 }))
    }

    fn poll(
        &self,
        entries: &[PollEntry],
        timeout: i64,
        began: Duration,
    ) -> Option<Result<Answer, Errno>> {
        let found: Vec<i64> = entries.iter().map(|entry| self.found(entry)).collect();
        let count = found.iter().filter(|&&found| found != 0).count();
        let limit =
            u64::try_from(timeout).ok().map(|timeout| began + Duration::from_millis(timeout));
        if count == 0 && limit.is_none_or(|limit| self.now.since(self.begin) < limit) {
            return None;
        }
        let value = i64::try_from(count).unwrap_or(i64::MAX);
        Some(Ok(Answer { result: Ok(value), output: Output::Events(found) }))
    }

    /// `revents` of a socket.
    fn found(&self, entry: &PollEntry) -> i64 {
        const IN: i64 = 1;
        const OUT: i64 = 4;
        const ERROR: i64 = 8;
        const HANG_UP: i64 = 0x10;
        const INVALID: i64 = 0x20;
        const PEER_CLOSED: i64 = 0x2000;
        let flag = |bit, is: bool| if is { bit } else { 0 };
        match self.sockets.get(entry.fd) {
            None => INVALID,
            Some(Socket::Fresh { .. }) => HANG_UP | OUT & entry.events,
            Some(Socket::Listener { incoming, .. }) => flag(IN, *incoming) & entry.events,
            Some(Socket::Connection { handle, connecting, told, .. }) => {
                let Some(connection) = self.host.stack().tcp(*handle) else { return INVALID };
                let state = connection.state();
                let ended = connection.is_at_end_of_stream();
                let closed = state == State::Closed;
                // What was accepted before its handshake was complete can be written to (RFC 7413 §4.2).
                let opening = *connecting && matches!(state, State::SynSent | State::SynReceived);
                let both = closed
                    || ended && matches!(state, State::TimeWait | State::LastAck | State::Closing);
                let wanted = flag(IN, connection.readable_bytes() > 0 || ended)
                    | flag(OUT, !opening && (connection.writable_bytes() > 0 || both || closed))
                    | flag(PEER_CLOSED, ended);
                wanted & entry.events
                    | flag(ERROR, connection.error().is_some() && !told)
                    | flag(HANG_UP, both)
            }
        }
    }

    fn ioctl(&self, fd: i32, request: i64) -> Result<Answer, Errno> {
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

/// BSD's word for what the host says.
pub(super) const fn errno(error: Error) -> Errno {
    match error {
        Error::Closed => Errno::BADF,
        Error::WouldBlock => Errno::AGAIN,
        Error::AddressInUse(_) => Errno::ADDRINUSE,
        Error::AddressNotOurs(_) | Error::NoAddress | Error::PortsExhausted(_) => {
            Errno::ADDRNOTAVAIL
        }
        Error::NoRoute(_) => Errno::NETUNREACH,
        Error::TooManySockets { .. } => Errno::NOBUFS,
        Error::NotConnected => Errno::NOTCONN,
        Error::Refused => Errno::CONNREFUSED,
        Error::Unreachable => Errno::HOSTUNREACH,
        Error::Tcp(error) => of_connection(error),
        _ => Errno::INVAL,
    }
}

/// BSD's word for what happened to a connection.
const fn of_connection(error: linerate_tcp::Error) -> Errno {
    match error {
        linerate_tcp::Error::WouldBlock => Errno::AGAIN,
        linerate_tcp::Error::Shutdown => Errno::PIPE,
        linerate_tcp::Error::Refused => Errno::CONNREFUSED,
        linerate_tcp::Error::Aborted => Errno::CONNABORTED,
        linerate_tcp::Error::TimedOut => Errno::TIMEDOUT,
        linerate_tcp::Error::Unreachable => Errno::HOSTUNREACH,
        linerate_tcp::Error::Reset
        | linerate_tcp::Error::DataAfterClose
        | linerate_tcp::Error::Contradiction => Errno::CONNRESET,
    }
}

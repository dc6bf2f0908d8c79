//! Executes system calls on linerate's host with the semantics of BSD sockets.

use super::StackMachine;
use super::error_queue::ErrorQueue;
use super::errors::{errno, of_connection};
use super::sockets::{Socket, UnconnectedOptions};
use crate::machine::Answer;
use crate::syntax::{Call, Errno, Transfer};
use linerate_stack::{ConnectOptions, ListenOptions, TcpHandle, UdpOptions};
use linerate_tcp::{Connection, State};
use linerate_units::Duration;
use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddr};

pub(super) const DONT_WAIT: i64 = 0x40;
pub(super) const PEEK: i64 = 2;
pub(super) const OUT_OF_BAND: i64 = 1;
pub(super) const END_OF_RECORD: i64 = 0x80;
pub(super) const MORE: i64 = 0x8000;
pub(super) const ERROR_QUEUE: i64 = 0x2000;
pub(super) const ZERO_COPY: i64 = 0x400_0000;
pub(super) const FAST_OPEN: i64 = 0x2000_0000;

impl StackMachine {
    /// Executes a call that started at `began`. Returns `None` if the call must wait. The caller
    /// then repeats this attempt after each event of the host.
    pub(super) fn attempt(&mut self, call: &Call, name: i32, began: Duration) -> Option<Answer> {
        let answer = match call {
            Call::Socket { nonblocking, datagrams } => {
                Ok(self.socket(name, *nonblocking, *datagrams))
            }
            Call::Bind { fd, address } => self.bind(*fd, *address),
            Call::Listen { fd, backlog } => self.listen(*fd, *backlog),
            Call::Accept { fd, nonblocking } => self.accept(*fd, name, *nonblocking)?,
            Call::Connect { fd, address } => self.connect(*fd, *address)?,
            Call::Read(transfer) if self.has_datagrams(transfer.fd) => {
                self.receive_datagram(transfer)?
            }
            Call::Write(transfer) if self.has_datagrams(transfer.fd) => {
                self.send_datagram(transfer)?
            }
            Call::Read(transfer) => self.read(transfer)?,
            Call::Write(transfer) if transfer.flags & FAST_OPEN != 0 => {
                self.write_fast(transfer)?
            }
            Call::Write(transfer) => match self.deferred(transfer.fd) {
                Some(remote) => {
                    self.write_fast(&Transfer { address: Some(remote), ..transfer.clone() })?
                }
                None => self.write(transfer)?,
            },
            Call::Close { fd } => self.close(*fd, began)?,
            Call::Shutdown { fd, how } => self.shutdown(*fd, *how),
            Call::SetOption { fd, option, value } => self.set_option(*fd, *option, value),
            Call::GetOption { fd, option, .. } => self.get_option(*fd, *option),
            Call::GetFlags { fd } => self.get_flags(*fd),
            Call::SetFlags { fd, flags } => {
                self.sockets.set_nonblocking(*fd, flags & 0o4000 != 0);
                self.known(*fd).map(|()| Answer::of(0))
            }
            Call::Poll { entries, timeout } => self.poll(entries, *timeout, began)?,
            Call::EpollCreate => Ok(self.epoll_create(name)),
            Call::EpollControl { epoll, operation, fd, event } => {
                self.epoll_control(*epoll, *operation, *fd, *event)
            }
            Call::EpollWait { epoll, most, timeout, .. } => {
                self.epoll_wait(*epoll, *most, *timeout, began)?
            }
            Call::Ioctl { fd, request, .. } => self.ioctl(*fd, *request),
        };
        Some(answer.unwrap_or_else(Answer::error))
    }

    fn known(&self, fd: i32) -> Result<(), Errno> {
        self.sockets.get(fd).map(|_| ()).ok_or(Errno::BADF)
    }

    /// Returns the handle of a socket's connection.
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

    fn socket(&mut self, name: i32, nonblocking: bool, datagrams: bool) -> Answer {
        let socket = if datagrams {
            Socket::Datagrams { handle: None, options: UdpOptions::default() }
        } else {
            Socket::Unconnected {
                config: Box::new(self.config),
                bound: None,
                options: UnconnectedOptions::default(),
            }
        };
        self.sockets.insert(name, socket, nonblocking);
        Answer::of(name.into())
    }

    fn bind(&mut self, fd: i32, address: Option<SocketAddr>) -> Result<Answer, Errno> {
        let usual = SocketAddr::new(self.local, self.ports.0);
        match self.sockets.get_mut(fd) {
            None => Err(Errno::BADF),
            Some(Socket::Datagrams { handle: None, .. }) => {
                let local = self.end(address.unwrap_or(usual));
                self.bind_datagrams(fd, local).map(|_| Answer::of(0))
            }
            Some(Socket::Unconnected { bound, .. }) if bound.is_none() => {
                *bound = Some(address.unwrap_or(usual));
                Ok(Answer::of(0))
            }
            Some(_) => Err(Errno::INVAL),
        }
    }

    fn listen(&mut self, fd: i32, backlog: i32) -> Result<Answer, Errno> {
        let anywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let (config, bound, unconnected) = match self.sockets.get(fd) {
            None => return Err(Errno::BADF),
            Some(Socket::Unconnected { config, bound, options }) => {
                (**config, bound.unwrap_or(anywhere), *options)
            }
            Some(Socket::Listener { .. }) => return Ok(Answer::of(0)),
            Some(Socket::Datagrams { .. }) => return Err(Errno::OPNOTSUPP),
            Some(Socket::Connection { .. } | Socket::Epoll(_)) => return Err(Errno::INVAL),
        };
        // As in BSD, a listener accepts one connection more than the `backlog` that the application
        // passes to `listen`. `ListenOptions::backlog` is the exact limit, so it is one larger.
        let backlog = usize::try_from(backlog).unwrap_or(0).saturating_add(1);
        let options = ListenOptions {
            backlog,
            config: Some(config),
            syn_cookies: self.syn_cookies,
            fast_open: self.fast_open.of_listener(unconnected.fast_open, backlog),
            defer_accept: unconnected.defer_accept,
            ..ListenOptions::default()
        };
        self.listen_at(fd, self.end(bound), &options).map(|()| Answer::of(0))
    }

    /// Turns a socket into a listener.
    pub(super) fn listen_at(
        &mut self,
        fd: i32,
        local: impl Into<SocketAddr>,
        options: &ListenOptions,
    ) -> Result<(), Errno> {
        let handle = self.host.stack_mut().tcp_listen(local, options).map_err(errno)?;
        self.sockets.replace(fd, Socket::Listener { handle, options: Box::new(*options) });
        Ok(())
    }

    fn accept(&mut self, fd: i32, name: i32, nonblocking: bool) -> Option<Result<Answer, Errno>> {
        let waits = !self.sockets.is_nonblocking(fd);
        let keep_alive = self.keep_alive;
        let listener = match self.sockets.get_mut(fd) {
            None => return Some(Err(Errno::BADF)),
            Some(Socket::Listener { handle, .. }) => *handle,
            Some(_) => return Some(Err(Errno::INVAL)),
        };
        match self.host.stack_mut().tcp_accept(listener) {
            Some((handle, _)) => {
                if let Some(queue) = self.error_queues.get(&fd).map(ErrorQueue::inherited) {
                    self.error_queues.insert(name, queue);
                }
                let low_water = self.unsent_low_water;
                if low_water.is_some() {
                    let stack = self.host.stack_mut();
                    let _ = stack.tcp_configure(self.now, handle, |connection| {
                        connection.set_unsent_low_water(low_water);
                    });
                }
                let socket = Socket::Connection {
                    handle,
                    connecting: false,
                    is_error_taken: false,
                    keep_alive,
                };
                self.sockets.insert(name, socket, nonblocking);
                Some(Ok(Answer::of(name.into())))
            }
            None if waits => None,
            None => Some(Err(Errno::AGAIN)),
        }
    }

    fn connect(&mut self, fd: i32, address: Option<SocketAddr>) -> Option<Result<Answer, Errno>> {
        let waits = !self.sockets.is_nonblocking(fd);
        match self.sockets.get(fd) {
            None => return Some(Err(Errno::BADF)),
            Some(Socket::Epoll(_)) => return Some(Err(Errno::NOTSOCK)),
            Some(Socket::Datagrams { .. }) => return Some(self.connect_datagrams(fd, address)),
            Some(Socket::Listener { .. }) => return Some(Err(Errno::ISCONN)),
            Some(Socket::Connection { .. }) => return self.connect_again(fd, waits),
            Some(Socket::Unconnected { .. }) => {}
        }
        let opened = if self.waits_for_write(fd) {
            self.open_at_write(fd, address)
        } else {
            self.open(fd, address, false).map(|()| false)
        };
        match opened {
            Ok(true) => return Some(Ok(Answer::of(0))),
            Ok(false) => {}
            Err(errno) => return Some(Err(errno)),
        }
        if waits { None } else { Some(Err(Errno::INPROGRESS)) }
    }

    /// Opens a connection to `address`, or to the script's default address. Uses TCP Fast Open if
    /// `fast_open` is set.
    pub(super) fn open(
        &mut self,
        fd: i32,
        address: Option<SocketAddr>,
        fast_open: bool,
    ) -> Result<(), Errno> {
        let remote = address.unwrap_or_else(|| SocketAddr::new(self.remote, self.ports.1));
        let Some(Socket::Unconnected { config, bound, options }) = self.sockets.get(fd) else {
            return Err(Errno::BADF);
        };
        let local = bound.map(|end| self.end(end));
        let remote = self.end(remote);
        let connect = ConnectOptions { local, config: Some(**config), fast_open };
        let unconnected = *options;
        let stack = self.host.stack_mut();
        let handle = stack.tcp_connect(self.now, remote, &connect).map_err(errno)?;
        let tos = linerate_wire::TypeOfService::from_byte(unconnected.type_of_service);
        stack.tcp_set_type_of_service(handle, tos).map_err(errno)?;
        if let Some(ttl) = unconnected.ttl.and_then(core::num::NonZeroU8::new) {
            stack.tcp_set_ttl(handle, ttl).map_err(errno)?;
        }
        let low_water = unconnected.unsent_low_water.or(self.unsent_low_water);
        let options = |connection: &mut Connection| {
            connection.set_cork(unconnected.cork);
            connection.set_unsent_low_water(low_water);
        };
        stack.tcp_configure(self.now, handle, options).map_err(errno)?;
        let keep_alive = unconnected.keep_alive.unwrap_or(self.keep_alive);
        self.sockets.replace(
            fd,
            Socket::Connection { handle, connecting: true, is_error_taken: false, keep_alive },
        );
        Ok(())
    }

    /// Executes `connect` on a socket on which `connect` was called before, or whose connection was
    /// accepted. During the handshake, the result depends on `waits`. A blocking call waits
    /// (`None`), and a non-blocking call fails with `EALREADY`.
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

    /// Returns the error that ended the connection, unless an earlier call has already returned it.
    pub(super) fn take_error(&mut self, fd: i32) -> Option<Errno> {
        let error = self.connection(fd).ok()?.error().map(of_connection)?;
        let Some(Socket::Connection { is_error_taken, .. }) = self.sockets.get_mut(fd) else {
            return None;
        };
        (!core::mem::replace(is_error_taken, true)).then_some(error)
    }

    fn close(&mut self, fd: i32, began: Duration) -> Option<Result<Answer, Errno>> {
        if self.lingers(fd, began) {
            return None;
        }
        let Some(socket) = self.sockets.remove(fd) else { return Some(Err(Errno::BADF)) };
        self.error_queues.remove(&fd);
        self.inquiring.remove(&fd);
        let stack = self.host.stack_mut();
        let closed = match socket {
            Socket::Unconnected { .. } | Socket::Epoll(_) => Ok(()),
            Socket::Datagrams { handle, .. } => {
                handle.map_or(Ok(()), |handle| stack.udp_close(handle))
            }
            Socket::Listener { handle, .. } => stack.tcp_listen_close(self.now, handle),
            Socket::Connection { handle, .. } => stack.tcp_close(self.now, handle),
        };
        Some(closed.map(|()| Answer::of(0)).map_err(errno))
    }

    /// Returns whether `close` must still wait (`SO_LINGER`), because the peer has not acknowledged
    /// all data and the FIN. While it waits, the connection still belongs to the application. If
    /// there are unread data, `close` does not wait, because it then sends a RST.
    fn lingers(&mut self, fd: i32, began: Duration) -> bool {
        let Ok(handle) = self.handle(fd) else { return false };
        let Ok(connection) = self.connection(fd) else { return false };
        let wait = connection.linger().filter(|linger| *linger > Duration::ZERO);
        let unread = connection.readable_bytes() > 0;
        let is_open = matches!(
            connection.state(),
            State::SynReceived | State::Established | State::CloseWait
        );
        let Some(wait) = wait.filter(|_| !unread) else { return false };
        let stack = self.host.stack_mut();
        if self.now.since(self.begin) >= began + wait {
            // The linger time is over, so `close` returns although data is unacknowledged. As in
            // Linux, the connection goes on sending this data after the close.
            let _ = stack.tcp_configure(self.now, handle, |connection| connection.set_linger(None));
            return false;
        }
        if is_open {
            let _ = stack.tcp_shutdown_write(self.now, handle);
        }
        self.connection(fd).is_ok_and(|connection| {
            matches!(connection.state(), State::FinWait1 | State::Closing | State::LastAck)
        })
    }

    /// Returns the time at which the call in progress times out, or `None` if it has no timeout.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let (call, _, began) = self.waiting.as_ref()?;
        match call {
            Call::Poll { timeout, .. } | Call::EpollWait { timeout, .. } => {
                u64::try_from(*timeout).ok().map(|millis| *began + Duration::from_millis(millis))
            }
            Call::Close { fd } => Some(*began + self.connection(*fd).ok()?.linger()?),
            _ => None,
        }
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
}

//! TCP listeners.

use super::TcpStream;
use crate::address::{ToSocketAddrs, try_each};
use crate::host::Net;
use crate::socket::Socket;
use crate::waiters::{Direction, SocketId};
use linerate_stack::{Error as HostError, ListenHandle, ListenOptions};
use linerate_wire::TypeOfService;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

/// A TCP listener, like `tokio::net::TcpListener`.
///
/// ```
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::sim;
///
/// sim::lo(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
///     let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
///     let (_stream, peer) = listener.accept().await.unwrap();
///     assert_eq!(peer, client.local_addr().unwrap());
/// });
/// ```
#[derive(Debug)]
pub struct TcpListener {
    socket: Socket,
    handle: ListenHandle,
    /// The type of service (`IP_TOS`) of the packets that accepted connections send.
    service: TypeOfService,
}

impl TcpListener {
    /// Listens on the host of the current task. If `address` stands for several addresses, the
    /// listener gets the first that can be bound. Port zero selects a free port.
    ///
    /// # Errors
    /// `AddrInUse`; `AddrNotAvailable` if the host has no such address, or the task belongs to no
    /// host.
    pub async fn bind<A: ToSocketAddrs>(address: A) -> io::Result<Self> {
        Self::bind_with(address, &ListenOptions::default()).await
    }

    pub(super) fn open(
        net: &Net,
        local: SocketAddr,
        options: &ListenOptions,
        service: TypeOfService,
    ) -> io::Result<Self> {
        let (socket, handle) =
            Socket::open(net, SocketId::Listen, |stack, _| stack.tcp_listen(local, options))?;
        Ok(Self { socket, handle, service })
    }

    /// Listens with options, such as the lengths of queues, or whether a listener at `[::]`
    /// excludes IPv4. `tokio::net` has no such function.
    ///
    /// # Errors
    /// Those of [`TcpListener::bind`].
    pub async fn bind_with<A: ToSocketAddrs>(
        address: A,
        options: &ListenOptions,
    ) -> io::Result<Self> {
        let net = Net::required()?;
        let addresses = address.to_socket_addrs(&net)?;
        try_each(&addresses, |local| Self::open(&net, local, options, TypeOfService::default()))
    }

    /// Waits for a connection, and returns it with the peer's address. Cancellation-safe: if the
    /// future is dropped, the connection stays queued.
    ///
    /// # Errors
    /// `NetworkDown` when the host has stopped.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        std::future::poll_fn(|context| self.poll_accept(context)).await
    }

    /// Accepts a connection. If there is none, registers the task to be woken.
    ///
    /// # Errors
    /// Those of [`TcpListener::accept`].
    pub fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let accepted = self.socket.poll(Direction::Read, context, |stack, _| {
            let accepted = stack.tcp_accept(self.handle).ok_or(HostError::WouldBlock)?;
            if self.service != TypeOfService::default() {
                stack.tcp_set_type_of_service(accepted.0, self.service)?;
            }
            Ok(accepted)
        });
        accepted.map(|result| {
            result.map(|(handle, peer)| (TcpStream::accepted(&self.socket.net, handle), peer))
        })
    }

    /// Returns the address and port of the listener.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.call(|stack, _| stack.tcp_listen_addr(self.handle))
    }

    /// Does the listener exclude IPv4 (`IPV6_V6ONLY`)? A listener at `[::]` accepts both IP
    /// versions unless [`ListenOptions::only_v6`] is set, and shows IPv4 addresses as IPv4-mapped
    /// IPv6 addresses (`::ffff:192.0.2.1`).
    ///
    /// # Errors
    /// `Unsupported` for a listener at an IPv4 address.
    pub fn only_v6(&self) -> io::Result<bool> {
        self.socket.call(|stack, _| stack.tcp_listen_only_v6(self.handle))
    }
}

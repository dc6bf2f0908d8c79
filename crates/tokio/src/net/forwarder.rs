//! Forwarders. A forwarder accepts connections and UDP flows to addresses of other hosts, and
//! provides them to the application as sockets.

use super::stream::outcome_of_opening;
use super::{TcpStream, UdpSocket};
use crate::error::Error;
use crate::host::Net;
use crate::socket::Socket;
use crate::waiters::{Direction, SocketId};
use linerate_stack::{
    DeferredHandle, Destinations, Error as HostError, ForwardEvent, ForwardOptions,
    ForwardStatistics, ListenHandle, Opening, Rejection, TcpHandle, UdpHandle, Verdict,
};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

/// A forwarder: accepts TCP connections and UDP flows whose destination is another host, as a
/// gateway does. `tokio::net` has no such type.
///
/// ```
/// use linerate_tokio::net::{Flow, Forwarder, TcpStream};
/// use linerate_tokio::{Destinations, ForwardOptions, Rejection, Verdict, sim};
///
/// let network = sim::Network::builder().build();
/// let gateway = network.host("gateway");
/// gateway.spawn(async {
///     let options = ForwardOptions::default();
///     let everything = Destinations::EVERYTHING;
///     let forwarder = Forwarder::bind(everything, &options, |_| Verdict::Defer).await.unwrap();
///     while let Ok(flow) = forwarder.accept().await {
///         let Flow::Handshake(handshake) = flow else { continue };
///         // A program would connect to `handshake.destination()` first.
///         handshake.reject(Rejection::Reset).unwrap();
///     }
/// });
/// ```
///
/// Once the forwarder is dropped, the host no longer receives packets to its destinations. Flows
/// that the forwarder has accepted then receive nothing more, so end them before.
#[derive(Debug)]
pub struct Forwarder {
    socket: Socket,
    listener: ListenHandle,
}

/// A new flow of a [`Forwarder`].
///
/// ```
/// use linerate_tokio::Rejection;
/// use linerate_tokio::net::{Flow, Forwarder};
///
/// /// Serves flows until the host stops.
/// async fn serve(forwarder: Forwarder) -> std::io::Result<()> {
///     loop {
///         match forwarder.accept().await? {
///             Flow::Tcp(stream) => println!("a connection to {}", stream.local_addr()?),
///             Flow::Udp(socket) => println!("datagrams to {}", socket.local_addr()?),
///             Flow::Handshake(handshake) => handshake.reject(Rejection::Reset)?,
///             _ => {}
///         }
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Flow {
    /// A connection that the hook of [`Forwarder::bind`] has deferred. The client waits until the
    /// handshake is accepted or rejected.
    Handshake(Handshake),
    /// A connection that the hook of [`Forwarder::bind`] has accepted. Its local address is the
    /// address that the client connected to.
    Tcp(TcpStream),
    /// A UDP flow. The socket's local address is the destination of the flow, and its peer is the
    /// source. The datagram that began the flow is the first that the socket receives. After the
    /// flow has expired or was evicted, calls on the socket fail with `NotConnected`.
    Udp(UdpSocket),
}

/// A connection whose handshake is deferred: its SYN has not been answered yet. Dropping the
/// handshake sends no answer, so the client repeats its SYN.
///
/// ```
/// use linerate_tokio::Rejection;
/// use linerate_tokio::net::Handshake;
///
/// /// Relays a connection to its destination, or rejects it if the destination does.
/// async fn relay(handshake: Handshake) -> std::io::Result<()> {
///     match tokio::net::TcpStream::connect(handshake.destination()).await {
///         Ok(mut far) => {
///             let mut near = handshake.accept().await?;
///             tokio::io::copy_bidirectional(&mut near, &mut far).await.map(drop)
///         }
///         Err(_) => handshake.reject(Rejection::Reset),
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Handshake {
    net: Net,
    handle: DeferredHandle,
    opening: Opening,
    is_answered: bool,
}

/// The handles of a new flow that the stack has reported. No socket of this crate exists for it
/// yet.
enum NewFlow {
    Deferred(DeferredHandle, Opening),
    Tcp(TcpHandle),
    Udp(UdpHandle),
}

impl Forwarder {
    /// Accepts flows to `destinations` that arrive at the host of the current task. If the host has
    /// a listener or a socket at the destination of a flow, the flow goes to it instead of the
    /// forwarder.
    ///
    /// The host calls `hook` with the first packet of each flow. `hook` decides whether the flow is
    /// accepted, rejected, deferred or dropped. The host is locked while `hook` runs, so `hook`
    /// must not use sockets of this crate.
    ///
    /// # Errors
    /// `AddrInUse` if the host has a forwarder; `AddrNotAvailable` if the task belongs to no host.
    pub async fn bind(
        destinations: Destinations,
        options: &ForwardOptions,
        hook: impl FnMut(&Opening) -> Verdict + Send + 'static,
    ) -> io::Result<Self> {
        let net = Net::required()?;
        let listener = net.call(|state, _| -> Result<ListenHandle, Error> {
            state.check_running()?;
            if state.registry.has_forwarder() {
                return Err(Error::ForwarderExists);
            }
            let listener = state.stack.forward(destinations, options, hook)?;
            state.registry.insert(SocketId::Listen(listener));
            state.registry.set_forwarder(listener);
            Ok(listener)
        })?;
        Ok(Self { socket: Socket::of(&net, SocketId::Listen(listener)), listener })
    }

    /// Waits for the next flow. Cancellation-safe: if the future is dropped, the flow stays queued.
    ///
    /// # Errors
    /// `NetworkDown` when the host has stopped.
    pub async fn accept(&self) -> io::Result<Flow> {
        poll_fn(|context| self.poll_accept(context)).await
    }

    /// Returns the next flow. If there is none, registers the task to be woken.
    ///
    /// # Errors
    /// Those of [`Forwarder::accept`].
    pub fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Flow>> {
        let next = self.socket.poll(Direction::Read, context, |stack, _| {
            if let Some((handle, _)) = stack.tcp_accept(self.listener) {
                return Ok(NewFlow::Tcp(handle));
            }
            match stack.poll_new_flow() {
                Some(ForwardEvent::Deferred(handle, opening)) => {
                    Ok(NewFlow::Deferred(handle, opening))
                }
                Some(ForwardEvent::Datagrams(handle, _)) => Ok(NewFlow::Udp(handle)),
                _ => Err(HostError::WouldBlock),
            }
        });
        let net = &self.socket.net;
        next.map(|flow| {
            Ok(match flow? {
                NewFlow::Deferred(handle, opening) => {
                    let net = net.clone();
                    Flow::Handshake(Handshake { net, handle, opening, is_answered: false })
                }
                NewFlow::Tcp(handle) => Flow::Tcp(TcpStream::accepted(net, handle)),
                NewFlow::Udp(handle) => Flow::Udp(UdpSocket::adopted(net, handle)),
            })
        })
    }

    /// Returns the counters and the state of the forwarder.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn statistics(&self) -> io::Result<ForwardStatistics> {
        self.socket.call(|stack, _| Ok(stack.forward_statistics()))
    }
}

impl Handshake {
    /// Returns the addresses and TCP options of the client's SYN.
    #[must_use]
    pub const fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Returns the address of the client.
    #[must_use]
    pub const fn source(&self) -> SocketAddr {
        self.opening.source
    }

    /// Returns the address that the client connects to.
    #[must_use]
    pub const fn destination(&self) -> SocketAddr {
        self.opening.destination
    }

    /// Accepts the connection, and waits until the client has completed the handshake.
    ///
    /// # Errors
    /// `NotConnected` if the client has given up, or if the host has dropped the handshake because
    /// too many others were deferred; `ConnectionReset` and `TimedOut` if the client does not
    /// complete the handshake.
    pub async fn accept(mut self) -> io::Result<TcpStream> {
        self.is_answered = true;
        let handle = self.handle;
        let (socket, handle) =
            Socket::open(&self.net, SocketId::Tcp, |stack, now| stack.forward_accept(now, handle))?;
        socket.wait(Direction::Read, |stack, _| outcome_of_opening(stack, handle)).await?;
        Ok(TcpStream::opened(socket, handle))
    }

    /// Rejects the connection, and reports the reason to the client.
    ///
    /// # Errors
    /// `NotConnected` if the client has given up.
    pub fn reject(mut self, reason: Rejection) -> io::Result<()> {
        self.is_answered = true;
        self.call(|stack, now, handle| stack.forward_reject(now, handle, reason))
    }

    fn call(
        &self,
        step: impl FnOnce(
            &mut linerate_stack::Stack,
            linerate_units::Instant,
            DeferredHandle,
        ) -> Result<(), HostError>,
    ) -> io::Result<()> {
        let result = self.net.call(|state, now| -> Result<(), Error> {
            state.check_usable()?;
            Ok(step(&mut state.stack, now, self.handle)?)
        });
        Ok(result?)
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        if !self.is_answered {
            // An error means that the client has abandoned its connection attempt. The host has
            // then already removed the handshake, so the error is ignored.
            let _ = self.call(|stack, _, handle| stack.forward_drop(handle));
        }
    }
}

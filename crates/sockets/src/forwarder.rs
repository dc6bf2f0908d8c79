//! A forwarder, which provides flows to addresses of other hosts as ordinary sockets.

use crate::error::Error;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::tcp_stream::{TcpStream, outcome_of_opening};
use crate::timeouts::{Direction, WaitLimit};
use crate::udp_socket::UdpSocket;
use linerate_stack::{
    DeferredHandle, Destinations, Error as HostError, ForwardEvent, ForwardOptions,
    ForwardStatistics, ListenHandle, Opening, Rejection, Stack, Verdict,
};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A forwarder: accepts flows to addresses of other hosts ([`Net::forward`](crate::Net::forward)).
///
/// ```
/// use linerate_sockets::{Destinations, Flow, ForwardOptions, Net, Route, StackConfig, Verdict};
/// use std::io::{Read, Write};
///
/// # let memory = linerate_link::MemoryConfig::default();
/// # let (left, right) = linerate_link::memory::pair(memory)?;
/// # let gateway = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// # let mut inside = StackConfig::new("02:00:00:00:00:02".parse()?, "10.0.0.2/24".parse()?);
/// # inside.routes = vec![Route::via("0.0.0.0/0".parse()?, std::net::Ipv4Addr::new(10, 0, 0, 1))];
/// # let (gateway, inside) =
/// #     (Net::builder(left, gateway).start()?, Net::builder(right, inside).start()?);
/// let everything = (Destinations::EVERYTHING, ForwardOptions::default());
/// let forwarder = gateway.forward(everything.0, &everything.1, |_| Verdict::Defer)?;
/// let client = std::thread::spawn(move || {
///     let mut stream = inside.connect("203.0.113.9:80")?;
///     stream.write_all(b"hello")?;
/// // Dropping the host would reset the connection, so the thread returns the host.
///     std::io::Result::Ok((inside, stream))
/// });
/// let Flow::Handshake(handshake) = forwarder.accept()? else { panic!("no datagram was sent") };
/// assert_eq!(handshake.destination(), "203.0.113.9:80".parse()?);
/// // A program would connect to the destination here, and reject the handshake if that fails.
/// let mut stream = handshake.accept()?;
/// stream.read_exact(&mut [0; 5])?;
/// # client.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// After the forwarder has been dropped, the host ignores packets to its destinations, also those
/// of flows that were accepted before. So end all flows before dropping the forwarder.
#[derive(Debug)]
pub struct Forwarder {
    socket: Socket<ListenHandle>,
}

/// A new flow of a [`Forwarder`].
///
/// ```
/// use linerate_sockets::{Flow, Forwarder, Rejection};
///
/// /// Serves flows until the network stops.
/// fn serve(forwarder: &Forwarder) -> std::io::Result<()> {
///     loop {
///         match forwarder.accept()? {
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
    /// A connection for which the hook of [`Net::forward`](crate::Net::forward) has returned
    /// [`Verdict::Defer`]. The client gets no answer to its SYN until the application accepts or
    /// rejects the handshake.
    Handshake(Handshake),
    /// A connection that the hook of [`Net::forward`](crate::Net::forward) has accepted. The local
    /// address of the stream is the address to which the client connected.
    Tcp(TcpStream),
    /// A UDP flow, as a connected socket. Its local address is the destination of the flow, and its
    /// peer is the source. The first datagram that the socket receives is the one that began the
    /// flow. After the flow has expired or was evicted, calls fail with `NotConnected`.
    Udp(UdpSocket),
}

/// A connection whose handshake is deferred: its SYN has not been answered yet. Dropping the
/// handshake sends no answer, so the client repeats its SYN.
///
/// ```
/// use linerate_sockets::{Handshake, Rejection, TcpStream};
///
/// /// Accepts a client once the kernel has reached its destination, and refuses it otherwise.
/// fn connect(handshake: Handshake) -> std::io::Result<Option<(TcpStream, std::net::TcpStream)>> {
///     match std::net::TcpStream::connect(handshake.destination()) {
///         Ok(far) => Ok(Some((handshake.accept()?, far))),
///         Err(_) => handshake.reject(Rejection::Reset).map(|()| None),
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Handshake {
    shared: Arc<Shared>,
    handle: DeferredHandle,
    opening: Opening,
    is_answered: bool,
}

impl Forwarder {
    pub(crate) fn open(
        shared: &Arc<Shared>,
        destinations: Destinations,
        options: &ForwardOptions,
        hook: impl FnMut(&Opening) -> Verdict + Send + 'static,
    ) -> Result<Self, Error> {
        let mut access = shared.access()?;
        access.check_running()?;
        if access.registry.has_forwarder() {
            return Err(Error::ForwarderExists);
        }
        let handle = access.stack.forward(destinations, options, hook)?;
        let socket = Socket::new(shared, &mut access, handle);
        access.registry.set_forwarder(handle);
        drop(access);
        Ok(Self { socket })
    }

    pub(crate) const fn socket(&self) -> &Socket<ListenHandle> {
        &self.socket
    }

    /// Waits for the next flow.
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode or after the timeout; `NetworkDown` when the network has
    /// stopped.
    pub fn accept(&self) -> io::Result<Flow> {
        let (shared, listener) = (&self.socket.shared, self.socket.handle);
        let flow = self.socket.block(Direction::Read, |state, _| {
            if let Some((handle, _)) = state.stack.tcp_accept(listener) {
                return Ok(Flow::Tcp(TcpStream::accepted(Socket::new(shared, state, handle))));
            }
            match state.stack.poll_new_flow() {
                Some(ForwardEvent::Deferred(handle, opening)) => Ok(Flow::Handshake(Handshake {
                    shared: Arc::clone(shared),
                    handle,
                    opening,
                    is_answered: false,
                })),
                Some(ForwardEvent::Datagrams(handle, _)) => {
                    Ok(Flow::Udp(UdpSocket::adopted(Socket::new(shared, state, handle))))
                }
                _ => Err(HostError::WouldBlock),
            }
        })?;
        Ok(flow)
    }

    /// Returns the counters and the state of the forwarder.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn statistics(&self) -> io::Result<ForwardStatistics> {
        let look = |stack: &mut Stack, _| Ok::<_, HostError>(stack.forward_statistics());
        Ok(self.socket.call(look)?)
    }

    /// Selects the non-blocking mode, in which [`Forwarder::accept`] fails with `WouldBlock` if
    /// there is no flow. A [`Poller`](crate::Poller) then reports when there is one.
    ///
    /// # Errors
    /// None. The result type is that of `set_nonblocking` of the other sockets.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.timeouts.set_nonblocking(nonblocking);
        Ok(())
    }

    /// Sets the timeout of [`Forwarder::accept`]. A call that waits longer fails with `WouldBlock`;
    /// `None` waits without limit.
    ///
    /// # Errors
    /// `InvalidInput` for a timeout of zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(self.socket.timeouts.set_timeout(Direction::Read, timeout)?)
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
    /// `NotConnected` if the handshake has been cancelled, because the client has given up or
    /// because too many other handshakes were deferred; `ConnectionReset` or `TimedOut` if the
    /// client does not complete the handshake.
    pub fn accept(mut self) -> io::Result<TcpStream> {
        self.is_answered = true;
        let socket = {
            let mut access = self.shared.access()?;
            access.check_running()?;
            let now = access.now();
            let handle = access.stack.forward_accept(now, self.handle).map_err(Error::from)?;
            Socket::new(&self.shared, &mut access, handle)
        };
        socket.block_within(Direction::Write, WaitLimit::Forever, |state, _| {
            outcome_of_opening(&state.stack, socket.handle)
        })?;
        Ok(TcpStream::accepted(socket))
    }

    /// Rejects the connection, and reports the reason to the client.
    ///
    /// # Errors
    /// `NotConnected` if the client has given up.
    pub fn reject(mut self, reason: Rejection) -> io::Result<()> {
        self.is_answered = true;
        let mut access = self.shared.access()?;
        let now = access.now();
        Ok(access.stack.forward_reject(now, self.handle, reason).map_err(Error::from)?)
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        if !self.is_answered
            && let Ok(mut access) = self.shared.access()
        {
            // The application has neither accepted nor rejected the handshake, so the host forgets
            // the SYN. An error means that the host has already cancelled the handshake, so it is
            // ignored.
            let _ = access.stack.forward_drop(self.handle);
        }
    }
}

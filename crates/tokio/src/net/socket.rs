//! Sockets that are configured before they connect or listen.

use super::{TcpListener, TcpStream};
use crate::error::Error;
use crate::host::Net;
use linerate_stack::{ConnectOptions, Error as HostError, ListenOptions};
use linerate_tcp::{BufferSize, Config, KeepAlive};
use linerate_wire::TypeOfService;
use parking_lot::Mutex;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// A TCP socket that is neither connected nor listening yet, like `tokio::net::TcpSocket`.
///
/// ```
/// use linerate_tokio::net::TcpSocket;
/// use linerate_tokio::sim;
///
/// sim::lo(async {
///     let socket = TcpSocket::new_v4()?;
///     socket.set_recv_buffer_size(64 << 10)?;
///     socket.bind("127.0.0.1:80".parse().unwrap())?;
///     let listener = socket.listen(16)?;
///     let (client, server) = tokio::join!(
///         TcpSocket::new_v4()?.connect(listener.local_addr()?),
///         listener.accept(),
///     );
///     assert_eq!(client?.local_addr()?, server?.1);
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct TcpSocket {
    net: Net,
    options: Mutex<Options>,
}

#[derive(Clone, Debug)]
struct Options {
    /// The local address. Before [`TcpSocket::bind`], it is the unspecified address with port zero.
    local: SocketAddr,
    is_bound: bool,
    config: Config,
    reuse_address: bool,
    /// Whether a listener at `[::]` excludes IPv4.
    only_v6: bool,
    service: TypeOfService,
}

impl Options {
    fn check_ipv6(&self) -> Result<(), Error> {
        if self.local.is_ipv6() { Ok(()) } else { Err(HostError::NotIpv6(self.local).into()) }
    }

    fn check_version(&self, remote: IpAddr) -> Result<(), Error> {
        let local = self.local.ip();
        if local.is_ipv4() == remote.is_ipv4() {
            Ok(())
        } else {
            Err(HostError::OtherVersion { local, remote }.into())
        }
    }
}

impl TcpSocket {
    /// Creates a socket for IPv4 on the host of the current task.
    ///
    /// # Errors
    /// `AddrNotAvailable` if the task belongs to no host.
    pub fn new_v4() -> io::Result<Self> {
        Self::new(Ipv4Addr::UNSPECIFIED.into())
    }

    /// Creates a socket for IPv6 on the host of the current task.
    ///
    /// # Errors
    /// `AddrNotAvailable` if the task belongs to no host.
    pub fn new_v6() -> io::Result<Self> {
        Self::new(Ipv6Addr::UNSPECIFIED.into())
    }

    fn new(unspecified: IpAddr) -> io::Result<Self> {
        let net = Net::required()?;
        let config = net.call(|state, _| state.tcp_config);
        let service = TypeOfService::default();
        let local = SocketAddr::new(unspecified, 0);
        let options = Options {
            local,
            is_bound: false,
            config,
            reuse_address: false,
            only_v6: false,
            service,
        };
        Ok(Self { net, options: Mutex::new(options) })
    }

    /// Selects the local address. Port zero selects a free port at once. The port is not reserved:
    /// until this socket listens or connects, another socket can take it.
    ///
    /// # Errors
    /// `AddrInUse`; `AddrNotAvailable` if the host has no such address; `InvalidInput` if the
    /// socket is bound already, or if `address` has the other IP version.
    pub fn bind(&self, address: SocketAddr) -> io::Result<()> {
        let mut options = self.options.lock();
        if options.is_bound {
            return Err(Error::AlreadyBound.into());
        }
        options.check_version(address.ip())?;
        // `bind` only selects the address; the socket listens or connects later. A listener is
        // opened and closed at once: it shows whether the address is free, and which port the host
        // selects.
        let bound = self.net.call(|state, now| {
            state.check_running()?;
            let tried = ListenOptions { only_v6: options.only_v6, ..ListenOptions::default() };
            let handle = state.stack.tcp_listen(address, &tried)?;
            let bound = state.stack.tcp_listen_addr(handle);
            state.stack.tcp_listen_close(now, handle)?;
            Ok::<_, Error>(bound?)
        })?;
        (options.local, options.is_bound) = (bound, true);
        Ok(())
    }

    /// Connects to `address`.
    ///
    /// # Errors
    /// Those of [`TcpStream::connect`]; `InvalidInput` for an address of the other IP version.
    pub async fn connect(self, address: SocketAddr) -> io::Result<TcpStream> {
        let options = self.options.into_inner();
        options.check_version(address.ip())?;
        let Options { local, is_bound, config, service, .. } = options;
        let options = ConnectOptions {
            local: is_bound.then_some(local),
            config: Some(config),
            ..ConnectOptions::default()
        };
        TcpStream::open(&self.net, address, &options, service).await
    }

    /// Listens for connections. At most `backlog` connections wait to be accepted. Without
    /// [`TcpSocket::bind`], the host selects a port.
    ///
    /// # Errors
    /// `AddrInUse` if another socket has taken the port since it was bound.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        let Options { local, config, only_v6, service, .. } = self.options.into_inner();
        let backlog = usize::try_from(backlog).unwrap_or(usize::MAX).max(1);
        let config = Some(config);
        let options = ListenOptions { backlog, config, only_v6, ..ListenOptions::default() };
        TcpListener::open(&self.net, local, &options, service)
    }

    /// Returns the local address, which is unspecified before [`TcpSocket::bind`].
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.options.lock().local)
    }

    /// Returns `None`, because a socket without a connection has no error.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Enables or disables keep-alive probes to an idle peer, with the default times of RFC 9293.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn set_keepalive(&self, keepalive: bool) -> io::Result<()> {
        self.options.lock().config.keep_alive = keepalive.then(KeepAlive::default);
        Ok(())
    }

    /// Are keep-alive probes enabled?
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn keepalive(&self) -> io::Result<bool> {
        Ok(self.options.lock().config.keep_alive.is_some())
    }

    /// Records `SO_REUSEADDR`, which has no effect. Hosts always allow listening on a port whose
    /// earlier connections are in TIME-WAIT, as Linux does with this option.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn set_reuseaddr(&self, reuseaddr: bool) -> io::Result<()> {
        self.options.lock().reuse_address = reuseaddr;
        Ok(())
    }

    /// Returns the value that [`TcpSocket::set_reuseaddr`] has recorded; false by default, as in
    /// `tokio::net`.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn reuseaddr(&self) -> io::Result<bool> {
        Ok(self.options.lock().reuse_address)
    }

    /// Excludes IPv4 from a listener at `[::]` (`IPV6_V6ONLY`). `tokio::net` has no such function,
    /// but the crate `socket2` has.
    ///
    /// # Errors
    /// `Unsupported` for an IPv4 socket; `InvalidInput` after [`TcpSocket::bind`].
    pub fn set_only_v6(&self, only_v6: bool) -> io::Result<()> {
        let mut options = self.options.lock();
        options.check_ipv6()?;
        if options.is_bound {
            return Err(Error::AlreadyBound.into());
        }
        options.only_v6 = only_v6;
        Ok(())
    }

    /// Does the socket exclude IPv4 ([`TcpSocket::set_only_v6`])?
    ///
    /// # Errors
    /// `Unsupported` for an IPv4 socket.
    pub fn only_v6(&self) -> io::Result<bool> {
        let options = self.options.lock();
        options.check_ipv6()?;
        Ok(options.only_v6)
    }

    /// Rejects the value true of `SO_REUSEPORT`, because two listeners cannot share a port. The
    /// value false is accepted, and has no effect.
    ///
    /// # Errors
    /// `Unsupported` for true.
    pub fn set_reuseport(&self, reuseport: bool) -> io::Result<()> {
        if reuseport { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
    }

    /// Returns false, because hosts do not support `SO_REUSEPORT` ([`TcpSocket::set_reuseport`]).
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn reuseport(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// Fixes the size of the send buffer in bytes. By default, the size is tuned automatically.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.options.lock().config.send_buffer = BufferSize::Fixed(size);
        Ok(())
    }

    /// Returns the size of the send buffer in bytes: the fixed size, or the initial size if it is
    /// tuned.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        Ok(saturated(self.options.lock().config.send_buffer.initial()))
    }

    /// Fixes the size of the receive buffer in bytes. By default, the size is tuned automatically.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.options.lock().config.receive_buffer = BufferSize::Fixed(size);
        Ok(())
    }

    /// Returns the size of the receive buffer in bytes: the fixed size, or the initial size if it
    /// is tuned.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        Ok(saturated(self.options.lock().config.receive_buffer.initial()))
    }

    /// Sets what happens to unsent data when the stream is dropped ([`TcpStream::set_linger`]).
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.options.lock().config.linger = linger.map(Into::into);
        Ok(())
    }

    /// Sets the TCP configuration of this socket, for options that `tokio::net` does not have. An
    /// example is the congestion control: one of [`CongestionName`](crate::CongestionName), or the
    /// caller's own [`Controller`](crate::Controller). The call also replaces the TCP options that
    /// other methods of this socket have set before.
    ///
    /// ```
    /// use linerate_tokio::net::TcpSocket;
    /// use linerate_tokio::{Config, CongestionName, sim};
    ///
    /// sim::lo(async {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_config(&Config { congestion: CongestionName::Bbr, ..socket.config() });
    ///     std::io::Result::Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn set_config(&self, config: &Config) {
        self.options.lock().config = *config;
    }

    /// Returns the TCP configuration of this socket.
    #[must_use]
    pub fn config(&self) -> Config {
        self.options.lock().config
    }

    /// Makes the drop of the stream reset the connection, instead of closing it with a FIN.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Returns the linger time ([`TcpSocket::set_linger`]); `None` if the socket has none.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.options.lock().config.linger.map(Into::into))
    }

    /// Disables (true) or enables (false) Nagle's algorithm (`TCP_NODELAY`). While it is disabled,
    /// small segments do not wait for acknowledgements.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.options.lock().config.no_delay = nodelay;
        Ok(())
    }

    /// Is Nagle's algorithm disabled?
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.options.lock().config.no_delay)
    }

    /// Sets the type of service of the connection's packets (`IP_TOS`).
    ///
    /// # Errors
    /// `InvalidInput` above 255.
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        let invalid =
            |_| Error::InvalidOption { option: "type of service", value: tos, range: "0 to 255" };
        let tos = u8::try_from(tos).map_err(invalid)?;
        self.options.lock().service = TypeOfService::from_byte(tos);
        Ok(())
    }

    /// Returns the type of service of the connection's packets.
    ///
    /// # Errors
    /// Never. The `Result` only keeps the signature of `tokio::net`, whose system call can fail.
    pub fn tos_v4(&self) -> io::Result<u32> {
        Ok(self.options.lock().service.byte().into())
    }
}

fn saturated(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

//! A listening socket of the kernel or of a linerate host.

use super::host_threads::HostThreads;
use super::network::{self, Network};
use super::open::{self, DOUBLING, Options, grant_receive};
use super::pause::SLICE;
use super::stream::Stream;
use linerate_link::kernel_tcp;
use linerate_tcp::Config;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::io;
use std::net::SocketAddr;

/// A listening socket of the kernel or of a linerate host. For a linerate host, `config` is the
/// configuration of the connections that the socket accepts.
#[derive(Debug)]
pub(crate) enum Listening {
    Kernel(std::net::TcpListener),
    Own { listener: linerate_sockets::TcpListener, config: Box<Config>, threads: HostThreads },
}

impl Listening {
    /// Listens at `address`. Accepted connections inherit `options`.
    pub(crate) fn at(
        network: &Network,
        address: SocketAddr,
        options: &Options,
    ) -> io::Result<Self> {
        match network {
            Network::Kernel => {
                let listener = open::listen(address, options)?;
                listener.set_nonblocking(true)?;
                Ok(Self::Kernel(listener))
            }
            Network::Own(own) => {
                let config = Box::new(own.config(options)?);
                let listener = own.net().bind(address)?;
                listener.set_config(Some(*config))?;
                listener.set_timeout(Some(SLICE))?;
                Ok(Self::Own { listener, config, threads: own.threads() })
            }
        }
    }

    /// Returns the address of the socket, with the actual port if port 0 was requested.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Kernel(listener) => listener.local_addr(),
            Self::Own { listener, .. } => listener.local_addr(),
        }
    }

    /// Accepts a connection, and returns its stream and the peer's address. An IPv4 peer has an
    /// IPv4 address, even if the socket reports an address like `::ffff:192.0.2.1`.
    ///
    /// If no connection arrives within [`SLICE`], returns an error for which
    /// [`super::pause::is_pause`] is true.
    pub(crate) fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        match self {
            Self::Kernel(listener) => {
                wait(listener)?;
                let (stream, peer) = listener.accept()?;
                Ok((Stream::Kernel(stream), SocketAddr::new(peer.ip().to_canonical(), peer.port())))
            }
            Self::Own { listener, threads, .. } => {
                let (stream, peer) = listener.accept()?;
                Ok((Stream::Own(stream, threads.clone()), peer))
            }
        }
    }

    /// Returns the receive buffer of accepted connections in bytes, as `getsockopt` reports it. If
    /// a run has set the buffer of the kernel's socket, the result is the size that the run set.
    pub(crate) fn default_receive_buffer(&self) -> io::Result<u64> {
        match self {
            Self::Kernel(listener) => Ok(sockopt::socket_recv_buffer_size(listener)? as u64),
            Self::Own { config, .. } => Ok(config.receive_buffer.most() as u64),
        }
    }

    /// Sets the receive buffer and the MSS of the connections that arrive next, both in bytes;
    /// `None` keeps the default. Returns the granted buffer in bytes, as `getsockopt` reports it. A
    /// linerate host ignores `max_segment`, and uses the MSS of its interface.
    pub(crate) fn set_receive(
        &self,
        buffer: Option<u64>,
        max_segment: Option<u16>,
    ) -> io::Result<u64> {
        match self {
            Self::Kernel(listener) => {
                if let Some(bytes) = max_segment {
                    kernel_tcp::set_max_segment(listener, bytes)?;
                }
                buffer.map_or_else(
                    || self.default_receive_buffer(),
                    |bytes| grant_receive(listener, bytes),
                )
            }
            Self::Own { listener, config, .. } => {
                let Some(granted) = buffer.map(network::granted) else {
                    return self.default_receive_buffer();
                };
                listener.set_config(Some(Config { receive_buffer: granted.into(), ..**config }))?;
                Ok(granted as u64)
            }
        }
    }

    /// Restores the default MSS and the default receive buffer. If the kernel cannot switch
    /// automatic tuning on again, the buffer has a fixed size: `default_size` bytes, as
    /// `getsockopt` reports them. In that case the function returns an error.
    pub(crate) fn restore_receive(&self, default_size: u64) -> io::Result<()> {
        match self {
            Self::Kernel(listener) => {
                kernel_tcp::set_max_segment(listener, 0)?;
                grant_receive(listener, default_size / DOUBLING)?;
                kernel_tcp::unlock_buffers(listener)
            }
            Self::Own { listener, config, .. } => listener.set_config(Some(**config)),
        }
    }

    /// Returns the receive buffer that would be granted for a request of `receive_buffer` bytes, in
    /// bytes as `getsockopt` reports it.
    pub(crate) fn would_grant(&self, receive_buffer: u64) -> io::Result<u64> {
        match self {
            Self::Kernel(_) => {
                let trial = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
                grant_receive(&trial, receive_buffer)
            }
            Self::Own { .. } => Ok(network::granted(receive_buffer) as u64),
        }
    }
}

/// Waits until a connection arrives, but at most [`SLICE`].
fn wait(listener: &std::net::TcpListener) -> io::Result<()> {
    let limit = Timespec::try_from(SLICE).ok();
    match poll(&mut [PollFd::new(listener, PollFlags::IN)], limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

//! A place where connections arrive, whosever TCP they run on.

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

/// A listening socket of the kernel's, or of a host of linerate's own with the rules of what it
/// accepts.
#[derive(Debug)]
pub(crate) enum Listening {
    Kernel(std::net::TcpListener),
    Own { listener: linerate_sockets::TcpListener, config: Box<Config> },
}

impl Listening {
    /// Listens at `address`, for connections with `options`.
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
                Ok(Self::Own { listener, config })
            }
        }
    }

    /// Where, with the port that was free if it was left open.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Kernel(listener) => listener.local_addr(),
            Self::Own { listener, .. } => listener.local_addr(),
        }
    }

    /// The next connection, and who opened it; a pause (see [`super::pause::is_pause`]) if nobody
    /// does for a while.
    pub(crate) fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        match self {
            Self::Kernel(listener) => {
                wait(listener)?;
                let (stream, peer) = listener.accept()?;
                Ok((Stream::Kernel(stream), peer))
            }
            Self::Own { listener, .. } => {
                let (stream, peer) = listener.accept()?;
                Ok((Stream::Own(stream), peer))
            }
        }
    }

    /// The receive buffer of connections for which nothing else is set, as it reads back.
    pub(crate) fn usual_receive_buffer(&self) -> io::Result<u64> {
        match self {
            Self::Kernel(listener) => Ok(sockopt::socket_recv_buffer_size(listener)? as u64),
            Self::Own { config, .. } => Ok(config.receive_buffer.most() as u64),
        }
    }

    /// Sets what the next connections will have, and says what receive buffer was granted, as it
    /// reads back. The largest segment of linerate's own hosts is the interface's affair.
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
                    || self.usual_receive_buffer(),
                    |bytes| grant_receive(listener, bytes),
                )
            }
            Self::Own { listener, config } => {
                let Some(granted) = buffer.map(network::granted) else {
                    return self.usual_receive_buffer();
                };
                listener.set_config(Some(Config { receive_buffer: granted.into(), ..**config }))?;
                Ok(granted as u64)
            }
        }
    }

    /// Goes back to `usual`, and to what tunes itself.
    pub(crate) fn put_back_receive(&self, usual: u64) -> io::Result<()> {
        match self {
            Self::Kernel(listener) => {
                kernel_tcp::set_max_segment(listener, 0)?;
                grant_receive(listener, usual / DOUBLING)?;
                kernel_tcp::unlock_buffers(listener)
            }
            Self::Own { listener, config } => listener.set_config(Some(**config)),
        }
    }

    /// The receive buffer that a connection would be granted for so many bytes, as it reads back.
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

/// Until somebody comes, or for a while.
fn wait(listener: &std::net::TcpListener) -> io::Result<()> {
    let limit = Timespec::try_from(SLICE).ok();
    match poll(&mut [PollFd::new(listener, PollFlags::IN)], limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

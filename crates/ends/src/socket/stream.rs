//! A connection of the kernel or of a linerate host.

use super::host_threads::HostThreads;
use linerate_link::kernel_tcp;
use rustix::net::sockopt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

/// A connection of the kernel or of a linerate host.
#[derive(Debug)]
pub enum Stream {
    /// A connection of the kernel.
    Kernel(std::net::TcpStream),
    /// A connection of a linerate host, with the name of the threads that drive the host.
    Own(linerate_sockets::TcpStream, HostThreads),
}

/// Evaluates an expression with the inner stream of either variant of [`Stream`].
macro_rules! each {
    ($whose:expr, $stream:ident => $call:expr) => {
        match $whose {
            Stream::Kernel($stream) => $call,
            Stream::Own($stream, _) => $call,
        }
    };
}

impl Stream {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Kernel(stream) => Self::Kernel(stream.try_clone()?),
            Self::Own(stream, threads) => Self::Own(stream.try_clone()?, threads.clone()),
        })
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        each!(self, stream => stream.peer_addr())
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        each!(self, stream => stream.local_addr())
    }

    /// Sets the timeout of reads; `None` for no timeout.
    ///
    /// # Errors
    /// The error of the system.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        each!(self, stream => stream.set_read_timeout(timeout))
    }

    pub(crate) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        each!(self, stream => stream.set_write_timeout(timeout))
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        each!(self, stream => stream.set_nonblocking(nonblocking))
    }

    pub(crate) fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        each!(self, stream => stream.set_nodelay(nodelay))
    }

    /// Closes the receiving direction, the sending direction, or both.
    ///
    /// # Errors
    /// The error of the system.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        each!(self, stream => stream.shutdown(how))
    }

    /// Configures the stream so that dropping it resets the connection. Without this setting, the
    /// data in the send buffer would still be sent.
    ///
    /// # Errors
    /// The error of the system.
    pub fn discard_when_dropped(&self) -> io::Result<()> {
        match self {
            Self::Kernel(stream) => Ok(sockopt::set_socket_linger(stream, Some(Duration::ZERO))?),
            Self::Own(stream, _) => stream.set_linger(Some(Duration::ZERO)),
        }
    }

    /// Limits the rate at which the TCP sends, in bytes per second.
    pub(crate) fn set_max_pacing_rate(&self, bytes_per_second: u64) -> io::Result<()> {
        match self {
            Self::Kernel(stream) => kernel_tcp::set_max_pacing_rate(stream, bytes_per_second),
            Self::Own(stream, _) => stream.set_max_pacing_rate(Some(bytes_per_second)),
        }
    }

    /// Returns the size of the send buffer in bytes, as `getsockopt` reports it. The kernel's count
    /// includes overhead, and is about twice the requested size.
    ///
    /// # Errors
    /// The error of the system.
    pub fn send_buffer(&self) -> io::Result<u64> {
        Ok(match self {
            Self::Kernel(stream) => sockopt::socket_send_buffer_size(stream)?,
            Self::Own(stream, _) => stream.send_buffer()?,
        } as u64)
    }

    /// Returns the size of the receive buffer in bytes, as `getsockopt` reports it. The kernel's
    /// count includes overhead, and is about twice the requested size.
    ///
    /// # Errors
    /// The error of the system.
    pub fn receive_buffer(&self) -> io::Result<u64> {
        Ok(match self {
            Self::Kernel(stream) => sockopt::socket_recv_buffer_size(stream)?,
            Self::Own(stream, _) => stream.receive_buffer()?,
        } as u64)
    }

    /// Returns the number of data bytes in a full segment to the peer, without TCP options.
    pub(crate) fn segment_payload(&self) -> io::Result<u32> {
        match self {
            Self::Kernel(stream) => kernel_tcp::max_segment(stream),
            Self::Own(stream, _) => Ok(stream.tcp_info()?.effective_mss),
        }
    }

    /// Returns the number of bytes that have been written but not yet acknowledged by the peer.
    pub(crate) fn unacknowledged_bytes(&self) -> io::Result<u64> {
        match self {
            Self::Kernel(stream) => kernel_tcp::unacknowledged_bytes(stream),
            Self::Own(stream, _) => stream.unacknowledged_bytes().map(|bytes| bytes as u64),
        }
    }
}

impl From<std::net::TcpStream> for Stream {
    fn from(stream: std::net::TcpStream) -> Self {
        Self::Kernel(stream)
    }
}

impl Read for &Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        each!(*self, stream => (&*stream).read(into))
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        each!(*self, stream => (&*stream).write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        each!(*self, stream => (&*stream).flush())
    }
}

//! Functions that open sockets of the kernel, with options that must be set before the handshake.

use linerate_link::kernel_tcp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Maximum number of connections that wait to be accepted by the program.
const BACKLOG: i32 = 128;
/// Minimum value of `TCP_MAXSEG` that the kernel accepts.
const MIN_SEGMENT: u16 = 88;
/// Maximum value of `TCP_MAXSEG` that the kernel accepts.
const MAX_SEGMENT: u16 = 32_767;
/// Ratio of a buffer's size, as the kernel reports it, to the requested size. The kernel doubles
/// the requested size to make room for its own overhead.
pub(super) const DOUBLING: u64 = 2;
/// Maximum buffer size that can be requested from a kernel, in bytes. The kernel stores twice the
/// requested size in a signed 32-bit integer.
const MAX_BUFFER: u64 = i32::MAX as u64 / DOUBLING;

/// Options of a socket that are set before the socket connects or listens. `None` keeps the default
/// of the kernel or the linerate host.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Size of the send buffer in bytes that is requested (`SO_SNDBUF`).
    pub send_buffer: Option<u64>,
    /// Size of the receive buffer in bytes that is requested (`SO_RCVBUF`).
    pub receive_buffer: Option<u64>,
    /// MSS in bytes (`TCP_MAXSEG`).
    pub max_segment: Option<u16>,
    /// Name of the congestion control (`TCP_CONGESTION`).
    pub congestion: Option<String>,
    /// Is the Nagle algorithm off (`TCP_NODELAY`)?
    pub no_delay: bool,
    /// Maximum pacing rate in bytes per second (`SO_MAX_PACING_RATE`).
    pub max_pacing_rate: Option<u64>,
}

/// Opens a blocking connection to `address`, or fails after `timeout`.
///
/// # Errors
/// The error of the system.
pub fn connect(address: SocketAddr, options: &Options, timeout: Duration) -> io::Result<TcpStream> {
    let socket = open(address, options)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    match net::connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => await_connection(&socket, timeout)?,
        Err(error) => return Err(error.into()),
    }
    rustix::io::ioctl_fionbio(&socket, false)?;
    Ok(TcpStream::from(socket))
}

/// Listens at `address`. Accepted connections inherit `options`. A socket at the unspecified IPv6
/// address accepts IPv4 connections too.
///
/// # Errors
/// The error of the system.
pub fn listen(address: SocketAddr, options: &Options) -> io::Result<TcpListener> {
    let socket = open(address, options)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// Sets the send buffer, and returns the granted size as the kernel counts it. The granted size is
/// about twice the requested size, at least the kernel's minimum, and at most twice
/// `net.core.wmem_max`.
///
/// # Errors
/// The error of the system.
pub fn grant_send(socket: impl AsFd, bytes: u64) -> io::Result<u64> {
    sockopt::set_socket_send_buffer_size(&socket, clamped(bytes))?;
    Ok(sockopt::socket_send_buffer_size(&socket)? as u64)
}

/// Returns the send buffer that the kernel would grant for a request of `bytes` bytes, without the
/// kernel's overhead. The request is made at a new socket, which is closed without being connected.
pub(crate) fn would_grant_send(bytes: u64) -> io::Result<u64> {
    let trial = net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    Ok(grant_send(&trial, bytes)? / DOUBLING)
}

/// Sets the receive buffer, and returns the granted size as the kernel counts it. The granted size
/// is about twice the requested size, at least the kernel's minimum, and at most twice
/// `net.core.rmem_max`.
///
/// # Errors
/// The error of the system.
pub fn grant_receive(socket: impl AsFd, bytes: u64) -> io::Result<u64> {
    sockopt::set_socket_recv_buffer_size(&socket, clamped(bytes))?;
    Ok(sockopt::socket_recv_buffer_size(&socket)? as u64)
}

/// Returns the remedy for a buffer of `bytes` that exceeds the kernel setting `limit`, as text for
/// the user. `there` completes the text: it names another machine, or is empty for this machine.
pub fn remedy_for_buffer(bytes: u64, limit: &str, there: &str) -> String {
    if bytes > MAX_BUFFER {
        return format!("no kernel grants more than {MAX_BUFFER}; ask for less");
    }
    format!("`sysctl -w {limit}={bytes}`{there}, or ask for less")
}

/// Limits a size in bytes to the range of the socket option, which is a signed 32-bit integer. The
/// caller reads the granted size back, and so notices that a size was limited.
fn clamped(bytes: u64) -> usize {
    const MOST: u64 = i32::MAX as u64;
    usize::try_from(bytes.min(MOST)).unwrap_or(usize::MAX)
}

/// Returns the MSS in bytes with which packets to `address` have at most `mtu` bytes. An MSS
/// outside of the range that the kernel accepts is replaced by the nearest bound.
pub fn max_segment(address: SocketAddr, mtu: u16) -> u16 {
    let headers = if address.is_ipv4() { 20 + 20 } else { 40 + 20 };
    mtu.saturating_sub(headers).clamp(MIN_SEGMENT, MAX_SEGMENT)
}

/// Creates a socket of the kernel with `options`, which is not connected yet.
fn open(address: SocketAddr, options: &Options) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if let Some(bytes) = options.send_buffer {
        grant_send(&socket, bytes)?;
    }
    if let Some(bytes) = options.receive_buffer {
        grant_receive(&socket, bytes)?;
    }
    if let Some(bytes) = options.max_segment {
        kernel_tcp::set_max_segment(&socket, bytes)?;
    }
    if let Some(name) = &options.congestion {
        sockopt::set_tcp_congestion(&socket, name)?;
    }
    if let Some(rate) = options.max_pacing_rate {
        kernel_tcp::set_max_pacing_rate(&socket, rate)?;
    }
    sockopt::set_tcp_nodelay(&socket, options.no_delay)?;
    Ok(socket)
}

/// Waits until the non-blocking socket is connected. Returns an error if the connection attempt
/// fails or times out.
fn await_connection(socket: &OwnedFd, timeout: Duration) -> io::Result<()> {
    let limit = Timespec::try_from(timeout).map_err(|_| Errno::INVAL)?;
    let mut wait = [PollFd::new(socket, PollFlags::OUT)];
    if poll(&mut wait, Some(&limit))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    match sockopt::socket_error(socket)? {
        Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns an address at which nothing listens. Its port remains reserved while the returned
/// descriptor is open.
#[cfg(test)]
pub(crate) fn closed_port() -> (OwnedFd, SocketAddr) {
    let any_port = SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
    let socket = open(any_port, &Options::default()).unwrap();
    net::bind(&socket, &any_port).unwrap();
    let address = net::getsockname(&socket).unwrap().try_into().unwrap();
    (socket, address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any_port() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    #[test]
    fn buffers_set_before_the_handshake_apply_to_the_connection() {
        let far = Options {
            receive_buffer: Some(20_000),
            max_segment: Some(1_460),
            ..Options::default()
        };
        let listener = listen(any_port(), &far).unwrap();
        let near = Options { send_buffer: Some(10_000), no_delay: true, ..Options::default() };
        let sender =
            connect(listener.local_addr().unwrap(), &near, Duration::from_secs(10)).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        assert_eq!(sockopt::socket_recv_buffer_size(&receiver).unwrap(), 40_000);
        assert_eq!(sockopt::socket_send_buffer_size(&sender).unwrap(), 20_000);
        assert!(sender.nodelay().unwrap());
        assert!(kernel_tcp::max_segment(&sender).unwrap() <= 1_460);
    }

    #[test]
    fn the_kernel_doubles_sizes_and_limits_them() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(grant_receive(&socket, 30_000).unwrap(), 60_000);
        assert!(grant_send(&socket, 1).unwrap() > 2, "the floor");
        assert!(grant_send(&socket, u64::MAX).unwrap() < u64::from(u32::MAX), "the ceiling");
    }

    #[test]
    fn a_port_without_a_listener_refuses_at_once() {
        let (_socket, address) = closed_port();
        let error = connect(address, &Options::default(), Duration::from_secs(10)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn an_unknown_congestion_control_is_an_error() {
        let options = Options { congestion: Some("no-such".into()), ..Options::default() };
        assert_eq!(listen(any_port(), &options).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

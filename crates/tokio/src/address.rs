//! Resolution of addresses in every notation that `tokio::net` accepts, and of host names.

use crate::error::Error;
use crate::host::Net;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Values that can be converted to addresses, like `tokio::net::ToSocketAddrs`.
///
/// A name is the name of a host of the network. It resolves to the host's address of each IP
/// version, in the order of RFC 6724 §6. The operating system's resolver is never queried.
///
/// ```
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::sim;
///
/// sim::lo(async {
///     let _listener = TcpListener::bind("127.0.0.1:7").await.unwrap();
///     // Accepts a string, a pair of a name and a port, or a socket address of `std`.
///     let address: std::net::SocketAddr = "127.0.0.1:7".parse().unwrap();
///     TcpStream::connect("localhost:7").await.unwrap();
///     TcpStream::connect(("localhost", 7)).await.unwrap();
///     TcpStream::connect(address).await.unwrap();
/// });
/// ```
pub trait ToSocketAddrs {
    /// Returns the addresses. `net` resolves names.
    ///
    /// # Errors
    /// `NotFound` for an unknown name.
    fn to_socket_addrs(&self, net: &Net) -> io::Result<Vec<SocketAddr>>;
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {
    fn to_socket_addrs(&self, net: &Net) -> io::Result<Vec<SocketAddr>> {
        (**self).to_socket_addrs(net)
    }
}

impl ToSocketAddrs for [SocketAddr] {
    fn to_socket_addrs(&self, _: &Net) -> io::Result<Vec<SocketAddr>> {
        Ok(self.to_vec())
    }
}

macro_rules! addresses {
    ($($kind:ty),*) => {$(
        impl ToSocketAddrs for $kind {
            fn to_socket_addrs(&self, _: &Net) -> io::Result<Vec<SocketAddr>> {
                Ok(vec![SocketAddr::from(*self)])
            }
        }
    )*};
}

addresses!(SocketAddr, SocketAddrV4, SocketAddrV6, (IpAddr, u16), (Ipv4Addr, u16), (Ipv6Addr, u16));

impl ToSocketAddrs for str {
    fn to_socket_addrs(&self, net: &Net) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.parse() {
            return Ok(vec![address]);
        }
        let unknown = || Error::UnknownName(self.to_owned());
        let (name, port) = self.rsplit_once(':').ok_or_else(unknown)?;
        (name, port.parse().map_err(|_| unknown())?).to_socket_addrs(net)
    }
}

impl ToSocketAddrs for (&str, u16) {
    fn to_socket_addrs(&self, net: &Net) -> io::Result<Vec<SocketAddr>> {
        let &(name, port) = self;
        let addresses = name.parse().map_or_else(|_| net.resolve(name), |address| vec![address]);
        if addresses.is_empty() {
            return Err(Error::UnknownName(name.to_owned()).into());
        }
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

impl ToSocketAddrs for String {
    fn to_socket_addrs(&self, net: &Net) -> io::Result<Vec<SocketAddr>> {
        self.as_str().to_socket_addrs(net)
    }
}

impl ToSocketAddrs for (String, u16) {
    fn to_socket_addrs(&self, net: &Net) -> io::Result<Vec<SocketAddr>> {
        (self.0.as_str(), self.1).to_socket_addrs(net)
    }
}

/// Calls `attempt` with each address until one succeeds. Returns the last failure if all fail.
pub(crate) fn try_each<T>(
    addresses: &[SocketAddr],
    mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut outcome = Err(Error::NoAddress.into());
    for &address in addresses {
        outcome = attempt(address);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

//! A listening socket that stops accepting connections when an [`Interrupt`] is raised.

use crate::interrupt::Interrupt;
use crate::peer::{host_and_port, split_zone, zoned};
use crate::socket::{Listening, Network, Options, Stream, is_pause};
use rustix::event::{Timespec, poll};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use thiserror::Error;

/// Pause after an attempt to accept a connection has failed because the machine is out of
/// descriptors or memory.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The address at which a service listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenAt {
    /// A single address of this machine or of the linerate host, with a port.
    Address(SocketAddr),
    /// A port on all addresses. On this machine, these are all IPv6 and IPv4 addresses, or all IPv4
    /// addresses if the kernel has no IPv6. On a linerate host, it is the host's address. Port 0
    /// lets the TCP choose a port.
    Everywhere(u16),
}

/// Parses `ADDR:PORT`, with an IPv6 address in brackets, or a port that stands for all addresses.
impl FromStr for ListenAt {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
            return Ok(Self::Everywhere(port));
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let (address, zone, port) =
            named_zone(text).ok_or_else(|| ListenError::NotAnAddress(text.to_owned()))?;
        let zoned = zoned(address, zone, port).map_err(ListenError::NoInterface)?;
        Ok(Self::Address(zoned))
    }
}

/// Splits the text of an IPv6 address with a zone and a port, such as `[fe80::1%eth0]:1988`.
/// Returns `None` for any other text.
fn named_zone(text: &str) -> Option<(Ipv6Addr, &str, u16)> {
    let (host, port) = host_and_port(text)?;
    let (address, zone) = split_zone(host)?;
    Some((address, zone?, port?.parse().ok()?))
}

/// Formats the address in the form that `FromStr` parses.
impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Everywhere(port) => port.fmt(f),
        }
    }
}

/// The reason why a service cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// The text is not an address.
    #[error(
        "`{0}` is not an address: write ADDR:PORT, such as 127.0.0.1:1988 or [::1]:1988, or a port"
    )]
    NotAnAddress(String),
    /// The zone of the address does not name an interface of this machine.
    #[error("{0}")]
    NoInterface(#[source] io::Error),
    /// Another program listens at the port.
    #[error(
        "{0} is in use: end the program that uses it (see `ss -ltnp`), or choose another one with \
         --listen"
    )]
    InUse(SocketAddr),
    /// The program has no permission to listen at the port, such as a port below 1024.
    #[error("no permission to listen at {0}: choose a port above 1023 with --listen")]
    NoPermission(SocketAddr),
    /// The address does not belong to this machine.
    #[error(
        "{0} is not an address of this machine: choose one that `ip addr` shows, or a port alone \
         for all"
    )]
    NotOurs(SocketAddr),
    /// The requested address (first field) is not the address of the linerate host (second field).
    #[error("{0} is not the address of linerate's host: listen at {1}, or at a port alone")]
    NotOfHost(SocketAddr, IpAddr),
    /// Listening failed with an error of the operating system that has no variant of its own.
    #[error("cannot listen at {0} ({1}): see `linerate doctor`")]
    Io(SocketAddr, #[source] io::Error),
}

/// A listening socket that stops accepting connections when an [`Interrupt`] is raised.
#[derive(Debug)]
pub struct Listener(Listening);

impl Listener {
    /// Listens at `place` of `network`. Accepted connections inherit `options`.
    ///
    /// # Errors
    /// [`ListenError`], whose text contains a remedy.
    pub fn bind(
        network: &Network,
        place: ListenAt,
        options: &Options,
    ) -> Result<Self, ListenError> {
        let port = match (network, place) {
            (Network::Own(own), ListenAt::Address(address)) if address.ip() != own.address() => {
                return Err(ListenError::NotOfHost(address, own.address()));
            }
            (_, ListenAt::Address(address)) => return Self::bind_one(network, address, options),
            (_, ListenAt::Everywhere(port)) => port,
        };
        let at = |address: IpAddr| Self::bind_one(network, (address, port).into(), options);
        match network {
            Network::Own(own) => at(own.address()),
            // A listener at the unspecified IPv6 address accepts IPv4, too. A kernel without IPv6
            // refuses that address, so the unspecified IPv4 address is used there.
            Network::Kernel => match at(Ipv6Addr::UNSPECIFIED.into()) {
                Err(ListenError::Io(..) | ListenError::NotOurs(_)) => {
                    at(Ipv4Addr::UNSPECIFIED.into())
                }
                other => other,
            },
        }
    }

    /// Returns the address of the socket, with the actual port if port 0 was requested.
    ///
    /// # Errors
    /// The error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Returns the listening socket.
    pub(crate) const fn socket(&self) -> &Listening {
        &self.0
    }

    /// Calls `serve` with every accepted connection and the address of its peer, until `interrupt`
    /// is raised. If a linerate host listens and has ended, for example by a panic, returns an
    /// error.
    pub(crate) fn accept_until(
        &self,
        interrupt: &Interrupt,
        mut serve: impl FnMut(Stream, SocketAddr),
    ) -> io::Result<()> {
        while !interrupt.is_raised() {
            match self.0.accept() {
                Ok((stream, peer)) => serve(stream, peer),
                Err(error) if is_pause(&error) || is_of_one_peer(&error) => {}
                Err(error) if is_of_ended_host(&error) => return Err(error),
                // The machine has no free descriptor or memory. The loop waits before the next
                // attempt, because connections that close release both.
                Err(_) => {
                    let _ = poll(&mut [], Some(&WAIT));
                }
            }
        }
        Ok(())
    }

    fn bind_one(
        network: &Network,
        address: SocketAddr,
        options: &Options,
    ) -> Result<Self, ListenError> {
        let listening = Listening::at(network, address, options);
        listening.map(Self).map_err(|error| explain(address, error))
    }
}

/// Does the error concern only the connection that was to be accepted, so that the next connection
/// can still be accepted?
fn is_of_one_peer(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionAborted
}

/// Has the linerate host of the listener ended, so that no further connection can arrive? The kind
/// of the error is not sufficient, because a panic of the host has the kind `Other`.
fn is_of_ended_host(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<linerate_sockets::Error>());
    matches!(inner, Some(linerate_sockets::Error::Ended(_)))
}

/// Converts an error of the system to an error with `address` and a remedy.
fn explain(address: SocketAddr, error: io::Error) -> ListenError {
    match error.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse(address),
        io::ErrorKind::PermissionDenied => ListenError::NoPermission(address),
        io::ErrorKind::AddrNotAvailable => ListenError::NotOurs(address),
        _ => ListenError::Io(address, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sockets::End;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_place_is_an_address_or_a_port() {
        assert_eq!("1988".parse::<ListenAt>().unwrap(), ListenAt::Everywhere(1_988));
        assert_eq!(":0".parse::<ListenAt>().unwrap(), ListenAt::Everywhere(0));
        for text in ["127.0.0.1:7", "[::1]:7"] {
            assert_eq!(text.parse::<ListenAt>().unwrap(), ListenAt::Address(text.parse().unwrap()));
        }
        let loopback = ListenAt::Address("[fe80::7%1]:7".parse().unwrap());
        assert_eq!("[fe80::7%lo]:7".parse::<ListenAt>().unwrap(), loopback);
        let unknown = "[fe80::7%nosuch]:7".parse::<ListenAt>();
        assert!(matches!(unknown, Err(ListenError::NoInterface(_))), "{unknown:?}");
        for text in ["", "localhost:7", "127.0.0.1", "70000", "::1", "127.0.0.1:", "[fe80::7%]:7"] {
            assert!(
                matches!(text.parse::<ListenAt>(), Err(ListenError::NotAnAddress(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn a_peer_with_an_ipv4_address_has_it_also_at_a_listener_of_both_families() {
        let everywhere = ListenAt::Everywhere(0);
        let listener = Listener::bind(&Network::Kernel, everywhere, &Options::default()).unwrap();
        let port = listener.local_addr().unwrap().port();
        let peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let seen = listener.socket().accept().unwrap().1;
        assert_eq!(seen, peer.local_addr().unwrap());
    }

    #[test]
    fn every_end_of_a_host_ends_its_listener() {
        for end in [End::ShutDown, End::Panicked] {
            assert!(is_of_ended_host(&end.into()), "{end}");
        }
        for kind in [io::ErrorKind::OutOfMemory, io::ErrorKind::NetworkDown] {
            assert!(!is_of_ended_host(&kind.into()), "an error of the kernel: {kind}");
        }
    }

    #[test]
    fn an_address_that_is_not_available_is_explained() {
        let result = TcpListener::bind("127.0.0.1:0").unwrap();
        let refused = |address: SocketAddr| {
            Listener::bind(&Network::Kernel, ListenAt::Address(address), &Options::default())
                .unwrap_err()
        };
        assert!(matches!(refused(result.local_addr().unwrap()), ListenError::InUse(_)));
        assert!(matches!(refused("192.0.2.1:0".parse().unwrap()), ListenError::NotOurs(_)));
    }

    #[test]
    fn listening_on_all_addresses_includes_ipv4() {
        let listener =
            Listener::bind(&Network::Kernel, ListenAt::Everywhere(0), &Options::default()).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect(("127.0.0.1", port)).unwrap();
    }
}

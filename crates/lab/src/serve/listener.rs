//! A listening socket that can be told to stop.

use crate::Interrupt;
use crate::socket::{self, Options};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use thiserror::Error;

/// How long the listener may wait before it asks whether it should stop.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Where a service listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenAt {
    /// At this address only.
    Address(SocketAddr),
    /// At this port of every address of the machine: IPv6 and IPv4, or IPv4 alone where the kernel has
    /// no IPv6. Port 0 lets the kernel choose.
    Everywhere(u16),
}

/// `ADDR:PORT`, `[ADDR]:PORT` for IPv6, or a port alone.
impl FromStr for ListenAt {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let everywhere = text.strip_prefix(':').unwrap_or(text).parse().map(Self::Everywhere);
        everywhere
            .or_else(|_| text.parse().map(Self::Address))
            .map_err(|_| ListenError::NotAnAddress(text.to_owned()))
    }
}

/// As it is read.
impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Everywhere(port) => port.fmt(f),
        }
    }
}

/// Why a service cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// The text is no address.
    #[error("`{0}` is nowhere to listen: write ADDR:PORT, such as 127.0.0.1:1988 or [::1]:1988, or a port")]
    NotAnAddress(String),
    /// Somebody else has the port.
    #[error(
        "{0} is in use: end the program that has it (see `ss -ltnp`), or choose another one with --listen"
    )]
    InUse(SocketAddr),
    /// The port is one for the superuser.
    #[error("no permission to listen at {0}: choose a port above 1023 with --listen")]
    NoPermission(SocketAddr),
    /// The address belongs to another machine.
    #[error("{0} is no address of this machine: choose one that `ip addr` shows, or a port alone for all")]
    NotOurs(SocketAddr),
    /// The kernel refuses for another reason.
    #[error("cannot listen at {0} ({1}): see `linerate doctor`")]
    Io(SocketAddr, #[source] io::Error),
}

/// A listening socket that can be told to stop.
#[derive(Debug)]
pub(crate) struct Listener(TcpListener);

impl Listener {
    /// Listens at `place`.
    pub(crate) fn bind(place: ListenAt) -> Result<Self, ListenError> {
        let port = match place {
            ListenAt::Address(address) => return Self::bind_one(address),
            ListenAt::Everywhere(port) => port,
        };
        match Self::bind_one((IpAddr::from(Ipv6Addr::UNSPECIFIED), port).into()) {
            Err(ListenError::Io(..) | ListenError::NotOurs(_)) => {
                Self::bind_one((IpAddr::from(Ipv4Addr::UNSPECIFIED), port).into())
            }
            other => other,
        }
    }

    /// Where it listens, with the port that the kernel chose if it was left to it.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// The socket itself.
    pub(crate) const fn socket(&self) -> &TcpListener {
        &self.0
    }

    /// Hands everybody who comes to `serve` until `interrupt` is raised.
    pub(crate) fn accept_until(
        &self,
        interrupt: &Interrupt,
        mut serve: impl FnMut(TcpStream, SocketAddr),
    ) -> io::Result<()> {
        while !interrupt.is_raised() {
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&WAIT)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.0.accept() {
                Ok((stream, peer)) => serve(stream, peer),
                Err(error) if is_of_one_peer(&error) => {}
                // Out of descriptors or memory: those who are served will give some back.
                Err(_) => {
                    let _ = poll(&mut [], Some(&WAIT));
                }
            }
        }
        Ok(())
    }

    fn bind_one(address: SocketAddr) -> Result<Self, ListenError> {
        let listener = socket::listen(address, &Options::default()).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(Self(listener))
        });
        listener.map_err(|error| explain(address, error))
    }
}

/// The peer went away before it was accepted; the listener is well.
fn is_of_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

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

    #[test]
    fn a_place_is_an_address_or_a_port_of_all() {
        assert_eq!("1988".parse::<ListenAt>().unwrap(), ListenAt::Everywhere(1_988));
        assert_eq!(":0".parse::<ListenAt>().unwrap(), ListenAt::Everywhere(0));
        for text in ["127.0.0.1:7", "[::1]:7"] {
            assert_eq!(text.parse::<ListenAt>().unwrap(), ListenAt::Address(text.parse().unwrap()));
        }
        for text in ["", "localhost:7", "127.0.0.1", "70000", "::1", "127.0.0.1:"] {
            assert!(matches!(text.parse::<ListenAt>(), Err(ListenError::NotAnAddress(_))), "{text}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_had_is_explained() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let refused = |address: SocketAddr| Listener::bind(ListenAt::Address(address)).unwrap_err();
        assert!(matches!(refused(taken.local_addr().unwrap()), ListenError::InUse(_)));
        assert!(matches!(refused("192.0.2.1:0".parse().unwrap()), ListenError::NotOurs(_)));
    }

    #[test]
    fn everywhere_takes_ipv4_as_well() {
        let listener = Listener::bind(ListenAt::Everywhere(0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect(("127.0.0.1", port)).unwrap();
    }
}

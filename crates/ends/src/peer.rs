//! The address of the machine at the other end of a transfer.

use linerate_link::KernelInterface;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::str::FromStr;
use thiserror::Error;

/// The machine at the other end of a transfer, and the port at which its service listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// A host name or an IP address. An IPv6 address has no brackets, and a link-local address may
    /// have a zone: `fe80::1%eth0`.
    pub host: String,
    /// The port of the service.
    pub port: u16,
}

/// The error of a text that is not the address of a peer, with the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a peer: write HOST or HOST:PORT, with a port from 1 to 65535")]
pub struct ParsePeerError(String);

impl Peer {
    /// The default port of `linerate sink`.
    pub const DEFAULT_PORT: u16 = 1988;

    /// Returns the addresses at which the kernel of this machine reaches the peer.
    ///
    /// # Errors
    /// The error of the resolver, `NotFound` for the name of an interface that does not exist, or
    /// `InvalidInput` for a link-local address without a zone.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        match split_zone(&self.host) {
            Some((address, Some(zone))) => Ok(vec![zoned(address, zone, self.port)?]),
            Some((address, None)) if address.is_unicast_link_local() => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the address is link-local: append the interface, such as {address}%eth0"),
            )),
            _ => self.resolved(),
        }
    }

    /// Returns the addresses at which a linerate host reaches the peer. They have no zones: a
    /// linerate host has a single interface, so the interface for a link-local address is clear.
    ///
    /// # Errors
    /// The error of the resolver.
    pub fn addresses_without_zone(&self) -> io::Result<Vec<SocketAddr>> {
        match split_zone(&self.host) {
            Some((address, _)) => Ok(vec![SocketAddr::new(address.into(), self.port)]),
            None => self.resolved(),
        }
    }

    fn resolved(&self) -> io::Result<Vec<SocketAddr>> {
        Ok((self.host.as_str(), self.port).to_socket_addrs()?.collect())
    }
}

/// Splits an IPv6 address from its zone (RFC 4007 §11), as in `fe80::1%eth0` or `fe80::1%2`.
/// Returns `None` if the text is not an IPv6 address.
pub(crate) fn split_zone(text: &str) -> Option<(Ipv6Addr, Option<&str>)> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    let is_name = |zone: &str| {
        !zone.is_empty() && zone.chars().all(|c| !c.is_whitespace() && !"/:[]%".contains(c))
    };
    zone.is_none_or(is_name).then_some((address.parse().ok()?, zone))
}

/// Returns the socket address of `address` and `port` in `zone`, which is the name or the index of
/// an interface.
///
/// # Errors
/// `NotFound` if there is no interface with the name.
pub(crate) fn zoned(address: Ipv6Addr, zone: &str, port: u16) -> io::Result<SocketAddr> {
    let index = match zone.parse() {
        Ok(index) => index,
        Err(_) => KernelInterface::named(zone)
            .map_err(|_| {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("this machine has no interface `{zone}`: `ip link` lists them"),
                )
            })?
            .index(),
    };
    Ok(SocketAddrV6::new(address, port, 0, index).into())
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Parses `HOST` or `HOST:PORT`. An IPv6 address with a port needs brackets.
impl FromStr for Peer {
    type Err = ParsePeerError;

    fn from_str(text: &str) -> Result<Self, ParsePeerError> {
        let wrong = || ParsePeerError(text.to_owned());
        let (host, port) = host_and_port(text).ok_or_else(wrong)?;
        let port = match port {
            Some(port) => port.parse().ok().filter(|&port| port != 0).ok_or_else(wrong)?,
            None => Self::DEFAULT_PORT,
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

/// Splits `HOST:PORT`, `[HOST]:PORT` or `HOST`, without parsing the port. Returns `None` if
/// brackets are misplaced or do not enclose an IPv6 address.
pub(crate) fn host_and_port(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(inside) = text.strip_prefix('[') {
        let (host, rest) = inside.split_once(']')?;
        split_zone(host)?;
        return if rest.is_empty() {
            Some((host, None))
        } else {
            Some((host, Some(rest.strip_prefix(':')?)))
        };
    }
    if split_zone(text).is_some() {
        return Some((text, None));
    }
    Some(text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_host_with_an_optional_port() {
        assert_eq!("sun.example".parse(), Ok(Peer { host: "sun.example".into(), port: 1988 }));
        assert_eq!("192.0.2.1:7000".parse(), Ok(Peer { host: "192.0.2.1".into(), port: 7000 }));
        for (text, shown) in [
            ("::1", "[::1]:1988"),
            ("[::1]", "[::1]:1988"),
            ("[fe80::7]:9", "[fe80::7]:9"),
            ("fe80::7%eth0", "[fe80::7%eth0]:1988"),
            ("[fe80::7%2]:9", "[fe80::7%2]:9"),
        ] {
            assert_eq!(text.parse::<Peer>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            ":7",
            "a:",
            "a:0",
            "a:70000",
            "a b",
            "[::1]9",
            "[a]:9",
            "[::1]:",
            "::1:x",
            "fe80::1%",
            "[fe80::1%a b]:9",
            "[fe80::1%a%b]:9",
        ] {
            assert_eq!(text.parse::<Peer>(), Err(ParsePeerError(text.into())));
        }
    }

    #[test]
    fn the_zone_of_a_link_local_address_is_an_interface() {
        let peer = |text: &str| text.parse::<Peer>().unwrap();
        let shown = |text| {
            let addresses = peer(text).addresses();
            addresses.map(|all| all[0].to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(shown("fe80::7%lo"), Ok("[fe80::7%1]:1988".to_owned()));
        assert_eq!(shown("[fe80::7%9]:7"), Ok("[fe80::7%9]:7".to_owned()));
        let unknown = "this machine has no interface `nosuch`: `ip link` lists them";
        assert_eq!(shown("fe80::7%nosuch"), Err(unknown.to_owned()));
        let without = "the address is link-local: append the interface, such as fe80::7%eth0";
        assert_eq!(shown("fe80::7"), Err(without.to_owned()));
        let one_interface = peer("fe80::7%nosuch").addresses_without_zone().unwrap();
        assert_eq!(one_interface, ["[fe80::7]:1988".parse().unwrap()]);
    }
}

//! The address of the machine at the other end of a transfer.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;
use thiserror::Error;

/// The machine at the other end of a transfer, and the port at which its service listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// A host name or an IP address. An IPv6 address has no brackets.
    pub host: String,
    /// The port of the service.
    pub port: u16,
}

/// The text cannot be parsed as a peer's address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a peer: write HOST or HOST:PORT, with a port from 1 to 65535")]
pub struct ParsePeerError(String);

impl Peer {
    /// The default port of `linerate sink`.
    pub const DEFAULT_PORT: u16 = 1988;
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

/// Splits `HOST:PORT`, `[HOST]:PORT` or `HOST`. Returns `None` for misplaced brackets.
fn host_and_port(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(inside) = text.strip_prefix('[') {
        let (host, rest) = inside.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return if rest.is_empty() {
            Some((host, None))
        } else {
            Some((host, Some(rest.strip_prefix(':')?)))
        };
    }
    if text.parse::<Ipv6Addr>().is_ok() {
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
        for (text, shown) in
            [("::1", "[::1]:1988"), ("[::1]", "[::1]:1988"), ("[fe80::7]:9", "[fe80::7]:9")]
        {
            assert_eq!(text.parse::<Peer>().unwrap().to_string(), shown);
        }
        for text in ["", ":7", "a:", "a:0", "a:70000", "a b", "[::1]9", "[a]:9", "[::1]:", "::1:x"]
        {
            assert_eq!(text.parse::<Peer>(), Err(ParsePeerError(text.into())));
        }
    }
}

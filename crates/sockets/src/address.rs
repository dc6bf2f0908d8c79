//! Conversion of the addresses that `std::net` accepts to IPv4.

use crate::error::Error;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};

/// Calls `attempt` with each resolved address until one succeeds, as `std::net` does. Returns the
/// last failure if all fail.
pub(crate) fn try_each<T>(
    addresses: impl ToSocketAddrs,
    mut attempt: impl FnMut(SocketAddrV4) -> io::Result<T>,
) -> io::Result<T> {
    let mut unsupported = Error::NoAddress;
    let mut failure = None;
    for address in addresses.to_socket_addrs()? {
        match ipv4(address) {
            Ok(address) => match attempt(address) {
                Ok(done) => return Ok(done),
                Err(error) => failure = Some(error),
            },
            Err(error) => unsupported = error,
        }
    }
    Err(failure.unwrap_or_else(|| unsupported.into()))
}

/// Returns the IPv4 address. IPv4-mapped IPv6 addresses (`::ffff:192.0.2.1`) are converted.
pub(crate) fn ipv4(address: SocketAddr) -> Result<SocketAddrV4, Error> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(address) => match address.ip().to_ipv4_mapped() {
            Some(ip) => Ok(SocketAddrV4::new(ip, address.port())),
            None => Err(Error::Ipv6(address)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::Ipv4Addr;

    fn first_ipv4(addresses: impl ToSocketAddrs) -> io::Result<SocketAddrV4> {
        try_each(addresses, Ok)
    }

    #[test]
    fn ipv4_addresses_are_accepted_in_every_notation() {
        let expected = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 80);
        assert_eq!(first_ipv4("192.0.2.1:80").unwrap(), expected);
        assert_eq!(first_ipv4((Ipv4Addr::new(192, 0, 2, 1), 80)).unwrap(), expected);
        assert_eq!(first_ipv4("[::ffff:192.0.2.1]:80").unwrap(), expected);
        let both = ["[2001:db8::1]:80".parse().unwrap(), SocketAddr::V4(expected)];
        assert_eq!(first_ipv4(&both[..]).unwrap(), expected);
    }

    #[test]
    fn ipv6_addresses_and_empty_lists_are_rejected() {
        let error = first_ipv4("[2001:db8::1]:80").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("[2001:db8::1]:80 is an IPv6 address"), "{error}");
        assert_eq!(first_ipv4(&[][..]).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn the_first_success_or_the_last_failure_is_returned() {
        let addresses: Vec<SocketAddr> =
            (1..=3).map(|port| ([192, 0, 2, 1], port).into()).collect();
        let refuse =
            |address: SocketAddrV4| Err::<(), _>(io::Error::other(address.port().to_string()));
        assert_eq!(try_each(&addresses[..], refuse).unwrap_err().to_string(), "3");
        let second = |address: SocketAddrV4| {
            if address.port() == 2 { Ok(2) } else { Err(io::Error::other("")) }
        };
        assert_eq!(try_each(&addresses[..], second).unwrap(), 2);
    }
}

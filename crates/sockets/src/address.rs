//! Addresses as `std::net` takes them, for a host that speaks IPv4.

use crate::error::Error;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};

/// Tries what `addresses` stands for one after the other, as `std::net` does; the last failure counts.
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

/// The address in the words of IPv4, if it has any: `::ffff:192.0.2.1` does.
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

    fn found(addresses: impl ToSocketAddrs) -> io::Result<SocketAddrV4> {
        try_each(addresses, Ok)
    }

    #[test]
    fn an_address_of_ipv4_in_any_clothes_is_taken() {
        let expected = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 80);
        assert_eq!(found("192.0.2.1:80").unwrap(), expected);
        assert_eq!(found((Ipv4Addr::new(192, 0, 2, 1), 80)).unwrap(), expected);
        assert_eq!(found("[::ffff:192.0.2.1]:80").unwrap(), expected);
        let both = ["[2001:db8::1]:80".parse().unwrap(), SocketAddr::V4(expected)];
        assert_eq!(found(&both[..]).unwrap(), expected);
    }

    #[test]
    fn ipv6_and_nothing_at_all_are_refused_in_words() {
        let error = found("[2001:db8::1]:80").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("[2001:db8::1]:80 is an IPv6 address"), "{error}");
        assert_eq!(found(&[][..]).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn the_last_failure_counts_and_the_first_success() {
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

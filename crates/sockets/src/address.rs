//! Host names in socket calls: a name can have several addresses, and a call tries one after the
//! other, as in `std::net`.

use crate::error::Error;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Resolves `addresses`, and calls `attempt` with one address after the other until a call
/// succeeds, as `std::net` does. If all calls fail, returns the error of the final call.
pub(crate) fn try_each<T>(
    addresses: impl ToSocketAddrs,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut failure = None;
    for address in addresses.to_socket_addrs()? {
        match attempt(address) {
            Ok(done) => return Ok(done),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| Error::NoAddress.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::Ipv4Addr;

    fn first(addresses: impl ToSocketAddrs) -> io::Result<SocketAddr> {
        try_each(addresses, Ok)
    }

    #[test]
    fn addresses_are_accepted_in_every_notation() {
        let expected = SocketAddr::from(([192, 0, 2, 1], 80));
        assert_eq!(first("192.0.2.1:80").unwrap(), expected);
        assert_eq!(first((Ipv4Addr::new(192, 0, 2, 1), 80)).unwrap(), expected);
        let mapped = "[::ffff:192.0.2.1]:80";
        assert_eq!(first(mapped).unwrap(), mapped.parse().unwrap(), "its form is kept");
        let ipv6: SocketAddr = "[2001:db8::1]:80".parse().unwrap();
        assert_eq!(first(&[ipv6, expected][..]).unwrap(), ipv6);
    }

    #[test]
    fn an_empty_list_is_rejected() {
        assert_eq!(first(&[][..]).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn the_first_success_or_the_last_failure_is_returned() {
        let addresses: Vec<SocketAddr> =
            (1..=3).map(|port| ([192, 0, 2, 1], port).into()).collect();
        let refuse =
            |address: SocketAddr| Err::<(), _>(io::Error::other(address.port().to_string()));
        assert_eq!(try_each(&addresses[..], refuse).unwrap_err().to_string(), "3");
        let second = |address: SocketAddr| {
            if address.port() == 2 { Ok(2) } else { Err(io::Error::other("")) }
        };
        assert_eq!(try_each(&addresses[..], second).unwrap(), 2);
    }
}

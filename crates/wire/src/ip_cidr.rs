//! Addresses of both IP versions with a prefix length (RFC 4632, RFC 4291 §2.3).

use crate::Ipv4Cidr;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use thiserror::Error;

/// An address and the length of its network prefix, such as `192.0.2.1/24` or `2001:db8::1/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpCidr {
    address: IpAddr,
    /// The length of the prefix in bits. Invariant: at most 32 for IPv4, or 128 for IPv6.
    prefix_length: u8,
}

impl IpCidr {
    /// The network of all IPv4 addresses, `0.0.0.0/0`: the destination of a default route.
    pub const ALL_IPV4: Self =
        Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), prefix_length: 0 };
    /// The network of all IPv6 addresses, `::/0`: the destination of a default route.
    pub const ALL_IPV6: Self =
        Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), prefix_length: 0 };

    /// Creates an address with a prefix. Returns `None` if the prefix is longer than the address.
    #[must_use]
    pub const fn new(address: IpAddr, prefix_length: u8) -> Option<Self> {
        if prefix_length > bits_of(address) { None } else { Some(Self { address, prefix_length }) }
    }

    /// Creates a network of one address.
    #[must_use]
    pub const fn single(address: IpAddr) -> Self {
        Self { address, prefix_length: bits_of(address) }
    }

    /// Returns the address as it was given, with its host bits.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Returns the length of the prefix in bits: at most 32 for IPv4, or 128 for IPv6.
    #[must_use]
    pub const fn prefix_length(self) -> u8 {
        self.prefix_length
    }

    /// Returns the address of the network, which is the address with all host bits zero.
    #[must_use]
    pub fn network(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let kept = u32::MAX.checked_shl(32 - u32::from(self.prefix_length)).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & kept).into()
            }
            IpAddr::V6(address) => {
                let kept = u128::MAX.checked_shl(128 - u32::from(self.prefix_length)).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & kept).into()
            }
        }
    }

    /// Returns the broadcast address; `None` for IPv6, and for networks of one or two addresses
    /// (RFC 3021).
    #[must_use]
    pub fn broadcast(self) -> Option<Ipv4Addr> {
        let IpAddr::V4(address) = self.address else { return None };
        Ipv4Cidr::new(address, self.prefix_length)?.broadcast()
    }

    /// Does `address` belong to this network?
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        match (address, self.address) {
            (IpAddr::V4(address), IpAddr::V4(own)) => {
                let differing = (address.to_bits() ^ own.to_bits()).leading_zeros();
                differing >= u32::from(self.prefix_length)
            }
            (IpAddr::V6(address), IpAddr::V6(own)) => {
                let differing = (address.to_bits() ^ own.to_bits()).leading_zeros();
                differing >= u32::from(self.prefix_length)
            }
            _ => false,
        }
    }
}

/// Returns the number of bits of an address.
const fn bits_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl From<Ipv4Cidr> for IpCidr {
    fn from(cidr: Ipv4Cidr) -> Self {
        Self { address: cidr.address().into(), prefix_length: cidr.prefix_length() }
    }
}

impl fmt::Display for IpCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_length)
    }
}

/// The error for text that is not an address with a prefix. The user who typed it can correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "not an address with a prefix: write one as in 192.0.2.1/24, with a prefix up to 32, or as in \
     2001:db8::1/64, up to 128"
)]
pub struct ParseIpCidrError(());

/// Parses `192.0.2.1/24` or `2001:db8::1/64`. An address without a prefix is a network of one
/// address.
impl FromStr for IpCidr {
    type Err = ParseIpCidrError;
    fn from_str(text: &str) -> Result<Self, ParseIpCidrError> {
        let (address, prefix_length) = match text.split_once('/') {
            Some((address, prefix_length)) => (address, Some(prefix_length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| ParseIpCidrError(()))?;
        let Some(prefix_length) = prefix_length else { return Ok(Self::single(address)) };
        let is_number = prefix_length.bytes().all(|digit| digit.is_ascii_digit());
        let prefix_length = prefix_length.parse().ok().filter(|_| is_number);
        prefix_length
            .and_then(|prefix_length| Self::new(address, prefix_length))
            .ok_or(ParseIpCidrError(()))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn cidr(text: &str) -> IpCidr {
        text.parse().unwrap()
    }

    #[test]
    fn both_versions_are_parsed_and_printed() {
        for text in ["192.0.2.1/24", "2001:db8::1/64", "::/0", "0.0.0.0/0"] {
            assert_eq!(cidr(text).to_string(), text);
        }
        assert_eq!(cidr("2001:db8::1").prefix_length(), 128);
        assert_eq!(cidr("192.0.2.1").prefix_length(), 32);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "::/129", "192.0.2.1/33", "::1/", "::1/+4", "fe80::1%1/64", "x/3"] {
            assert!(text.parse::<IpCidr>().is_err(), "{text}");
        }
    }

    #[test]
    fn networks_contain_their_addresses_of_one_version() {
        let network = cidr("2001:db8:1::7/48");
        assert!(network.contains("2001:db8:1:ffff::1".parse().unwrap()));
        assert!(!network.contains("2001:db8:2::1".parse().unwrap()));
        assert!(!cidr("::/0").contains("192.0.2.1".parse().unwrap()));
        assert!(!cidr("0.0.0.0/0").contains("::1".parse().unwrap()));
        assert_eq!(network.network(), "2001:db8:1::".parse::<IpAddr>().unwrap());
        assert_eq!(cidr("192.0.2.77/26").network(), "192.0.2.64".parse::<IpAddr>().unwrap());
        assert_eq!(cidr("::1/0").network(), "::".parse::<IpAddr>().unwrap());
        assert_eq!(cidr("192.0.2.77/26").broadcast(), Some(Ipv4Addr::new(192, 0, 2, 127)));
        assert_eq!(network.broadcast(), None);
    }
}

//! IPv4 addresses with a prefix length (RFC 4632).

use core::fmt;
use core::net::Ipv4Addr;
use core::str::FromStr;
use thiserror::Error;

/// An address and the length of its network prefix, such as `192.0.2.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4Cidr {
    address: Ipv4Addr,
    /// The length of the prefix in bits. Invariant: at most 32.
    prefix_length: u8,
}

impl Ipv4Cidr {
    /// The network of all addresses, `0.0.0.0/0`: the destination of a default route.
    pub const ALL: Self = Self { address: Ipv4Addr::UNSPECIFIED, prefix_length: 0 };

    /// Creates an address with a prefix. Returns `None` if the prefix exceeds 32 bits.
    #[must_use]
    pub const fn new(address: Ipv4Addr, prefix_length: u8) -> Option<Self> {
        if prefix_length > 32 { None } else { Some(Self { address, prefix_length }) }
    }

    /// Creates a network of one address.
    #[must_use]
    pub const fn single(address: Ipv4Addr) -> Self {
        Self { address, prefix_length: 32 }
    }

    /// Returns the address as it was given, with its host bits.
    #[must_use]
    pub const fn address(self) -> Ipv4Addr {
        self.address
    }

    /// Returns the length of the prefix in bits, at most 32.
    #[must_use]
    pub const fn prefix_length(self) -> u8 {
        self.prefix_length
    }

    /// Returns the network mask.
    #[must_use]
    pub const fn mask(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(!self.host_bits())
    }

    /// Returns the address of the network, which is the address with all host bits zero.
    #[must_use]
    pub const fn network(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() & !self.host_bits())
    }

    /// Returns the broadcast address; `None` for networks of one or two addresses (RFC 3021).
    #[must_use]
    pub const fn broadcast(self) -> Option<Ipv4Addr> {
        if self.prefix_length > 30 {
            return None;
        }
        Some(Ipv4Addr::from_bits(self.address.to_bits() | self.host_bits()))
    }

    /// Does `address` belong to this network?
    #[must_use]
    pub const fn contains(self, address: Ipv4Addr) -> bool {
        (address.to_bits() ^ self.address.to_bits()) & !self.host_bits() == 0
    }

    /// Returns a mask of the address bits after the prefix, which distinguish the hosts of the
    /// network.
    const fn host_bits(self) -> u32 {
        match u32::MAX.checked_shr(self.prefix_length as u32) {
            Some(bits) => bits,
            None => 0,
        }
    }
}

impl fmt::Display for Ipv4Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_length)
    }
}

/// The error for text that is not an address with a prefix. The user who typed it can correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not an IPv4 address with a prefix: write one as in 192.0.2.1/24, with a prefix up to 32")]
pub struct ParseIpv4CidrError(());

/// Parses `192.0.2.1/24`. An address without a prefix is a network of one address.
impl FromStr for Ipv4Cidr {
    type Err = ParseIpv4CidrError;
    fn from_str(text: &str) -> Result<Self, ParseIpv4CidrError> {
        let (address, prefix_length) = text.split_once('/').unwrap_or((text, "32"));
        let is_number = prefix_length.bytes().all(|digit| digit.is_ascii_digit());
        let prefix_length = prefix_length.parse().ok().filter(|_| is_number);
        address
            .parse()
            .ok()
            .zip(prefix_length)
            .and_then(|(address, prefix_length)| Self::new(address, prefix_length))
            .ok_or(ParseIpv4CidrError(()))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn cidr(text: &str) -> Ipv4Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_and_a_prefix_are_parsed_and_printed() {
        assert_eq!(cidr("192.0.2.1/24").to_string(), "192.0.2.1/24");
        assert_eq!(cidr("192.0.2.1"), Ipv4Cidr::single(Ipv4Addr::new(192, 0, 2, 1)));
        for text in
            ["", "/", "192.0.2.1/", "192.0.2.1/33", "192.0.2/24", "192.0.2.1/-1", "192.0.2.1/+8"]
        {
            assert!(text.parse::<Ipv4Cidr>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_network_contains_the_addresses_with_its_prefix() {
        let network = cidr("192.0.2.129/25");
        assert!(network.contains(Ipv4Addr::new(192, 0, 2, 128)));
        assert!(!network.contains(Ipv4Addr::new(192, 0, 2, 127)));
        assert!(Ipv4Cidr::ALL.contains(Ipv4Addr::BROADCAST));
        assert!(!cidr("192.0.2.1/32").contains(Ipv4Addr::new(192, 0, 2, 0)));
    }

    #[test]
    fn network_and_broadcast_are_the_first_and_last_address() {
        let network = cidr("192.0.2.5/30");
        assert_eq!(network.network(), Ipv4Addr::new(192, 0, 2, 4));
        assert_eq!(network.broadcast(), Some(Ipv4Addr::new(192, 0, 2, 7)));
        assert_eq!(network.mask(), Ipv4Addr::new(255, 255, 255, 252));
        assert_eq!(cidr("192.0.2.4/31").broadcast(), None);
        assert_eq!(
            (Ipv4Cidr::ALL.mask(), Ipv4Cidr::ALL.broadcast()),
            (Ipv4Addr::UNSPECIFIED, Some(Ipv4Addr::BROADCAST))
        );
    }
}

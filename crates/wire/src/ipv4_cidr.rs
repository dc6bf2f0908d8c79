//! An IPv4 address with the length of its network's prefix (RFC 4632).

use core::fmt;
use core::net::Ipv4Addr;
use core::str::FromStr;
use thiserror::Error;

/// `192.0.2.1/24`: an address, and how many of its bits name the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4Cidr {
    address: Ipv4Addr,
    /// Invariant: at most 32.
    prefix_length: u8,
}

impl Ipv4Cidr {
    /// All addresses: the destination of a default route.
    pub const ALL: Self = Self { address: Ipv4Addr::UNSPECIFIED, prefix_length: 0 };

    /// The address in a network of that prefix; none if the prefix exceeds 32 bits.
    #[must_use]
    pub const fn new(address: Ipv4Addr, prefix_length: u8) -> Option<Self> {
        if prefix_length > 32 { None } else { Some(Self { address, prefix_length }) }
    }

    /// A network of this one address.
    #[must_use]
    pub const fn single(address: Ipv4Addr) -> Self {
        Self { address, prefix_length: 32 }
    }

    /// The address as it was given, host bits too.
    #[must_use]
    pub const fn address(self) -> Ipv4Addr {
        self.address
    }

    /// Bits that name the network, at most 32.
    #[must_use]
    pub const fn prefix_length(self) -> u8 {
        self.prefix_length
    }

    /// The prefix as a mask: ones, then zeros.
    #[must_use]
    pub const fn mask(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(!self.host_bits())
    }

    /// The network's own address: the host bits are zero.
    #[must_use]
    pub const fn network(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() & !self.host_bits())
    }

    /// The address of every host of the network, if it has one: networks of one or two addresses
    /// have not (RFC 3021).
    #[must_use]
    pub const fn broadcast(self) -> Option<Ipv4Addr> {
        if self.prefix_length > 30 {
            return None;
        }
        Some(Ipv4Addr::from_bits(self.address.to_bits() | self.host_bits()))
    }

    /// Does the address belong to this network?
    #[must_use]
    pub const fn contains(self, address: Ipv4Addr) -> bool {
        (address.to_bits() ^ self.address.to_bits()) & !self.host_bits() == 0
    }

    /// The bits that tell hosts of the network apart.
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

/// The text is no address with a prefix. The person who typed it can mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "this is no IPv4 address with a prefix: write one as in 192.0.2.1/24, with a prefix up to 32"
)]
pub struct ParseIpv4CidrError(());

/// `192.0.2.1/24`; an address alone is a network of one.
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
    fn people_read_and_write_an_address_and_a_prefix() {
        assert_eq!(cidr("192.0.2.1/24").to_string(), "192.0.2.1/24");
        assert_eq!(cidr("192.0.2.1"), Ipv4Cidr::single(Ipv4Addr::new(192, 0, 2, 1)));
        for text in
            ["", "/", "192.0.2.1/", "192.0.2.1/33", "192.0.2/24", "192.0.2.1/-1", "192.0.2.1/+8"]
        {
            assert!(text.parse::<Ipv4Cidr>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_network_contains_what_shares_its_prefix() {
        let network = cidr("192.0.2.129/25");
        assert!(network.contains(Ipv4Addr::new(192, 0, 2, 128)));
        assert!(!network.contains(Ipv4Addr::new(192, 0, 2, 127)));
        assert!(Ipv4Cidr::ALL.contains(Ipv4Addr::BROADCAST));
        assert!(!cidr("192.0.2.1/32").contains(Ipv4Addr::new(192, 0, 2, 0)));
    }

    #[test]
    fn the_first_and_last_address_name_the_network_and_all_its_hosts() {
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

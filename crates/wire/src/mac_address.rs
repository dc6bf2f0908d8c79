//! Ethernet MAC addresses.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use thiserror::Error;

/// A MAC address: six octets in transmission order.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct MacAddress([u8; 6]);

impl MacAddress {
    /// The broadcast address, which all hosts of the network receive.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// The all-zero address: the unknown target of an ARP request.
    pub const ZERO: Self = Self([0; 6]);

    /// Creates the address with these octets.
    #[must_use]
    pub const fn new(octets: [u8; 6]) -> Self {
        Self(octets)
    }

    /// Returns the address of the IPv4 multicast group `group` on Ethernet (RFC 1112 §6.4). It
    /// contains only the lower 23 of the group's 28 variable bits, so 32 groups share an address.
    #[must_use]
    pub const fn of_ipv4_multicast(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([1, 0, 0x5e, b & 0x7f, c, d])
    }

    /// Returns the address of the IPv6 multicast group `group` on Ethernet (RFC 2464 §7).
    #[must_use]
    pub const fn of_ipv6_multicast(group: Ipv6Addr) -> Self {
        let [.., a, b, c, d] = group.octets();
        Self([0x33, 0x33, a, b, c, d])
    }

    /// Returns the octets in transmission order.
    #[must_use]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Is this the broadcast address?
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }

    /// Is this a group address, such as the broadcast address? The first transmitted bit of a group
    /// address is one.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

/// Formats the address as `02:00:5e:10:00:ff`.
impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for text that is not a MAC address. The user who typed it can correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a MAC address: write six pairs of hexadecimal digits, as in 02:00:5e:10:00:ff")]
pub struct ParseMacAddressError(());

/// Parses six pairs of hexadecimal digits between colons, or between hyphens.
impl FromStr for MacAddress {
    type Err = ParseMacAddressError;
    fn from_str(text: &str) -> Result<Self, ParseMacAddressError> {
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut octets = [0; 6];
        let mut pairs = text.split(separator);
        for octet in &mut octets {
            *octet = pairs.next().and_then(octet_of).ok_or(ParseMacAddressError(()))?;
        }
        if pairs.next().is_some() { Err(ParseMacAddressError(())) } else { Ok(Self(octets)) }
    }
}

/// Parses a pair of hexadecimal digits. A sign in place of a digit is refused, although
/// `from_str_radix` accepts it.
fn octet_of(pair: &str) -> Option<u8> {
    let is_pair = pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_pair.then(|| u8::from_str_radix(pair, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn addresses_are_parsed_and_printed_as_six_pairs() {
        let address = MacAddress::new([2, 0, 0x5e, 0x10, 0, 0xff]);
        assert_eq!(address.to_string(), "02:00:5e:10:00:ff");
        assert_eq!("02:00:5E:10:00:ff".parse(), Ok(address));
        assert_eq!("02-00-5e-10-00-ff".parse(), Ok(address));
    }

    #[test]
    fn malformed_addresses_are_refused() {
        for text in [
            "",
            "02:00:5e:10:00",
            "02:00:5e:10:00:ff:00",
            "2:0:5e:10:0:ff",
            "+2:00:5e:10:00:ff",
            "é:00",
        ] {
            assert!(text.parse::<MacAddress>().is_err(), "{text}");
        }
        assert!("02-00:5e-10-00-ff".parse::<MacAddress>().is_err());
    }

    #[test]
    fn an_ipv6_group_is_mapped_as_rfc_2464_says() {
        let group = "ff02::1:ff0e:8c6c".parse().unwrap();
        let mac = MacAddress::new([0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]);
        assert_eq!(MacAddress::of_ipv6_multicast(group), mac);
        assert!(mac.is_multicast());
    }

    #[test]
    fn an_ipv4_group_is_mapped_as_rfc_1112_says() {
        let mac = MacAddress::new([1, 0, 0x5e, 0x01, 2, 3]);
        assert_eq!(MacAddress::of_ipv4_multicast([224, 0x81, 2, 3].into()), mac);
        assert!(mac.is_multicast());
    }

    #[test]
    fn the_first_bit_on_the_wire_marks_group_addresses() {
        assert!(MacAddress::BROADCAST.is_multicast() && MacAddress::BROADCAST.is_broadcast());
        assert!(MacAddress::new([1, 0, 0x5e, 0, 0, 1]).is_multicast());
        assert!(!MacAddress::new([2, 0, 0, 0, 0, 1]).is_multicast());
    }
}

//! The address of an Ethernet interface.

use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// Six octets, in the order in which they are sent.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct MacAddress([u8; 6]);

impl MacAddress {
    /// Every station of the network.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// Nobody: what ARP asks for.
    pub const ZERO: Self = Self([0; 6]);

    /// The address with these octets.
    #[must_use]
    pub const fn new(octets: [u8; 6]) -> Self {
        Self(octets)
    }

    /// The octets in the order in which they are sent.
    #[must_use]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Does it name every station?
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }

    /// Does it name a group of stations (the first bit sent is one)? Broadcast is such a group.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

/// `02:00:5e:10:00:ff`.
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

/// The text is no MAC address. The person who typed it can mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("this is no MAC address: write six pairs of hexadecimal digits, as in 02:00:5e:10:00:ff")]
pub struct ParseMacAddressError(());

/// Six pairs of hexadecimal digits between colons, or between hyphens.
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

/// The octet that a pair of digits names; a sign, which numbers may have, is no digit.
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
    fn people_read_and_write_six_pairs() {
        let address = MacAddress::new([2, 0, 0x5e, 0x10, 0, 0xff]);
        assert_eq!(address.to_string(), "02:00:5e:10:00:ff");
        assert_eq!("02:00:5E:10:00:ff".parse(), Ok(address));
        assert_eq!("02-00-5e-10-00-ff".parse(), Ok(address));
    }

    #[test]
    fn what_is_no_address_is_refused() {
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
    fn the_first_bit_sent_tells_groups_from_stations() {
        assert!(MacAddress::BROADCAST.is_multicast() && MacAddress::BROADCAST.is_broadcast());
        assert!(MacAddress::new([1, 0, 0x5e, 0, 0, 1]).is_multicast());
        assert!(!MacAddress::new([2, 0, 0, 0, 0, 1]).is_multicast());
    }
}

//! The destinations of a forwarder: a prefix or everything, and ports or everything.

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;

/// A set of destinations: the addresses of a prefix, or all, and a range of ports, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destinations {
    /// The prefix and its length in bits; `None` for all addresses of both families.
    prefix: Option<(IpAddr, u8)>,
    first_port: u16,
    last_port: u16,
}

impl Destinations {
    /// All addresses and ports.
    pub const EVERYTHING: Self = Self { prefix: None, first_port: 0, last_port: u16::MAX };

    /// Returns the addresses that begin with the first `length` bits of `address`, with all ports.
    /// `None` if the address has fewer bits.
    ///
    /// ```
    /// use linerate_stack::Destinations;
    ///
    /// let inside = Destinations::prefix("10.0.0.0".parse()?, 8).ok_or("too long")?;
    /// let web = inside.with_ports(443..=443);
    /// assert!(web.contains("10.1.2.3:443".parse()?) && !web.contains("10.1.2.3:80".parse()?));
    /// assert!(!web.contains("[::1]:443".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn prefix(address: IpAddr, length: u8) -> Option<Self> {
        let bits = match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        if length > bits {
            return None;
        }
        Some(Self { prefix: Some((address, length)), ..Self::EVERYTHING })
    }

    /// Restricts the destinations to a range of ports.
    #[must_use]
    pub fn with_ports(self, ports: RangeInclusive<u16>) -> Self {
        Self { first_port: *ports.start(), last_port: *ports.end(), ..self }
    }

    /// Is this destination in the set?
    #[must_use]
    pub fn contains(&self, destination: SocketAddr) -> bool {
        (self.first_port..=self.last_port).contains(&destination.port())
            && self.covers(destination.ip())
    }

    /// Is the address in the set, with any port?
    pub(crate) fn covers(&self, address: IpAddr) -> bool {
        match (self.prefix, address) {
            (None, _) => true,
            (Some((IpAddr::V4(prefix), length)), IpAddr::V4(address)) => {
                let differing = prefix.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= u32::from(length)
            }
            (Some((IpAddr::V6(prefix), length)), IpAddr::V6(address)) => {
                let differing = prefix.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= u32::from(length)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_compares_its_bits_only() {
        let set = Destinations::prefix("192.0.2.128".parse().unwrap(), 25).unwrap();
        assert!(set.covers("192.0.2.200".parse().unwrap()));
        assert!(!set.covers("192.0.2.1".parse().unwrap()));
        assert!(!set.covers("::1".parse().unwrap()));
        let set = Destinations::prefix("2001:db8::".parse().unwrap(), 32).unwrap();
        assert!(set.covers("2001:db8:7::1".parse().unwrap()));
        assert!(!set.covers("2001:db9::1".parse().unwrap()));
        let all = Destinations::prefix("0.0.0.0".parse().unwrap(), 0).unwrap();
        assert!(all.covers("255.0.0.1".parse().unwrap()) && !all.covers("::".parse().unwrap()));
        assert_eq!(Destinations::prefix("0.0.0.0".parse().unwrap(), 33), None);
    }
}

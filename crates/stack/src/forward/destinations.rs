//! Sets of destinations, by which a forwarder selects flows.

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use linerate_wire::IpCidr;

/// A set of destinations: one network or all addresses, each with a range of ports or all ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destinations {
    /// The network that contains all addresses of the set; `None` if the set contains all IPv4 and
    /// IPv6 addresses.
    network: Option<IpCidr>,
    first_port: u16,
    last_port: u16,
}

impl Destinations {
    /// All addresses of both IP versions, with all ports.
    pub const EVERYTHING: Self = Self { network: None, first_port: 0, last_port: u16::MAX };

    /// Returns the addresses of a network, with all ports. A network contains addresses of one IP
    /// version only: `::/0` excludes IPv4. For a port at all addresses of both versions, use
    /// `Destinations::EVERYTHING.with_ports(80..=80)`.
    ///
    /// ```
    /// use linerate_stack::Destinations;
    ///
    /// let web = Destinations::network("10.0.0.0/8".parse()?).with_ports(443..=443);
    /// assert!(web.contains("10.1.2.3:443".parse()?) && !web.contains("10.1.2.3:80".parse()?));
    /// assert!(!web.contains("[::1]:443".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn network(network: IpCidr) -> Self {
        Self { network: Some(network), ..Self::EVERYTHING }
    }

    /// Restricts the destinations to a range of ports.
    #[must_use]
    pub fn with_ports(self, ports: RangeInclusive<u16>) -> Self {
        Self { first_port: *ports.start(), last_port: *ports.end(), ..self }
    }

    /// Returns whether the set contains this destination.
    #[must_use]
    pub fn contains(&self, destination: SocketAddr) -> bool {
        (self.first_port..=self.last_port).contains(&destination.port())
            && self.covers(destination.ip())
    }

    /// Returns whether the set contains this address with at least one port.
    pub(crate) fn covers(&self, address: IpAddr) -> bool {
        self.network.is_none_or(|network| network.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_covers_its_addresses_only() {
        let covers = |network: &str, address: &str| {
            Destinations::network(network.parse().unwrap()).covers(address.parse().unwrap())
        };
        assert!(covers("192.0.2.128/25", "192.0.2.200"));
        assert!(!covers("192.0.2.128/25", "192.0.2.1"));
        assert!(!covers("192.0.2.128/25", "::1"));
        assert!(covers("2001:db8::/32", "2001:db8:7::1"));
        assert!(!covers("2001:db8::/32", "2001:db9::1"));
        assert!(covers("0.0.0.0/0", "255.0.0.1"));
        assert!(!covers("0.0.0.0/0", "::"));
        assert!(Destinations::EVERYTHING.covers("::".parse().unwrap()));
    }
}

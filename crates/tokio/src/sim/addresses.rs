//! The addresses of hosts. Each address is derived from the number of its host. So runs with equal
//! seeds have equal addresses, and finding the receiver of a packet needs no table.

use linerate_stack::StackConfig;
use linerate_wire::{IpCidr, MacAddress};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The largest number of hosts.
pub(super) const MOST_HOSTS: usize = 65_000;

/// The IP versions of a network. Each host has one address of each version.
///
/// ```
/// use linerate_tokio::sim::{IpVersions, Network};
///
/// let network = Network::builder().ip_versions(IpVersions::V6).build();
/// let host = network.host("host");
/// assert!(host.ipv4().is_none() && host.ipv6().is_some());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersions {
    /// IPv4 and IPv6.
    #[default]
    Both,
    /// Only IPv4.
    V4,
    /// Only IPv6.
    V6,
}

impl IpVersions {
    pub(super) fn ipv4(self, host: usize) -> Option<Ipv4Addr> {
        let [high, low] = suffix(host).to_be_bytes();
        (self != Self::V6).then_some(Ipv4Addr::new(10, 0, high, low))
    }

    /// Returns the IPv6 address of a host, which is a unique local address (RFC 4193). It has a
    /// lower precedence than an IPv4 address (RFC 6724 §2.1), so a connection by name tries IPv4
    /// first. Therefore the first attempt also reaches a server that listens only on IPv4.
    pub(super) fn ipv6(self, host: usize) -> Option<Ipv6Addr> {
        (self != Self::V4).then_some(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, suffix(host)))
    }

    /// Returns all addresses of a host except the link-local one.
    pub(super) fn of(self, host: usize) -> Vec<IpAddr> {
        let addresses = [self.ipv4(host).map(IpAddr::from), self.ipv6(host).map(IpAddr::from)];
        addresses.into_iter().flatten().collect()
    }
}

/// Returns the configuration of a host. Its addresses are usable at once: on a link without MAC
/// addresses, a host neither detects duplicate addresses nor reports solicited-node groups.
pub(super) fn config(versions: IpVersions, host: usize) -> StackConfig {
    let [high, low] = suffix(host).to_be_bytes();
    let mut config = StackConfig::unconfigured(MacAddress::new([2, 0, 0, 0, high, low]));
    let network = |address: IpAddr| {
        let length = if address.is_ipv4() { 8 } else { 64 };
        IpCidr::new(address, length).unwrap_or_else(|| IpCidr::single(address))
    };
    config.addresses = versions.of(host).into_iter().map(network).collect();
    config
}

/// Returns the number of the host to which this address belongs; `None` if no host can have the
/// address. The network need not have a host with this number.
pub(super) fn host_at(address: IpAddr) -> Option<usize> {
    let suffix = match address {
        IpAddr::V4(address) => match address.octets() {
            [10, 0, high, low] => u16::from_be_bytes([high, low]),
            _ => 0,
        },
        IpAddr::V6(address) => match address.segments() {
            // The first pattern is the unique local address. The second is the link-local address
            // that is derived from the MAC address (RFC 2464 §5).
            [0xfd00, 0, 0, 0, 0, 0, 0, suffix] | [0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, suffix] => {
                suffix
            }
            _ => 0,
        },
    };
    usize::from(suffix).checked_sub(1)
}

/// Returns the last sixteen bits of the addresses of a host, which are never zero.
fn suffix(host: usize) -> u16 {
    u16::try_from(host + 1).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_stack::Stack;

    #[test]
    fn the_number_of_a_host_follows_from_each_of_its_addresses() {
        for host in [0, 1, 255, 256, MOST_HOSTS - 1] {
            let stack = Stack::new(config(IpVersions::Both, host), [1; 32]);
            let addresses: Vec<_> =
                stack.addresses().iter().map(|own| own.cidr.address()).collect();
            assert_eq!(addresses.len(), 3, "{addresses:?}");
            for address in addresses {
                assert_eq!(host_at(address), Some(host), "{address}");
            }
        }
        for other in ["10.0.0.0", "10.1.0.1", "fd00::", "fd00::1:1", "fe80::1", "ff02::1"] {
            assert_eq!(host_at(other.parse().unwrap()), None, "{other}");
        }
    }
}

//! Zones of IPv6 addresses (RFC 4007). A zone is the number of the interface to which a link-local
//! address belongs.

use core::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

/// The number of the first interface of a host. This number is also the zone of the link-local
/// addresses of the interface.
pub const FIRST_INTERFACE: u32 = 1;

/// Does the address need a zone? Link-local unicast addresses and multicast groups of
/// interface-local or link-local scope do.
pub(crate) const fn needs_zone(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.octets();
    address.is_unicast_link_local() || (first == 0xff && matches!(second & 0xf, 1 | 2))
}

/// Converts an address and port from a packet to a socket address. The zone is `interface` if the
/// address needs a zone.
pub(crate) const fn with_zone(end: SocketAddr, interface: u16) -> SocketAddr {
    match end {
        SocketAddr::V6(end) if needs_zone(*end.ip()) => {
            SocketAddr::V6(SocketAddrV6::new(*end.ip(), end.port(), 0, interface as u32))
        }
        end => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn only_addresses_of_a_link_have_a_zone() {
        let shown = |text: &str| with_zone(text.parse().unwrap(), 7).to_string();
        assert_eq!(shown("[fe80::1]:7"), "[fe80::1%7]:7");
        assert_eq!(shown("[febf::1]:7"), "[febf::1%7]:7");
        assert_eq!(shown("[ff02::1]:7"), "[ff02::1%7]:7");
        for text in ["[2001:db8::1]:7", "169.254.1.1:7", "[::1]:7", "[ff0e::1]:7", "[fec0::1]:7"] {
            assert_eq!(shown(text), text);
        }
    }
}

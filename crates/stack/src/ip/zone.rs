//! Zones of IPv6 addresses (RFC 4007): the interface on which a link-local address is meant.

use crate::error::Error;
use core::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

/// The index of the first interface of a host, which is the zone of its link-local addresses.
pub const FIRST_INTERFACE: u32 = 1;

/// Is the address meaningful only within a zone? Link-local unicast addresses are, and groups of
/// the scope of an interface or of a link.
const fn needs_zone(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.octets();
    address.is_unicast_link_local() || (first == 0xff && matches!(second & 0xf, 1 | 2))
}

/// Checks that the zone (`scope_id`) of an address is an interface of the host. Zero stands for the
/// only interface. The zone of an address that is not link-local is ignored, as in Linux.
pub(crate) const fn check_zone(given: &SocketAddrV6) -> Result<(), Error> {
    let zone = given.scope_id();
    if zone == 0 || zone == FIRST_INTERFACE || !needs_zone(*given.ip()) {
        return Ok(());
    }
    Err(Error::UnknownZone { address: *given.ip(), zone })
}

/// Adds the zone to the address of a packet, if it is link-local.
pub(crate) const fn with_zone(end: SocketAddr) -> SocketAddr {
    match end {
        SocketAddr::V6(end) if needs_zone(*end.ip()) => {
            SocketAddr::V6(SocketAddrV6::new(*end.ip(), end.port(), 0, FIRST_INTERFACE))
        }
        end => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn given(text: &str) -> SocketAddrV6 {
        text.parse().unwrap()
    }

    #[test]
    fn the_zone_of_a_link_local_address_is_the_only_interface() {
        for text in ["[fe80::1]:7", "[fe80::1%1]:7", "[ff02::fb%1]:7", "[ff01::1]:7"] {
            assert_eq!(check_zone(&given(text)), Ok(()), "{text}");
        }
        for text in ["[fe80::1%2]:7", "[febf::1%4294967295]:7", "[ff12::1%9]:7"] {
            let given = given(text);
            let refused = Error::UnknownZone { address: *given.ip(), zone: given.scope_id() };
            assert_eq!(check_zone(&given), Err(refused), "{text}");
        }
    }

    #[test]
    fn only_addresses_of_a_link_have_a_zone() {
        for text in ["[2001:db8::1%9]:7", "[::1%9]:7", "[ff05::2%9]:7", "[fec0::1%9]:7"] {
            assert_eq!(check_zone(&given(text)), Ok(()), "{text}");
        }
        let shown = |text: &str| with_zone(text.parse().unwrap()).to_string();
        assert_eq!(shown("[fe80::1]:7"), "[fe80::1%1]:7");
        assert_eq!(shown("[ff02::1]:7"), "[ff02::1%1]:7");
        for text in ["[2001:db8::1]:7", "169.254.1.1:7", "[::1]:7", "[ff0e::1]:7"] {
            assert_eq!(shown(text), text);
        }
    }
}

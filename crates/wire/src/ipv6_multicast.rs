//! IPv6 multicast addresses of Neighbour Discovery (RFC 4291 §2.7.1).

use core::net::Ipv6Addr;

/// The group of all hosts and routers on the link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// The group of all routers on the link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// The first 104 bits of every solicited-node multicast address.
const SOLICITED_NODE: [u8; 13] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff];

/// Returns the solicited-node multicast address of `address`. Hosts whose addresses end in the same
/// 24 bits share it.
#[must_use]
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    let low = u16::from_be_bytes([b, c]);
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | a as u16, low)
}

/// Is this a solicited-node multicast address?
#[must_use]
pub fn is_solicited_node(address: Ipv6Addr) -> bool {
    address.octets().starts_with(&SOLICITED_NODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solicited_node_address_is_that_of_rfc_4291() {
        let address = "4037::01:800:200e:8c6c".parse().unwrap();
        let group: Ipv6Addr = "ff02::1:ff0e:8c6c".parse().unwrap();
        assert_eq!(solicited_node(address), group);
        assert!(is_solicited_node(group));
        assert!(!is_solicited_node(ALL_NODES) && !is_solicited_node(address));
    }
}

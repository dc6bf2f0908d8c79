//! Ethernet: neighbours and address resolution by ARP.

pub(crate) mod neighbor;

//! Neighbours on an Ethernet, and the ARP requests that find them.

pub(crate) mod neighbor;

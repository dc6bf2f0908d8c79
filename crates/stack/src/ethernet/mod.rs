//! Neighbours on an Ethernet, and the resolution of their MAC addresses.

pub(crate) mod neighbor;

//! The hosts and routers on the Ethernet link (neighbours), and the resolution of their MAC
//! addresses.

pub(crate) mod neighbor;

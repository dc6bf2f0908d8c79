//! Parameters of a bulk transfer between two tasks: the source sends, the sink receives.

use linerate_tcp::Config;
use std::net::SocketAddr;

/// Parameters of a bulk transfer, which source and sink share.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    /// Name of the transfer in the scenario.
    pub(crate) name: String,
    /// Address where the sink listens.
    pub(crate) address: SocketAddr,
    /// Local address of the source; `None` if the host chooses the port.
    pub(crate) local: Option<SocketAddr>,
    /// Number of bytes to transfer.
    pub(crate) bytes: u64,
    /// Number of bytes that the source passes to each write.
    pub(crate) write_size: usize,
    /// Size in bytes of the largest IP packet that the sender's NIC segments (TSO); zero without
    /// TSO.
    pub(crate) gso_max_size: usize,
    /// Number of bytes that the sink requests from each read.
    pub(crate) read_size: usize,
    /// Whether the sink compares the received bytes with the sent ones.
    pub(crate) verify: bool,
    /// TCP configuration of the connection.
    pub(crate) config: Config,
}

//! Parameters of a bulk transfer from one task to another.

use linerate_tcp::Config;
use std::net::SocketAddrV4;

/// The parameters of a bulk transfer, which both ends know.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    /// Name of the transfer in the scenario.
    pub(crate) name: String,
    /// Address where the sink listens.
    pub(crate) address: SocketAddrV4,
    /// Local address of the source, or `None` if the host chooses the port.
    pub(crate) local: Option<SocketAddrV4>,
    /// Bytes to transfer.
    pub(crate) bytes: u64,
    /// Bytes of a write.
    pub(crate) write_size: usize,
    /// Bytes of the largest packet that the sender's NIC segments (TSO); zero without TSO.
    pub(crate) gso_max_size: usize,
    /// Buffer size of a read.
    pub(crate) read_size: usize,
    /// Whether the received bytes are verified.
    pub(crate) verify: bool,
    /// Configuration of the connection.
    pub(crate) config: Config,
}

//! A bulk transfer: as many bytes as it takes, from one task to another.

use linerate_tcp::Config;
use std::net::SocketAddrV4;

/// What both ends of a transfer know of it.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    /// Its name in the scenario.
    pub(crate) name: String,
    /// Where the sink listens.
    pub(crate) address: SocketAddrV4,
    /// Where the source connects from, if that is not left to its host.
    pub(crate) local: Option<SocketAddrV4>,
    /// Bytes to transfer.
    pub(crate) bytes: u64,
    /// Bytes of a write.
    pub(crate) write_size: usize,
    /// Bytes of the largest packet that the sender's card cuts into segments; zero if it cuts none.
    pub(crate) super_packet: usize,
    /// Bytes asked for by a read.
    pub(crate) read_size: usize,
    /// Compare what arrives?
    pub(crate) verify: bool,
    /// The rules of the connection.
    pub(crate) config: Config,
}

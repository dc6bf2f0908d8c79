//! Parameters of a dialogue: a typist types the next character when the last one has been echoed.

use linerate_tcp::Config;
use std::net::SocketAddrV4;

/// The parameters of a dialogue, which both ends know.
#[derive(Clone, Debug)]
pub(crate) struct Dialogue {
    /// Name of the dialogue in the scenario.
    pub(crate) name: String,
    /// Address where the echo server listens.
    pub(crate) address: SocketAddrV4,
    /// Local address of the typist, or `None` if the host chooses the port.
    pub(crate) local: Option<SocketAddrV4>,
    /// Number of characters to type.
    pub(crate) characters: u64,
    /// Configuration of the connection.
    pub(crate) config: Config,
}

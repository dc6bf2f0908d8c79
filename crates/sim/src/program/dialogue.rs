//! Parameters of a dialogue: a typist sends one character at a time and waits for its echo.

use linerate_tcp::Config;
use std::net::SocketAddr;

/// Parameters of a dialogue, which typist and echo server share.
#[derive(Clone, Debug)]
pub(crate) struct Dialogue {
    /// Name of the dialogue in the scenario.
    pub(crate) name: String,
    /// Address where the echo server listens.
    pub(crate) address: SocketAddr,
    /// Local address of the typist; `None` if the host chooses the port.
    pub(crate) local: Option<SocketAddr>,
    /// Number of characters to type.
    pub(crate) characters: u64,
    /// TCP configuration of the connection.
    pub(crate) config: Config,
}

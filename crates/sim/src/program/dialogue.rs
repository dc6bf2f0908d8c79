//! A dialogue: a typist who types the next character when the last one has been echoed.

use linerate_tcp::Config;
use std::net::SocketAddrV4;

/// What both ends know of it.
#[derive(Clone, Debug)]
pub(crate) struct Dialogue {
    /// Its name in the scenario.
    pub(crate) name: String,
    /// Where the echo listens.
    pub(crate) address: SocketAddrV4,
    /// Where the typist connects from, if that is not left to its host.
    pub(crate) local: Option<SocketAddrV4>,
    /// Characters to type.
    pub(crate) characters: u64,
    /// The rules of the connection.
    pub(crate) config: Config,
}

//! Options for opening a TCP connection.

use core::net::SocketAddr;
use linerate_tcp::Config;

/// Options for opening a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectOptions {
    /// Local address and port; `None` lets the host choose both. The host also chooses an address
    /// that is unspecified, and a port that is zero.
    pub local: Option<SocketAddr>,
    /// Configuration of the connection; `None` for the default configuration of the host.
    pub config: Option<Config>,
    /// Whether to use TCP Fast Open (RFC 7413). If the server has granted a cookie to this host
    /// before, the SYN carries the data that the application writes before the SYN is sent.
    /// Otherwise the SYN requests a cookie for later connections. The server may receive the data
    /// of the SYN twice, so the application's request must be idempotent (RFC 7413 §6.1).
    pub fast_open: bool,
}

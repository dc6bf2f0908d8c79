//! Options for opening a TCP connection.

use core::net::SocketAddr;
use linerate_tcp::Config;

/// Options for opening a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectOptions {
    /// Local address and port. For an unspecified address the host chooses one, and for port zero
    /// it chooses a port.
    pub local: Option<SocketAddr>,
    /// Configuration of the connection; `None` for the default of the host.
    pub config: Option<Config>,
    /// Whether to use TCP Fast Open (RFC 7413). If the server has granted a cookie, the SYN carries
    /// the data that are written before it is sent, otherwise it requests a cookie. The server may
    /// receive the data twice, so the request must be idempotent (§6.1).
    pub fast_open: bool,
}

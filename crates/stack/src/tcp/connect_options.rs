//! Options for opening a TCP connection.

use core::net::SocketAddr;
use linerate_tcp::Config;

/// Options for opening a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectOptions {
    /// Local address and port; `None` lets the host choose both. The host also chooses the address
    /// if it is unspecified, and the port if it is zero.
    pub local: Option<SocketAddr>,
    /// Configuration of the connection; `None` for the default configuration of the host.
    pub config: Option<Config>,
    /// Whether to use TCP Fast Open (RFC 7413). If the server has granted a cookie, the SYN carries
    /// the data that the application writes before the SYN is sent. Otherwise the SYN requests a
    /// cookie. The server may receive the data of the SYN twice, so the request must be idempotent
    /// (RFC 7413 §6.1).
    pub fast_open: bool,
}

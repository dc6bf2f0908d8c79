//! The options of an outgoing TCP connection.

use core::net::SocketAddr;
use linerate_tcp::Config;

/// The options of an outgoing TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectOptions {
    /// The local address and port. An unspecified address leaves the choice to the
    /// host, and port zero the port.
    pub local: Option<SocketAddr>,
    /// The configuration, if it differs from the default of the host.
    pub config: Option<Config>,
    /// Use TCP Fast Open (RFC 7413)? The SYN then carries the data that is written before it
    /// leaves, if the server has granted a cookie, and otherwise requests a cookie. The server may
    /// receive the data twice, so the request must be idempotent (§6.1).
    pub fast_open: bool,
}

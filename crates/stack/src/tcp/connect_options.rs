//! Options of a TCP connection that is opened.

use core::net::SocketAddrV4;
use linerate_tcp::Config;

/// How a connection is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectOptions {
    /// The address and port to speak from. 0.0.0.0 leaves the address to the host, and port zero the
    /// port.
    pub local: Option<SocketAddrV4>,
    /// The rules of the connection, if not those of the host's configuration.
    pub config: Option<Config>,
    /// Bring what is written before the SYN leaves with the SYN, if the server has given a cookie before, and
    /// else ask it for one (TCP Fast Open, RFC 7413). The server may get it twice, so this is only for
    /// requests to which that makes no difference (§6.1).
    pub fast_open: bool,
}

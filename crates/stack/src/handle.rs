//! Handles by which an application refers to its sockets.

use crate::collections::slab::Key;

/// The handle of a TCP connection. It becomes invalid when the application closes it, even if its
/// slot is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpHandle(pub(crate) Key);

impl TcpHandle {
    /// Returns the slot of the connection, which can be reused later.
    pub(crate) const fn index(self) -> u32 {
        self.0.index()
    }
}

/// The handle of a deferred handshake of a forwarder. It becomes invalid when the handshake is
/// answered or cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeferredHandle(pub(crate) Key);

/// The handle of a listener. It becomes invalid when the listener is closed, even if its slot is
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenHandle(pub(crate) Key);

/// The handle of a UDP socket. It becomes invalid when the socket is closed, even if its slot is
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpHandle(pub(crate) Key);

/// The handle of a raw socket. It becomes invalid when the socket is closed, even if its slot is
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawHandle(pub(crate) Key);

//! Handles by which an application refers to its sockets.

use crate::collections::slab::Key;

/// The handle of a TCP connection. The handle becomes invalid when the application closes the
/// connection, and stays invalid if the slot of the connection is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpHandle(pub(crate) Key);

impl TcpHandle {
    /// Returns the index of the connection's slot, which another socket can reuse later.
    pub(crate) const fn index(self) -> u32 {
        self.0.index()
    }
}

/// The handle of a deferred handshake of a forwarder. The handle becomes invalid when the handshake
/// is answered or cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeferredHandle(pub(crate) Key);

/// The handle of a listener. The handle becomes invalid when the listener is closed, and stays
/// invalid if the slot of the listener is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenHandle(pub(crate) Key);

/// The handle of a UDP socket. The handle becomes invalid when the socket is closed, and stays
/// invalid if the slot of the socket is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpHandle(pub(crate) Key);

/// The handle of a raw socket. The handle becomes invalid when the socket is closed, and stays
/// invalid if the slot of the socket is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawHandle(pub(crate) Key);

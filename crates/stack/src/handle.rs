//! Handles by which an application names its sockets.

use crate::collections::slab::Key;

/// Names a TCP connection. One that the application has let go of names nothing any more, even if its
/// place is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpHandle(pub(crate) Key);

impl TcpHandle {
    /// The place of the connection. Another one may have it later.
    pub(crate) const fn index(self) -> u32 {
        self.0.index()
    }
}

/// Names a listener. One that was closed names nothing any more, even if its place is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenHandle(pub(crate) Key);

/// Names a UDP socket. One that was closed names nothing any more, even if its place is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpHandle(pub(crate) Key);

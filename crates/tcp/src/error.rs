//! The reasons why a call fails or a connection has ended.

use crate::compact::pack::packed_enum;
use thiserror::Error;

/// The reason why a call fails or the connection has ended. Each variant shows which party is the
/// cause: the application, the peer or the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to read yet. The application can try again after
    /// [`crate::Event::Readable`].
    #[error("nothing has arrived yet: try again after the next readable event")]
    WouldBlock,
    /// The application has shut down the direction that this call needs.
    #[error("this direction was shut down by the application itself")]
    Shutdown,
    /// The peer answered our SYN by a reset, because no program listens on that port.
    #[error("the peer refused the connection: nothing listens on that port")]
    Refused,
    /// The peer reset the connection.
    #[error("the peer reset the connection")]
    Reset,
    /// The application aborted the connection.
    #[error("the connection was aborted by the application")]
    Aborted,
    /// The peer has not answered within the time that the configuration allows.
    #[error("the peer has stopped answering: retransmissions went unanswered for too long")]
    TimedOut,
    /// A router or the peer's host has reported that the peer cannot be reached.
    #[error("the network reports that the peer cannot be reached")]
    Unreachable,
    /// The peer sent data after the application had closed the connection. This data could not be
    /// delivered, so the connection was reset.
    #[error("the peer sent data after the application had closed: the connection was reset")]
    DataAfterClose,
    /// The peer has requested two ECN modes that exclude each other (RFC 9768 §3.1.5).
    #[error("the peer contradicted itself in the handshake: the connection was reset")]
    Contradiction,
    /// The host has lost the local address of the connection, and must not send from it any more.
    #[error("the host has lost the address of this end: open a new connection")]
    AddressRemoved,
}

packed_enum!(Error {
    WouldBlock,
    Shutdown,
    Refused,
    Reset,
    Aborted,
    TimedOut,
    Unreachable,
    DataAfterClose,
    Contradiction,
    AddressRemoved
});

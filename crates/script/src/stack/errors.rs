//! Converts the host's errors to error numbers of BSD sockets.

use crate::syntax::Errno;
use linerate_stack::Error;

/// Returns the errno for an error of the host.
pub(super) const fn errno(error: Error) -> Errno {
    match error {
        Error::Closed => Errno::BADF,
        Error::WouldBlock => Errno::AGAIN,
        Error::AddressInUse(_) => Errno::ADDRINUSE,
        Error::AddressNotOurs(_) | Error::NoAddress | Error::PortsExhausted(_) => {
            Errno::ADDRNOTAVAIL
        }
        Error::NoRoute(_) => Errno::NETUNREACH,
        Error::TooManySockets { .. } => Errno::NOBUFS,
        Error::MessageTooLong { .. } => Errno::MSGSIZE,
        Error::NotConnected => Errno::NOTCONN,
        Error::Refused => Errno::CONNREFUSED,
        Error::Unreachable => Errno::HOSTUNREACH,
        Error::Tcp(error) => of_connection(error),
        _ => Errno::INVAL,
    }
}

/// Returns the errno for an error of a connection.
pub(super) const fn of_connection(error: linerate_tcp::Error) -> Errno {
    match error {
        linerate_tcp::Error::WouldBlock => Errno::AGAIN,
        linerate_tcp::Error::Shutdown => Errno::PIPE,
        linerate_tcp::Error::Refused => Errno::CONNREFUSED,
        linerate_tcp::Error::Aborted => Errno::CONNABORTED,
        linerate_tcp::Error::TimedOut => Errno::TIMEDOUT,
        linerate_tcp::Error::Unreachable => Errno::HOSTUNREACH,
        // `Reset`, and the errors for which there is no errno: data after the close, contradictory
        // ECN modes, and a local address that was removed.
        _ => Errno::CONNRESET,
    }
}

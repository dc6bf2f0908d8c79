//! The conversion of errors to the [`std::io::ErrorKind`] that sockets of the operating system
//! return.

use crate::error::Error;
use std::io::ErrorKind;

impl Error {
    /// Returns the [`ErrorKind`] that a `std::net` socket would report for this error.
    ///
    /// ```
    /// use std::io::ErrorKind;
    ///
    /// assert_eq!(linerate_stack::Error::Refused.kind(), ErrorKind::ConnectionRefused);
    /// ```
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::WouldBlock => ErrorKind::WouldBlock,
            Self::Closed | Self::NotConnected => ErrorKind::NotConnected,
            Self::AddressInUse(_) | Self::AlreadyJoined(_) => ErrorKind::AddrInUse,
            Self::AddressNotOurs(_)
            | Self::NoAddress
            | Self::PortsExhausted(_)
            | Self::UnknownInterface(_)
            | Self::NotJoined(_) => ErrorKind::AddrNotAvailable,
            Self::NoRoute(_) | Self::OnlyIpv6(_) | Self::UnknownZone { .. } => {
                ErrorKind::NetworkUnreachable
            }
            Self::NotIpv6(_) | Self::OnlyInterface => ErrorKind::Unsupported,
            Self::InvalidDestination(_)
            | Self::OtherVersion { .. }
            | Self::MappedBind(_)
            | Self::MissingZone(_)
            | Self::UnusableAddress(_)
            | Self::NotAGroup(_)
            | Self::Loopback(_)
            | Self::MessageTooLong { .. }
            | Self::OtherShard { .. } => ErrorKind::InvalidInput,
            Self::BroadcastForbidden(_) => ErrorKind::PermissionDenied,
            Self::TooManySockets { .. }
            | Self::TooManyAddresses { .. }
            | Self::TooManyInterfaces { .. }
            | Self::TooManyGroups { .. }
            | Self::TooManySources { .. } => ErrorKind::QuotaExceeded,
            Self::Refused => ErrorKind::ConnectionRefused,
            Self::Unreachable => ErrorKind::HostUnreachable,
            Self::Tcp(error) => kind_of_ended(*error),
        }
    }
}

const fn kind_of_ended(error: linerate_tcp::Error) -> ErrorKind {
    use linerate_tcp::Error as Tcp;
    match error {
        Tcp::WouldBlock => ErrorKind::WouldBlock,
        Tcp::Shutdown => ErrorKind::BrokenPipe,
        Tcp::Refused => ErrorKind::ConnectionRefused,
        Tcp::Reset => ErrorKind::ConnectionReset,
        Tcp::Aborted | Tcp::DataAfterClose | Tcp::Contradiction | Tcp::AddressRemoved => {
            ErrorKind::ConnectionAborted
        }
        Tcp::TimedOut => ErrorKind::TimedOut,
        Tcp::Unreachable => ErrorKind::HostUnreachable,
        _ => ErrorKind::Other,
    }
}

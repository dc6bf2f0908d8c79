//! Why there is no TAP device, and how to get it.

use super::{DEVICE, MOST_QUEUES};
use crate::kernel_interface::InterfaceError;
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// Why there is no TAP device. The machine or the person who runs it can mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TapError {
    /// The kernel has no such devices, or the container does not show them.
    #[error(
        "there is no {DEVICE}: load the module (`modprobe tun`), or pass the device to the container (`--device {DEVICE}`)"
    )]
    NoDevice,
    /// The device belongs to somebody else.
    #[error(
        "no permission to open {DEVICE}: run as root, or let users have it (`chmod 0666 {DEVICE}`)"
    )]
    DeviceForbidden,
    /// The device may be opened, and no interface may be made.
    #[error(
        "no permission to have the interface `{name}`: run as root, or in a user and network namespace of your own"
    )]
    InterfaceForbidden {
        /// The interface.
        name: String,
    },
    /// Somebody else holds the interface.
    #[error(
        "the interface `{name}` is in use by another program: choose another name, or end that program"
    )]
    Busy {
        /// The interface.
        name: String,
    },
    /// There is an interface of that name that is of another kind.
    #[error(
        "the interface `{name}` exists and is not of the kind, or not for as many queues as, was asked for: choose another name"
    )]
    Kind {
        /// The interface.
        name: String,
    },
    /// The caller asked for no queue at all, or for too many.
    #[error("an interface cannot have {0} queues: choose 1 to {MOST_QUEUES}")]
    Queues(usize),
    /// The interface is there and cannot be set up as it was asked for.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The kernel knows the device and not the offloads.
    #[error(
        "the kernel grants {DEVICE} no offloads (error {errno}: {}): open the interface without them",
        io::Error::from_raw_os_error(*errno)
    )]
    Offloads {
        /// The error number of the system.
        errno: i32,
    },
    /// The system refused for another reason.
    #[error("the system could not open {DEVICE} (error {errno}: {})", io::Error::from_raw_os_error(*errno))]
    Open {
        /// The error number of the system.
        errno: i32,
    },
}

impl TapError {
    pub(super) fn of_attaching(name: &str, errno: Errno) -> Self {
        let name = name.to_owned();
        match errno {
            Errno::PERM => Self::InterfaceForbidden { name },
            Errno::BUSY => Self::Busy { name },
            Errno::INVAL => Self::Kind { name },
            _ => Self::Open { errno: errno.raw_os_error() },
        }
    }
}

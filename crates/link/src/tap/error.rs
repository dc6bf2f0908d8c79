//! The errors of opening a TAP or TUN device.

use crate::kernel_interface::InterfaceError;
use crate::sys::tap::{DEVICE, MOST_QUEUES};
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// The reason why a TAP or TUN device cannot be opened, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TapError {
    /// The kernel has no TUN support, or the container does not expose the device.
    #[error(
        "there is no {DEVICE}: load the module (`modprobe tun`), or pass the device to the \
         container (`--device {DEVICE}`)"
    )]
    NoDevice,
    /// The user has no permission to open `/dev/net/tun`.
    #[error(
        "no permission to open {DEVICE}: run as root, or let users have it (`chmod 0666 {DEVICE}`)"
    )]
    DeviceForbidden,
    /// The user may open `/dev/net/tun`, but has no permission to create the interface or to attach
    /// to it.
    #[error(
        "no permission to have the interface `{name}`: run as root, or in a user and network \
         namespace of your own"
    )]
    InterfaceForbidden {
        /// The name of the interface.
        name: String,
    },
    /// Another program uses the interface.
    #[error(
        "the interface `{name}` is in use by another program: choose another name, or end that \
         program"
    )]
    Busy {
        /// The name of the interface.
        name: String,
    },
    /// The interface exists, but is of another kind than requested or has another number of queues.
    #[error(
        "the interface `{name}` exists, but is of another kind or has another number of queues: \
         choose another name"
    )]
    Kind {
        /// The name of the interface.
        name: String,
    },
    /// The descriptor does not belong to a TUN or TAP device.
    #[error(
        "the descriptor is no TUN device: open {DEVICE}, attach it to an interface, and pass that"
    )]
    NoTap,
    /// The device puts packet information in front of each packet, which this link does not
    /// support.
    #[error("the device was attached without IFF_NO_PI: attach it with that flag")]
    PacketInformation,
    /// The MTU is too small or too large.
    #[error("a TUN device cannot have an MTU of {0} bytes: choose 88 to 65535")]
    Mtu(usize),
    /// The number of queues is zero or too large.
    #[error("an interface cannot have {0} queues: choose 1 to {MOST_QUEUES}")]
    Queues(usize),
    /// The interface cannot be configured.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The kernel does not support the offloads.
    #[error(
        "the kernel grants {DEVICE} no offloads (error {errno}: {}): open the interface without \
         them",
        io::Error::from_raw_os_error(*errno)
    )]
    Offloads {
        /// The error number of the system.
        errno: i32,
    },
    /// Another error of the system.
    #[error(
        "the system could not open {DEVICE} (error {errno}: {})",
        io::Error::from_raw_os_error(*errno)
    )]
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

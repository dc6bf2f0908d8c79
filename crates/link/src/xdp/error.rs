//! The errors of opening an AF_XDP link.

use super::program::MOST_ADDRESSES;
use crate::kernel_interface::InterfaceError;
use std::io;
use thiserror::Error;

/// The reason why an AF_XDP link cannot be opened, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum XdpError {
    /// The process lacks the permission.
    #[error(
        "no permission to {what}: run as root of the machine, or grant the program CAP_NET_ADMIN, \
         CAP_NET_RAW and CAP_BPF"
    )]
    Forbidden {
        /// The failed operation.
        what: &'static str,
    },
    /// The kernel has no support for AF_XDP.
    #[error("this kernel has no AF_XDP: it was built without CONFIG_XDP_SOCKETS")]
    NoXdp,
    /// The driver of the interface does not support XDP programs.
    #[error("the driver of `{name}` cannot {what}: choose another interface, or a packet socket")]
    Driver {
        /// The failed operation.
        what: &'static str,
        /// The name of the interface.
        name: String,
    },
    /// Another program has attached an XDP program to the interface, or uses the queue.
    #[error(
        "could not {what}: another program has queue {queue} of `{name}`; end it, or detach its \
         XDP program (`ip link set {name} xdp off`)"
    )]
    Busy {
        /// The failed operation.
        what: &'static str,
        /// The name of the interface.
        name: String,
        /// The number of the queue.
        queue: u32,
    },
    /// The interface has no queue of this number, or does not support AF_XDP on it.
    #[error("could not {what}: `{name}` has no queue {queue}, see /sys/class/net/{name}/queues")]
    Queue {
        /// The failed operation.
        what: &'static str,
        /// The name of the interface.
        name: String,
        /// The number of the queue.
        queue: u32,
    },
    /// The system grants no memory for the frames that are shared with the kernel.
    #[error("no memory to {what}: raise the limit `ulimit -l`, or take fewer frames")]
    Memory {
        /// The failed operation.
        what: &'static str,
    },
    /// The memory of one frame has no room for the largest packet of the interface.
    #[error("an MTU of {mtu} bytes is too large for AF_XDP: set that of `{name}` to 3822 or less")]
    Mtu {
        /// The name of the interface.
        name: String,
        /// The MTU of the interface.
        mtu: usize,
    },
    /// The number of addresses is zero, or more than the XDP program can compare.
    #[error("a program looks for 1 to {MOST_ADDRESSES} addresses, not for {0}")]
    Addresses(usize),
    /// The number of frames is too small or too large.
    #[error("a socket cannot have {0} frames each way: choose 64 to 65536")]
    Frames(usize),
    /// The number of queues is zero, or queue numbers would overflow.
    #[error("no queue was asked for: give at least one")]
    Queues,
    /// The interface does not exist, is not Ethernet, or cannot be queried.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Another error of the system.
    #[error(
        "the system could not {what} (error {errno}: {})",
        io::Error::from_raw_os_error(*errno)
    )]
    System {
        /// The failed operation.
        what: &'static str,
        /// The error number of the system.
        errno: i32,
    },
}

impl XdpError {
    pub(super) fn of(what: &'static str, interface: &str, queue: u32, error: &io::Error) -> Self {
        let name = interface.to_owned();
        match error.raw_os_error().unwrap_or(0) {
            libc::EPERM | libc::EACCES => Self::Forbidden { what },
            libc::EAFNOSUPPORT => Self::NoXdp,
            libc::EOPNOTSUPP | libc::ENODEV => Self::Driver { what, name },
            libc::EBUSY | libc::EEXIST => Self::Busy { what, name, queue },
            libc::EINVAL => Self::Queue { what, name, queue },
            libc::ENOMEM | libc::ENOBUFS => Self::Memory { what },
            errno => Self::System { what, errno },
        }
    }
}

//! Why there is no link over AF_XDP, and how to get it.

use super::program::MOST_ADDRESSES;
use crate::kernel_interface::InterfaceError;
use std::io;
use thiserror::Error;

/// Why there is no link over AF_XDP. The machine or the person who runs it can mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum XdpError {
    /// The process may not.
    #[error(
        "no permission to {what}: run as root of the machine, or grant the program CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF"
    )]
    Forbidden {
        /// What was to be done.
        what: &'static str,
    },
    /// The kernel was built without.
    #[error("this kernel has no AF_XDP: it was built without CONFIG_XDP_SOCKETS")]
    NoXdp,
    /// The driver takes no programs, or is none of a machine's own network.
    #[error("the driver of `{name}` cannot {what}: choose another interface, or a packet socket")]
    Driver {
        /// What was to be done.
        what: &'static str,
        /// The interface.
        name: String,
    },
    /// Somebody has put a program there already, or has the queue.
    #[error(
        "could not {what}: another program has queue {queue} of `{name}`; end it, or take its program away (`ip link set {name} xdp off`)"
    )]
    Busy {
        /// What was to be done.
        what: &'static str,
        /// The interface.
        name: String,
        /// The queue.
        queue: u32,
    },
    /// There is no such queue, or the interface cannot be used so.
    #[error("could not {what}: `{name}` has no queue {queue}, see /sys/class/net/{name}/queues")]
    Queue {
        /// What was to be done.
        what: &'static str,
        /// The interface.
        name: String,
        /// The queue.
        queue: u32,
    },
    /// The machine grants no memory for frames.
    #[error("no memory to {what}: raise the limit `ulimit -l`, or take fewer frames")]
    Memory {
        /// What was to be done.
        what: &'static str,
    },
    /// The interface's packets do not fit a frame's memory.
    #[error("an MTU of {mtu} bytes is too large for AF_XDP: set that of `{name}` to 3822 or less")]
    Mtu {
        /// The interface.
        name: String,
        /// Its MTU.
        mtu: usize,
    },
    /// The caller has given no address, or too many.
    #[error("a program looks for 1 to {MOST_ADDRESSES} addresses, not for {0}")]
    Addresses(usize),
    /// The caller wants no frames, or too many.
    #[error("a socket cannot have {0} frames each way: choose 64 to 65536")]
    Frames(usize),
    /// The caller wants no queue, or more than there are numbers for.
    #[error("no queue was asked for: give one at least")]
    Queues,
    /// There is no such interface, it is no Ethernet, or it cannot be asked.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The system refused for another reason.
    #[error("the system could not {what} (error {errno}: {})", io::Error::from_raw_os_error(*errno))]
    System {
        /// What was to be done.
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

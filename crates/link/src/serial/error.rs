//! The errors of opening a serial line.

use std::io;
use thiserror::Error;

/// The error for a text that is not the rate of a serial line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no rate of a serial line: write 50 to 4000000 baud, such as 2400 or 115200")]
pub struct ParseBaudError(pub(super) String);

/// The reason why a serial line cannot be opened, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SerialError {
    /// The device does not exist.
    #[error("there is no device {device}: check its name, such as /dev/ttyS0 or /dev/pts/3")]
    NoDevice {
        /// The path of the device.
        device: String,
    },
    /// The user may not open the device.
    #[error("no permission to open {device}: run as root, or join the group of the device")]
    Forbidden {
        /// The path of the device.
        device: String,
    },
    /// The device is not a terminal, but a regular file, for example.
    #[error("{device} is no terminal: name a serial device or a pseudo-terminal")]
    NoTerminal {
        /// The path of the device.
        device: String,
    },
    /// Another program uses the device.
    #[error("{device} is in use by another program: end that program, or name another device")]
    Busy {
        /// The path of the device.
        device: String,
    },
    /// The device does not support the baud rate.
    #[error("{device} does not run at {baud} baud: name one of its rates")]
    Baud {
        /// The path of the device.
        device: String,
        /// The requested rate.
        baud: u32,
    },
    /// The baud rate is not one of those that serial lines support.
    #[error("a serial line cannot have {0} baud: choose 50 to 4000000")]
    BaudRange(u32),
    /// The MTU is too small or too large.
    #[error("a serial line cannot have an MTU of {0} bytes: choose 88 to 1500")]
    Mtu(usize),
    /// Another error of the system.
    #[error("{device} could not be opened ({}): see `dmesg`", io::Error::from_raw_os_error(*errno))]
    Open {
        /// The path of the device.
        device: String,
        /// The error number of the system.
        errno: i32,
    },
}

impl SerialError {
    pub(super) fn of_opening(device: &str, error: &io::Error) -> Self {
        let device = device.to_owned();
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::NotFound, _) => Self::NoDevice { device },
            (io::ErrorKind::PermissionDenied, _) => Self::Forbidden { device },
            (io::ErrorKind::ResourceBusy, _) => Self::Busy { device },
            (io::ErrorKind::IsADirectory, _) => Self::NoTerminal { device },
            (_, errno) => Self::Open { device, errno: errno.unwrap_or(0) },
        }
    }
}

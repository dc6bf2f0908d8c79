//! Capture files: packets with their times, as tcpdump and Wireshark write and read them.
//!
//! Written is pcapng (draft-ietf-opsawg-pcapng) with nanoseconds and the direction of each packet; read
//! are pcapng and the older pcap, of either byte order. Both work on one packet at a time, so the size
//! of a file does not matter.

mod file;
mod layout;
mod pcap;
mod pcapng;
mod read;
mod write;

pub use file::CaptureFile;
pub use read::{CaptureError, CaptureReader, Packet};
pub use write::{CaptureWriter, Record, Sink};

use linerate_stack::Medium;

/// What the packets of a capture begin with, by the numbers of <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// An Ethernet header.
    Ethernet,
    /// The IP header.
    Ip,
    /// Something else.
    Other(u16),
}

impl LinkType {
    /// The type for a link of this medium.
    #[must_use]
    pub const fn of(medium: Medium) -> Self {
        match medium {
            Medium::Ethernet => Self::Ethernet,
            Medium::Ip => Self::Ip,
        }
    }

    const fn number(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::Ip => 101,
            Self::Other(number) => number,
        }
    }

    const fn from_number(number: u16) -> Self {
        match number {
            1 => Self::Ethernet,
            // Raw, and the two that say which version it is.
            101 | 228 | 229 => Self::Ip,
            other => Self::Other(other),
        }
    }
}

/// Which way a packet went, seen from the host whose link was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the host.
    Received,
    /// From the host.
    Sent,
}

#[cfg(test)]
mod tests;

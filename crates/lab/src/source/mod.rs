//! `linerate source`: makes bytes as fast as they are taken, for a sink it connects to or for whoever
//! connects.
//!
//! Plain peers get the characters of RFC 864 and not a byte besides. A linerate sink can be asked to
//! compare: then the bytes are those of a pattern that knows each byte's place.

mod fountain;
mod offer;

pub use fountain::{Drawn, Event, Fountain};
pub use offer::{Delivered, SourceError, give, give_verified};

use linerate_units::Duration;
use rustix::net::sockopt;
use std::num::{NonZeroU32, NonZeroU64};
use std::os::fd::AsFd;

/// How much a source gives, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Bytes on a connection; none goes on until the peer has enough.
    pub bytes: Option<NonZeroU64>,
    /// Time on a connection; none goes on until the peer has enough.
    pub max_time: Option<Duration>,
    /// Bytes that a write offers.
    pub write_size: NonZeroU32,
    /// The socket's send buffer, in bytes as asked for; none leaves it to the kernel's tuning.
    pub send_buffer: Option<NonZeroU64>,
}

impl Supply {
    fn limit(&self) -> u64 {
        self.bytes.map_or(u64::MAX, NonZeroU64::get)
    }

    fn write_length(&self) -> usize {
        usize::try_from(self.write_size.get()).unwrap_or(usize::MAX)
    }

    fn max_time(&self) -> std::time::Duration {
        self.max_time.map_or(std::time::Duration::MAX, Into::into)
    }
}

/// Refuses a buffer that the kernel has clipped.
fn check_send_buffer(socket: impl AsFd, supply: &Supply) -> Result<(), SourceError> {
    let Some(requested) = supply.send_buffer.map(NonZeroU64::get) else {
        return Ok(());
    };
    let granted = sockopt::socket_send_buffer_size(socket).unwrap_or(0) as u64 / 2;
    if granted < requested { Err(SourceError::BufferTooLarge { requested, granted }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;

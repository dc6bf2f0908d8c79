//! How much a source writes, and how.

use super::error::SourceError;
use crate::socket::{Network, Options, remedy_for_buffer};
use linerate_units::Duration;
use std::num::{NonZeroU32, NonZeroU64};

/// How much a source gives, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Bytes on a connection; none goes on until the peer has enough.
    pub bytes: Option<NonZeroU64>,
    /// Time on a connection; none goes on until the peer has enough.
    pub max_time: Option<Duration>,
    /// Bytes that a write offers.
    pub write_size: NonZeroU32,
    /// The socket's send buffer, in bytes as asked for; none leaves it to tune itself.
    pub send_buffer: Option<NonZeroU64>,
    /// The congestion control by its name; none leaves the usual one.
    pub congestion: Option<String>,
}

impl Supply {
    pub(super) fn limit(&self) -> u64 {
        self.bytes.map_or(u64::MAX, NonZeroU64::get)
    }

    pub(super) fn write_length(&self) -> usize {
        usize::try_from(self.write_size.get()).unwrap_or(usize::MAX)
    }

    pub(super) fn max_time(&self) -> std::time::Duration {
        self.max_time.map_or(std::time::Duration::MAX, Into::into)
    }
}

/// The options of a source's sockets, unless the buffer would be clipped.
pub(super) fn options(network: &Network, supply: &Supply) -> Result<Options, SourceError> {
    let send_buffer = supply.send_buffer.map(NonZeroU64::get);
    if let Some(requested) = send_buffer {
        let granted = network.would_grant_send(requested).unwrap_or(0);
        if granted < requested {
            let remedy = match network {
                Network::Kernel => remedy_for_buffer(requested, "net.core.wmem_max", ""),
                Network::Own(_) => "a window reaches no farther; ask for less".to_owned(),
            };
            return Err(SourceError::BufferTooLarge { requested, granted, remedy });
        }
    }
    Ok(Options { send_buffer, congestion: supply.congestion.clone(), ..Options::default() })
}

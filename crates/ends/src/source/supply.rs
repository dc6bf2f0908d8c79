//! The data that a source sends on each connection, and the options of its sockets.

use super::error::SourceError;
use crate::socket::{Network, Options, remedy_for_buffer};
use linerate_units::Duration;
use std::num::{NonZeroU32, NonZeroU64};

/// The data that a source sends on each connection, and the options of its sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Maximum number of bytes on a connection; `None` for no limit.
    pub bytes: Option<NonZeroU64>,
    /// Maximum duration of a connection; `None` for no limit.
    pub max_time: Option<Duration>,
    /// Maximum size of each `write` call, in bytes.
    pub write_size: NonZeroU32,
    /// Size of the send buffer in bytes that is requested; `None` selects automatic tuning.
    pub send_buffer: Option<NonZeroU64>,
    /// Name of the congestion control; `None` selects the default of the network.
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

/// Returns the options of a source's sockets, or an error if `network` would grant a smaller send
/// buffer than requested.
pub(super) fn options(network: &Network, supply: &Supply) -> Result<Options, SourceError> {
    let send_buffer = supply.send_buffer.map(NonZeroU64::get);
    if let Some(requested) = send_buffer {
        let granted = network.would_grant_send(requested).unwrap_or(0);
        if granted < requested {
            let remedy = match network {
                Network::Kernel => remedy_for_buffer(requested, "net.core.wmem_max", ""),
                Network::Own(_) => "no window is larger; ask for less".to_owned(),
            };
            return Err(SourceError::BufferTooLarge { requested, granted, remedy });
        }
    }
    Ok(Options { send_buffer, congestion: supply.congestion.clone(), ..Options::default() })
}

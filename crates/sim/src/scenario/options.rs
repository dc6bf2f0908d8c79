//! Options for running a scenario.

use linerate_tcp::Config;
use linerate_units::{Rate, Span};

/// Options for running a scenario. `None` keeps the scenario's own value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransferOptions {
    /// Number of bytes of each transfer.
    pub bytes: Option<u64>,
    /// Send buffer in bytes.
    pub send_buffer: Option<usize>,
    /// Receive buffer in bytes.
    pub receive_buffer: Option<usize>,
    /// Number of bytes that a source passes to each write.
    pub write_size: Option<usize>,
    /// Number of bytes that a sink requests from each read.
    pub read_size: Option<usize>,
    /// Whether sinks verify the received bytes.
    pub verify: bool,
    /// TCP configuration of all connections.
    pub config: Option<Config>,
    /// Maximum pacing rate of the sources of transfers.
    pub max_pacing_rate: Option<Rate>,
    /// Largest IP packet of all hosts, in bytes.
    pub mtu: Option<usize>,
    /// Maximum simulated time.
    pub limit: Option<Span>,
    /// Whether to check every invariant after every event, which is slow.
    pub checks: bool,
}

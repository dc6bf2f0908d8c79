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
    /// Whether sinks compare the received bytes with the sent ones.
    pub verify: bool,
    /// TCP configuration of all connections.
    pub config: Option<Config>,
    /// Maximum pacing rate of each transfer's source.
    pub max_pacing_rate: Option<Rate>,
    /// Size in bytes of the largest IP packet that a host may send.
    pub mtu: Option<usize>,
    /// Simulated time after which the run ends, even if programs have not finished.
    pub limit: Option<Span>,
    /// Whether to check every invariant after every event, which is slow.
    pub checks: bool,
}

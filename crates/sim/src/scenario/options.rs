//! The options of a run.

use linerate_tcp::Config;
use linerate_units::Span;

/// Parameters of a run. `None` keeps the value of the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransferOptions {
    /// Bytes to transfer.
    pub bytes: Option<u64>,
    /// Send buffer in bytes.
    pub send_buffer: Option<usize>,
    /// Receive buffer in bytes.
    pub receive_buffer: Option<usize>,
    /// Bytes of a write.
    pub write_size: Option<usize>,
    /// Buffer size of a read.
    pub read_size: Option<usize>,
    /// Whether the received bytes are verified.
    pub verify: bool,
    /// TCP configuration of all connections.
    pub config: Option<Config>,
    /// Largest IP packet of all hosts.
    pub mtu: Option<usize>,
    /// Upper limit of the simulated time.
    pub limit: Option<Span>,
    /// Whether every invariant is checked after every event.
    pub checks: bool,
}

//! The limits that a sink imposes on connections, times and reads.

use std::time::Duration;

/// The limits that a sink imposes on its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of open connections of all kinds.
    pub connections: usize,
    /// Maximum number of open control connections, which also count for `connections`.
    pub sessions: usize,
    /// Maximum time without data on a connection without a greeting of linerate, after which the
    /// sink closes the connection.
    pub idle: Duration,
    /// Maximum time from the acceptance of a run to the arrival of its data connection. If the data
    /// connection is late, the run is cancelled. While a run waits for it, runs of other sweeps
    /// cannot set the receive buffer of the listening socket.
    pub arrival: Duration,
    /// Time to wait after each read, which makes the sink a slow reader.
    pub pause: Duration,
    /// Maximum size in bytes of each `read` call of a run; `None` for the size that the sweep
    /// requests. With small reads, the sink needs more system calls and so more processor time.
    pub read_size: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        let (idle, arrival) = (Duration::from_secs(600), Duration::from_secs(10));
        let pause = Duration::ZERO;
        Self { connections: 64, sessions: 8, idle, arrival, pause, read_size: None }
    }
}

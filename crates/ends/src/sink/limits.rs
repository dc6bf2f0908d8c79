//! The limits of a sink.

use std::time::Duration;

/// Limits on the load of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections of any kind.
    pub connections: usize,
    /// Maximum number of control connections.
    pub sessions: usize,
    /// A plain peer that is silent for this time is disconnected.
    pub idle: Duration,
    /// A run whose data connection does not arrive within this time is cancelled, and unlocks the
    /// receive buffer.
    pub arrival: Duration,
    /// Time to wait after each read, which makes the sink a slow reader.
    pub pause: Duration,
    /// Maximum size of a read, in place of the one that a sweep asks for: with a small one, system
    /// calls occupy the processor.
    pub read_size: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        let (idle, arrival) = (Duration::from_secs(600), Duration::from_secs(10));
        let pause = Duration::ZERO;
        Self { connections: 64, sessions: 8, idle, arrival, pause, read_size: None }
    }
}

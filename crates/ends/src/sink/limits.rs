//! The limits of a sink.

use std::time::Duration;

/// How much a sink takes on at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections of any kind.
    pub connections: usize,
    /// Control connections among them.
    pub sessions: usize,
    /// A plain peer that has been silent for so long is let go.
    pub idle: Duration,
    /// A run whose data connection has not come for so long is given up, and lets others through
    /// the door.
    pub arrival: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let (idle, arrival) = (Duration::from_secs(600), Duration::from_secs(10));
        Self { connections: 64, sessions: 8, idle, arrival }
    }
}

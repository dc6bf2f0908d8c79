//! What a sink has to tell of those who came.

use crate::control::Ended;
use std::net::SocketAddr;
use std::time::Duration;

/// Something that a sink tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection is over.
    Served(Served),
    /// A connection was refused.
    TurnedAway {
        /// Whose.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
}

/// A connection that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Whose it was.
    pub peer: SocketAddr,
    /// What it was for.
    pub service: Service,
    /// Bytes of data that came over it.
    pub bytes: u64,
    /// From the first of them to the last.
    pub span: Duration,
}

/// What a connection was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// A plain peer's bytes, thrown away.
    Plain,
    /// The bytes of a sweep's run.
    Run {
        /// The connection's receive buffer, in bytes as the kernel counts them.
        receive_granted: u64,
        /// How it ended.
        ended: Ended,
        /// Were the bytes those of the pattern? `None` if nobody looked.
        verified: Option<bool>,
    },
    /// A sweep's wishes.
    Control {
        /// Runs it asked for.
        runs: u64,
    },
}

/// Everybody who came, in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Connections that carried data or might have.
    pub connections: u64,
    /// Control connections.
    pub sessions: u64,
    /// Connections that were refused.
    pub turned_away: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// The time that data took to come, summed over the connections.
    pub time: Duration,
}

impl Summary {
    /// Counts one more.
    pub(super) fn add(&mut self, event: &Event) {
        match event {
            Event::TurnedAway { .. } => self.turned_away += 1,
            Event::Served(Served { service: Service::Control { .. }, .. }) => self.sessions += 1,
            Event::Served(served) => {
                self.connections += 1;
                self.bytes += served.bytes;
                self.time += served.span;
            }
        }
    }
}

//! The events of a sink.

use super::totals::RunTotals;
use crate::ended::Ended;
use crate::socket::ReadResult;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// An event of a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection has ended.
    Served(Served),
    /// A connection was rejected.
    Rejected {
        /// The address of the peer.
        peer: SocketAddr,
        /// The reason.
        reason: String,
    },
}

/// A connection that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The address of the peer.
    pub peer: SocketAddr,
    /// The purpose of the connection.
    pub service: Service,
    /// Bytes of data received.
    pub bytes: u64,
    /// Time of the first byte, if there was one.
    pub first: Option<Instant>,
    /// Time from the first to the last byte.
    pub span: Duration,
}

/// The purpose of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Data of a plain peer, which was discarded.
    Plain,
    /// Data of a sweep's run.
    Run {
        /// The receive buffer of the connection, in bytes as the kernel counts them.
        receive_granted: u64,
        /// The reason for the end.
        ended: Ended,
        /// Did the data match the pattern? `None` if it was not compared.
        verified: Option<bool>,
    },
    /// A control connection.
    Control {
        /// Number of requested runs.
        runs: u64,
        /// Totals of the runs whose data connection has ended.
        totals: RunTotals,
    },
}

/// Totals of all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Connections for data.
    pub connections: u64,
    /// Control connections.
    pub sessions: u64,
    /// Connections that were rejected.
    pub rejected: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Times of the first and of the last byte.
    came: Option<(Instant, Instant)>,
}

impl Served {
    /// Creates the record of a connection from what was read.
    pub(super) fn new(peer: SocketAddr, service: Service, result: &ReadResult) -> Self {
        Self { peer, service, bytes: result.bytes, first: result.first, span: result.span() }
    }
}

impl Summary {
    /// Returns the time from the first byte of all connections to the last. Connections may
    /// overlap, and there may be pauses.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.came.map_or(Duration::ZERO, |(first, last)| last.saturating_duration_since(first))
    }

    /// Adds an event.
    pub(super) fn add(&mut self, event: &Event) {
        match event {
            Event::Rejected { .. } => self.rejected += 1,
            Event::Served(Served { service: Service::Control { .. }, .. }) => self.sessions += 1,
            Event::Served(served) => {
                self.connections += 1;
                self.bytes += served.bytes;
                if let Some(first) = served.first {
                    let last = first + served.span;
                    let (earliest, latest) = self.came.unwrap_or((first, last));
                    self.came = Some((earliest.min(first), latest.max(last)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn overlapping_connections_are_not_counted_twice() {
        let (now, peer) = (Instant::now(), (Ipv4Addr::LOCALHOST, 1_988).into());
        let at = |seconds| Duration::from_secs(seconds);
        let mut summary = Summary::default();
        let mut span_with = |first: Option<u64>, seconds| {
            let (first, span) = (first.map(|first| now + at(first)), at(seconds));
            let service = Service::Plain;
            summary.add(&Event::Served(Served { peer, service, bytes: 1_000, first, span }));
            summary.span()
        };
        assert_eq!(span_with(None, 0), Duration::ZERO);
        assert_eq!(span_with(Some(12), 3), at(3));
        assert_eq!(span_with(Some(10), 10), at(10), "an earlier start and a later end");
        assert_eq!(span_with(Some(15), 0), at(10), "a read in between");
        assert_eq!(span_with(None, 0), at(10), "a connection without data");
        assert_eq!(span_with(Some(30), 5), at(25), "a pause counts");
        assert_eq!(summary.bytes, 6_000);
    }
}

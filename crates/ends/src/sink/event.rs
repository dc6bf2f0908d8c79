//! The events of a sink, and totals over all its connections.

use super::totals::RunTotals;
use crate::ended::Ended;
use crate::socket::ReadResult;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// An event of a sink, for its output and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection has ended.
    Served(Served),
    /// A connection was rejected.
    Rejected {
        /// The address of the peer.
        peer: SocketAddr,
        /// The reason, as text for the user.
        reason: String,
    },
}

/// The record of a connection that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The address of the peer.
    pub peer: SocketAddr,
    /// The purpose of the connection, and its result.
    pub service: Service,
    /// Number of data bytes received.
    pub bytes: u64,
    /// Time at which the first byte was read; `None` if the connection carried no data.
    pub first: Option<Instant>,
    /// Time from reading the first byte to reading the last byte.
    pub span: Duration,
}

/// The purpose of a connection to a sink, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// A connection without a greeting of linerate, whose data was counted and discarded.
    Plain,
    /// The data connection of a sweep's run.
    Run {
        /// Receive buffer of the connection in bytes, as `getsockopt` reports it.
        receive_granted: u64,
        /// The reason why the run ended.
        ended: Ended,
        /// Did the data match the pattern? `None` if the data was not compared.
        verified: Option<bool>,
    },
    /// The control connection of a sweep.
    Control {
        /// Number of runs that the sweep requested and the sink accepted.
        runs: u64,
        /// Totals over the runs whose data connection has ended.
        totals: RunTotals,
    },
}

/// Totals over all connections of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of connections that transfer data: the data connections of runs, and the connections
    /// without a greeting. Connections on which no data arrived count, too.
    pub connections: u64,
    /// Number of control connections.
    pub sessions: u64,
    /// Number of rejected connections.
    pub rejected: u64,
    /// Number of data bytes received.
    pub bytes: u64,
    /// Two times: when the first byte was read on any connection, and when the most recent byte was
    /// read on any connection. `None` before the first byte.
    came: Option<(Instant, Instant)>,
}

impl Served {
    /// Creates the record of a connection from the result of reading it.
    pub(super) fn new(peer: SocketAddr, service: Service, result: &ReadResult) -> Self {
        Self { peer, service, bytes: result.bytes, first: result.first, span: result.span() }
    }
}

impl Summary {
    /// Returns the time from the first to the last byte that the sink has read on any connection.
    /// Pauses count, and a time in which several connections transfer data counts once.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.came.map_or(Duration::ZERO, |(first, last)| last.saturating_duration_since(first))
    }

    /// Adds an event to the totals.
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

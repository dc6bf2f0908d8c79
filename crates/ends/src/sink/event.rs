//! What a sink has to tell of those who came.

use crate::ended::Ended;
use crate::socket::Taken;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

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
    /// When the first of them came, if any did.
    pub first: Option<Instant>,
    /// From then to the last of them.
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
    /// When the first of them came, and when the last.
    came: Option<(Instant, Instant)>,
}

impl Served {
    /// One over which that was read.
    pub(super) fn new(peer: SocketAddr, service: Service, taken: &Taken) -> Self {
        Self { peer, service, bytes: taken.bytes, first: taken.first, span: taken.span() }
    }
}

impl Summary {
    /// From the first byte of all connections to the last: they may come at the same time, or with
    /// pauses between them.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.came.map_or(Duration::ZERO, |(first, last)| last.saturating_duration_since(first))
    }

    /// Counts one more.
    pub(super) fn add(&mut self, event: &Event) {
        match event {
            Event::TurnedAway { .. } => self.turned_away += 1,
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
    fn what_comes_at_the_same_time_takes_no_longer_together() {
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
        assert_eq!(span_with(Some(10), 10), at(10), "who began earlier and ended later");
        assert_eq!(span_with(Some(15), 0), at(10), "a read between them");
        assert_eq!(span_with(None, 0), at(10), "and who said nothing");
        assert_eq!(span_with(Some(30), 5), at(25), "a pause counts");
        assert_eq!(summary.bytes, 6_000);
    }
}

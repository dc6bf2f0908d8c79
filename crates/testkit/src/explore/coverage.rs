//! Coverage of an exploration: counts of the events that occurred in its random worlds.

use linerate_tcp::{Error, MissReason, Statistics};
use std::collections::BTreeMap;
use std::fmt;

/// For each kind of event, the number of its occurrences, and the number of worlds in which it
/// occurred at least once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    seen: BTreeMap<&'static str, (u64, u64)>,
}

/// Name of a counter in the report, and the function that returns its value from the statistics of
/// a connection.
type Counter = (&'static str, fn(&Statistics) -> u64);

/// The counters of a connection whose values are part of the coverage. Each increment of a counter
/// counts as an event with its name.
const COUNTERS: [Counter; 29] = [
    ("segments received", |counted| counted.segments_received),
    ("fast path: data", |counted| counted.prediction.data),
    ("fast path: acknowledgements", |counted| counted.prediction.acks),
    ("fast path: both at once", |counted| counted.prediction.both),
    ("segments sent again", |counted| counted.retransmitted_segments),
    ("fast retransmissions", |counted| counted.fast_retransmissions),
    ("retransmission timeouts", |counted| counted.retransmission_timeouts),
    ("duplicate acknowledgements", |counted| counted.duplicate_acks),
    ("segments out of order", |counted| counted.out_of_order_segments),
    ("segments that had arrived before", |counted| counted.duplicate_segments),
    ("too many out-of-order ranges", |counted| counted.reassembly_full),
    ("delayed acknowledgements", |counted| counted.delayed_ack_timeouts),
    ("window probes", |counted| counted.window_probes),
    ("small windows overridden", |counted| counted.small_window_timeouts),
    ("keep-alive probes", |counted| counted.keep_alive_probes),
    ("challenge acknowledgements", |counted| counted.challenge_acks),
    ("old timestamps", |counted| counted.old_timestamps),
    ("windows closed", |counted| counted.zero_windows_received),
    ("congestion marks", |counted| counted.marked_segments),
    ("congestion echoes", |counted| counted.mark_echoes),
    ("windows reduced for a mark", |counted| counted.mark_reductions),
    ("marked segments delivered", |counted| counted.marked_deliveries),
    ("paths that swallow", |counted| counted.black_holes),
    ("path probes", |counted| counted.path_probes),
    ("path probes that passed", |counted| counted.path_probes_passed),
    ("path probes that failed", |counted| counted.path_probes_failed),
    ("path sizes withdrawn", |counted| counted.path_sizes_withdrawn),
    ("bytes acknowledged", |counted| counted.bytes_acknowledged),
    ("acknowledgements alone", |counted| counted.pure_acks_sent),
];

impl Coverage {
    /// Creates the counts of a single world, in which no event has occurred yet.
    pub(super) fn of_one_world() -> Self {
        let mut coverage = Self::default();
        coverage.count("worlds", 1);
        coverage
    }

    pub(super) fn count(&mut self, name: &'static str, times: u64) {
        if times > 0 {
            let (count, worlds) = self.seen.entry(name).or_default();
            (*count, *worlds) = (*count + times, 1);
        }
    }

    pub(super) fn add_connection(&mut self, statistics: &Statistics) {
        for (name, counter) in COUNTERS {
            self.count(name, counter(statistics));
        }
        for (reason, times) in statistics.prediction.misses() {
            self.count(MissReason::name(reason), times);
        }
    }

    pub(super) fn add_end(&mut self, failed: Option<Error>, aborted: bool) {
        self.count(
            match failed {
                _ if aborted => "applications that broke off",
                None => "applications that read everything",
                Some(Error::Reset) => "connections reset by the peer",
                Some(Error::TimedOut) => "connections given up",
                Some(_) => "connections that failed otherwise",
            },
            1,
        );
    }

    /// Adds the counts of other worlds to these counts.
    pub fn add(&mut self, other: &Self) {
        for (name, (count, worlds)) in &other.seen {
            let sums = self.seen.entry(name).or_default();
            *sums = (sums.0 + count, sums.1 + worlds);
        }
    }

    /// Returns the number of occurrences of the event `name`.
    #[must_use]
    pub fn times(&self, name: &str) -> u64 {
        self.seen.get(name).map_or(0, |&(count, _)| count)
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, (count, worlds)) in &self.seen {
            writeln!(f, "{count:>14} in {worlds:>8} worlds  {name}")?;
        }
        Ok(())
    }
}

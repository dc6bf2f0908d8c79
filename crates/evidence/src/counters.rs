//! The counters of both ends of a transfer, as numbers with names.

use crate::stats::as_f64;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names of the counters from which findings are derived. A bench that measures one of these
/// quantities must use the name given here. It may omit counters, and may add others with names of
/// its own.
pub mod names {
    /// Data segments sent, including retransmissions.
    pub const DATA_SEGMENTS_SENT: &str = "data_segments_sent";
    /// Segments retransmitted for any reason.
    pub const RETRANSMITTED_SEGMENTS: &str = "retransmitted_segments";
    /// Expirations of the retransmission timer.
    pub const RETRANSMISSION_TIMEOUTS: &str = "retransmission_timeouts";
    /// Acknowledgements sent because the delayed-ACK timer expired.
    pub const DELAYED_ACK_TIMEOUTS: &str = "delayed_ack_timeouts";
    /// Probes of the peer's zero window that were sent because the persist timer expired (RFC 9293
    /// §3.8.6.1).
    pub const ZERO_WINDOW_PROBES: &str = "zero_window_probes";
    /// Segments shorter than an MSS that were sent because the override timer of silly window
    /// avoidance expired (RFC 9293 §3.8.6.2.1).
    pub const SMALL_WINDOW_TIMEOUTS: &str = "small_window_timeouts";
    /// Segments received that advertised a zero window.
    pub const ZERO_WINDOWS_RECEIVED: &str = "zero_windows_received";
    /// Frames that linerate's host or a NIC dropped in either direction, for example because a
    /// queue or a ring was full.
    pub const DROPPED_FRAMES: &str = "dropped_frames";
    /// Received segments that the kernel's socket dropped: for lack of memory, or because they were
    /// duplicates or not acceptable. Unlike dropped frames, they have crossed the link.
    pub const SOCKET_DROPS: &str = "socket_drops";
    /// Segments received with a wrong checksum.
    pub const BAD_CHECKSUMS: &str = "bad_checksums";
    /// Lifetime of the thread that writes or reads the data, in microseconds. It includes the
    /// handshake and the close of the connection.
    pub const THREAD_MICROS: &str = "thread_micros";
    /// Processor time of the thread that writes or reads the data, in microseconds.
    pub const CPU_MICROS: &str = "cpu_micros";
    /// Time for which the thread that writes or reads the data was ready to run but waited for a
    /// processor, in microseconds.
    pub const CPU_WAIT_MICROS: &str = "cpu_wait_micros";
    /// Time for which the hypervisor withheld the machine's CPUs, in microseconds: the mean over
    /// all CPUs.
    pub const STOLEN_MICROS: &str = "stolen_micros";
    /// Number of discarded attempts at this run. An attempt is repeated if it suffered from
    /// contention: threads waited for a processor, or the hypervisor withheld one. The attempt with
    /// the least contention becomes the recorded run, and all others are discarded.
    pub const REPEATED_FOR_CONTENTION: &str = "repeated_for_contention";
    /// Time for which the receiver's window limited the sender, in microseconds.
    pub const RECEIVE_WINDOW_LIMITED_MICROS: &str = "receive_window_limited_micros";
    /// Time for which the send buffer limited the sender, in microseconds.
    pub const SEND_BUFFER_LIMITED_MICROS: &str = "send_buffer_limited_micros";
}

/// Minimum lifetime of a thread, in microseconds, for its waiting time to count as contention. In a
/// shorter lifetime, one short wait would already be a large share of the time.
const JUDGED_MICROS: u64 = 1_000;

/// Counters of both ends of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Counters of the sending end.
    pub sender: EndCounters,
    /// Counters of the receiving end.
    pub receiver: EndCounters,
}

/// Counters of one end of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndCounters {
    /// The value of each counter by its name. For the counters from which findings are derived, the
    /// name is one of [`names`].
    #[serde(flatten)]
    pub counts: BTreeMap<String, u64>,
    /// Hits and misses of header prediction; `None` if the TCP at this end does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<FastPath>,
}

impl Counters {
    /// Returns the share of a thread's lifetime that was lost to contention, at the end where the
    /// share is larger. Time is lost if the thread waited for a processor, or if the hypervisor
    /// withheld the CPUs.
    ///
    /// An end whose thread lived for less than a millisecond is ignored, and so is an end without
    /// these counters. Returns `None` if both ends are ignored.
    #[must_use]
    pub fn contended_share(&self) -> Option<f64> {
        let share = |end: &EndCounters, name| {
            let time = end.get(names::THREAD_MICROS).filter(|&micros| micros >= JUDGED_MICROS)?;
            Some(as_f64(end.get(name)?) / as_f64(time))
        };
        let ends = [&self.sender, &self.receiver];
        let counters = [names::CPU_WAIT_MICROS, names::STOLEN_MICROS];
        let shares = ends.into_iter().flat_map(|end| counters.map(|name| share(end, name)));
        shares.flatten().reduce(f64::max)
    }
}

impl EndCounters {
    /// Returns the value of the counter `name`; `None` if this end does not have such a counter.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.counts.get(name).copied()
    }

    /// Sets the counter `name` to `amount`.
    pub fn set(&mut self, name: &str, amount: u64) {
        self.counts.insert(name.to_owned(), amount);
    }
}

/// The numbers of received segments that header prediction accepted and refused. Accepted segments
/// take the fast path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastPath {
    /// Number of segments that took the fast path.
    pub hits: u64,
    /// Number of segments that took the slow path, by the reason.
    pub misses: BTreeMap<String, u64>,
}

impl FastPath {
    /// Returns the number of segments on the fast path and the slow path together.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.misses.values().fold(self.hits, |sum, &count| sum.saturating_add(count))
    }

    /// Returns the share of segments that took the fast path; `None` if there were no segments.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share, shown with three digits")]
    pub fn share(&self) -> Option<f64> {
        (self.segments() > 0).then(|| self.hits as f64 / self.segments() as f64)
    }

    /// Adds the counts of `other`, which belong to another end or to another run.
    pub fn add(&mut self, other: &Self) {
        self.hits = self.hits.saturating_add(other.hits);
        for (reason, count) in &other.misses {
            let sum = self.misses.entry(reason.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_hits_among_all_segments() {
        let misses = BTreeMap::from([("hole".to_owned(), 1), ("flags".to_owned(), 2)]);
        let mut path = FastPath { hits: 97, misses };
        assert_eq!(path.share(), Some(0.97));
        path.add(&path.clone());
        assert_eq!((path.segments(), path.misses["flags"]), (200, 4));
        assert_eq!(FastPath::default().share(), None);
    }

    #[test]
    fn the_share_of_waiting_is_that_of_the_worse_end() {
        let end = |time, waited| {
            let mut end = EndCounters::default();
            end.set(names::THREAD_MICROS, time);
            end.set(names::CPU_WAIT_MICROS, waited);
            end
        };
        let of = |sender, receiver| Counters { sender, receiver }.contended_share();
        assert_eq!(of(end(1_000, 20), end(1_000, 50)), Some(0.05));
        assert_eq!(of(end(1_000, 20), EndCounters::default()), Some(0.02));
        assert_eq!(of(end(999, 20), EndCounters::default()), None, "too short");
        let mut stolen = end(1_000, 20);
        stolen.set(names::STOLEN_MICROS, 300);
        assert_eq!(of(stolen, end(1_000, 50)), Some(0.3));
    }

    #[test]
    fn counts_saturate() {
        let mut path =
            FastPath { hits: u64::MAX, misses: BTreeMap::from([("hole".to_owned(), u64::MAX)]) };
        path.add(&path.clone());
        assert_eq!((path.segments(), path.misses["hole"]), (u64::MAX, u64::MAX));
    }

    #[test]
    fn counters_are_fields_of_one_json_object() {
        let mut end = EndCounters::default();
        end.set(names::RETRANSMITTED_SEGMENTS, 3);
        let text = serde_json::to_string(&end).unwrap();
        assert_eq!(text, r#"{"retransmitted_segments":3}"#);
        assert_eq!(serde_json::from_str::<EndCounters>(&text).unwrap(), end);
        end.fast_path = Some(FastPath { hits: 1, misses: BTreeMap::new() });
        let text = serde_json::to_string(&end).unwrap();
        assert_eq!(serde_json::from_str::<EndCounters>(&text).unwrap(), end);
    }
}

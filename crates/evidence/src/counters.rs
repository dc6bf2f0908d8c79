//! Counters of both ends of a transfer.

use crate::stats::as_f64;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names of the counters that findings use. A bench uses these names for the same counters, and
/// other names for others.
pub mod names {
    /// Segments sent with data, retransmissions included.
    pub const DATA_SEGMENTS_SENT: &str = "data_segments_sent";
    /// Segments retransmitted for any reason.
    pub const RETRANSMITTED_SEGMENTS: &str = "retransmitted_segments";
    /// Expirations of the retransmission timer.
    pub const RETRANSMISSION_TIMEOUTS: &str = "retransmission_timeouts";
    /// Acknowledgements delayed until the delayed-ACK timer expired.
    pub const DELAYED_ACK_TIMEOUTS: &str = "delayed_ack_timeouts";
    /// Probes of a zero window by the persist timer.
    pub const ZERO_WINDOW_PROBES: &str = "zero_window_probes";
    /// Small segments sent because the override timer of silly window avoidance expired.
    pub const SMALL_WINDOW_TIMEOUTS: &str = "small_window_timeouts";
    /// Segments received that advertised a zero window.
    pub const ZERO_WINDOWS_RECEIVED: &str = "zero_windows_received";
    /// Frames dropped because a queue was full.
    pub const DROPPED_FRAMES: &str = "dropped_frames";
    /// Segments received with a wrong checksum.
    pub const BAD_CHECKSUMS: &str = "bad_checksums";
    /// Microseconds during which the thread of this end existed, handshake and close included.
    pub const THREAD_MICROS: &str = "thread_micros";
    /// Microseconds of processor time of the thread.
    pub const CPU_MICROS: &str = "cpu_micros";
    /// Microseconds during which the thread was ready to run and waited for a processor.
    pub const CPU_WAIT_MICROS: &str = "cpu_wait_micros";
    /// Microseconds for which the hypervisor withheld the CPUs of the machine, the mean of all.
    pub const STOLEN_MICROS: &str = "stolen_micros";
    /// Number of times that the run was repeated because its threads waited for a processor.
    pub const REPEATED_FOR_CONTENTION: &str = "repeated_for_contention";
    /// Microseconds during which the receiver's window limited the sender.
    pub const RECEIVE_WINDOW_LIMITED_MICROS: &str = "receive_window_limited_micros";
    /// Microseconds during which the send buffer limited the sender.
    pub const SEND_BUFFER_LIMITED_MICROS: &str = "send_buffer_limited_micros";
}

/// Minimum lifetime of a thread, in microseconds, for which its waits for a processor are judged.
const JUDGED_MICROS: u64 = 1_000;

/// Counters of both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Counters of the sending end.
    pub sender: EndCounters,
    /// Counters of the receiving end.
    pub receiver: EndCounters,
}

/// Counters of one end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndCounters {
    /// Counts by name, see [`names`].
    #[serde(flatten)]
    pub counts: BTreeMap<String, u64>,
    /// Statistics of header prediction, if this end has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<FastPath>,
}

impl Counters {
    /// Returns the largest share of its time for which the thread of an end waited for a processor,
    /// or the hypervisor withheld the processors of its machine; `None` if the engine measures
    /// neither. Nothing is known of a thread of less than a millisecond: one wait for the start of
    /// a thread is a large share of it.
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
    /// Returns the count of `name`, if this end has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.counts.get(name).copied()
    }

    /// Sets a count.
    pub fn set(&mut self, name: &str, amount: u64) {
        self.counts.insert(name.to_owned(), amount);
    }
}

/// Hits and misses of header prediction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastPath {
    /// Segments that took the fast path.
    pub hits: u64,
    /// Segments that took the slow path, by reason.
    pub misses: BTreeMap<String, u64>,
}

impl FastPath {
    /// Returns the number of segments.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.misses.values().fold(self.hits, |sum, &count| sum.saturating_add(count))
    }

    /// Returns the share of segments that took the fast path, or `None` without segments.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share, shown with three digits")]
    pub fn share(&self) -> Option<f64> {
        (self.segments() > 0).then(|| self.hits as f64 / self.segments() as f64)
    }

    /// Adds the statistics of another end or another run.
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
    fn counters_are_flat_in_a_file() {
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

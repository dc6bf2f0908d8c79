//! What the two ends of a transfer counted while it ran.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names of counters that the diagnosis looks for. A bench uses these where it counts the same
/// thing, and any other name for what it counts besides.
pub mod names {
    /// Segments sent with data, retransmissions included.
    pub const DATA_SEGMENTS_SENT: &str = "data_segments_sent";
    /// Segments sent again, for whatever reason.
    pub const RETRANSMITTED_SEGMENTS: &str = "retransmitted_segments";
    /// Times that the retransmission timer went off.
    pub const RETRANSMISSION_TIMEOUTS: &str = "retransmission_timeouts";
    /// Acknowledgements that waited until the delayed-ACK timer went off.
    pub const DELAYED_ACK_TIMEOUTS: &str = "delayed_ack_timeouts";
    /// Times that the persist timer sent a probe into a zero window.
    pub const ZERO_WINDOW_PROBES: &str = "zero_window_probes";
    /// Times that a segment of less than was worth it left because nothing better had come up.
    pub const SMALL_WINDOW_TIMEOUTS: &str = "small_window_timeouts";
    /// Segments received that announced a closed window.
    pub const ZERO_WINDOWS_HEARD: &str = "zero_windows_heard";
    /// Frames that some queue had no room for.
    pub const DROPPED_FRAMES: &str = "dropped_frames";
    /// Segments received with a wrong checksum.
    pub const BAD_CHECKSUMS: &str = "bad_checksums";
    /// Microseconds that the sender was held back by the receiver's window.
    pub const RECEIVE_WINDOW_LIMITED_MICROS: &str = "receive_window_limited_micros";
    /// Microseconds that the sender was held back by its own buffer.
    pub const SEND_BUFFER_LIMITED_MICROS: &str = "send_buffer_limited_micros";
}

/// What each end counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// The end where the bytes come from.
    pub sender: EndCounters,
    /// The end where they go.
    pub receiver: EndCounters,
}

/// What one end counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndCounters {
    /// Amounts by name, see [`names`].
    #[serde(flatten)]
    pub counts: BTreeMap<String, u64>,
    /// How often header prediction was right, if this end has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<FastPath>,
}

impl EndCounters {
    /// The amount under `name`, if this end counts it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.counts.get(name).copied()
    }

    /// Writes down an amount.
    pub fn set(&mut self, name: &str, amount: u64) {
        self.counts.insert(name.to_owned(), amount);
    }
}

/// How often the next segment was the one that header prediction expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastPath {
    /// Segments that took the fast path.
    pub hits: u64,
    /// Segments that did not, by reason.
    pub misses: BTreeMap<String, u64>,
}

impl FastPath {
    /// Segments in all.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.misses.values().fold(self.hits, |sum, &count| sum.saturating_add(count))
    }

    /// The part of the segments that took the fast path; `None` if there were no segments.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share, shown with three digits")]
    pub fn share(&self) -> Option<f64> {
        (self.segments() > 0).then(|| self.hits as f64 / self.segments() as f64)
    }

    /// Adds what another end, or another run, counted.
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
    fn counts_beyond_all_measure_are_the_largest() {
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

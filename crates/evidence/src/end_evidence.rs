//! Evidence about one end of a run: its thread, its machine, its connection and its queues.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Measurements of one end, taken over the observed part of a run. `None` is a value that the
/// system does not provide; it is never replaced by zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndEvidence {
    /// Duration of the observed part, in seconds. All differences refer to it.
    pub seconds: Option<f64>,
    /// Bytes that the program has written or read in it.
    pub bytes: Option<u64>,
    /// The thread that writes or reads.
    pub thread: ThreadEvidence,
    /// The machine.
    pub machine: MachineEvidence,
    /// The TCP connection.
    pub connection: ConnectionEvidence,
    /// The queues of the connection, sampled.
    pub queues: QueueEvidence,
    /// The states of the sender, sampled.
    pub states: Option<SenderStates>,
    /// Counters of the protocols, interfaces and queues of the system that have changed, with the
    /// difference.
    pub system: BTreeMap<String, u64>,
    /// Kernel settings that affect TCP, by their `sysctl` names.
    pub settings: BTreeMap<String, String>,
}

/// The thread that writes or reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadEvidence {
    /// Processor time, in nanoseconds.
    pub cpu_nanos: Option<u64>,
    /// Time in the run queue of a CPU, ready but not running, in nanoseconds.
    pub queue_wait_nanos: Option<u64>,
    /// Context switches because the thread waited for something.
    pub voluntary_switches: Option<u64>,
    /// Context switches because another thread was given the CPU.
    pub involuntary_switches: Option<u64>,
    /// Time in calls of `write` or `read`, in nanoseconds: copying and waiting.
    pub call_nanos: Option<u64>,
    /// Processor time of the thread that drives linerate's host, in nanoseconds; absent if the
    /// kernel's TCP serves this end.
    pub host_cpu_nanos: Option<u64>,
    /// Time of that thread in the run queue, in nanoseconds.
    pub host_queue_wait_nanos: Option<u64>,
    /// Context switches of that thread because it waited for something.
    pub host_voluntary_switches: Option<u64>,
}

/// The machine of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineEvidence {
    /// Share of the time that the hypervisor withheld from all CPUs together.
    pub steal_share: Option<f64>,
    /// Share of the time that the busiest CPU spent in software interrupts.
    pub softirq_share: Option<f64>,
    /// Share of the time in which all CPUs together were idle.
    pub idle_share: Option<f64>,
}

/// The TCP connection of one end: differences over the observed part, and values at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionEvidence {
    /// Time with data in flight, in microseconds.
    pub busy_micros: Option<u64>,
    /// Time in which the peer's window limited the sender, in microseconds.
    pub receive_window_limited_micros: Option<u64>,
    /// Time in which the send buffer limited the sender, in microseconds.
    pub send_buffer_limited_micros: Option<u64>,
    /// Data segments sent.
    pub data_segments_sent: Option<u64>,
    /// Segments retransmitted.
    pub retransmitted_segments: Option<u64>,
    /// Data segments sent since the connection was opened.
    pub whole_data_segments: Option<u64>,
    /// Segments retransmitted since the connection was opened.
    pub whole_retransmitted_segments: Option<u64>,
    /// Losses since the connection was opened. Losses within one round trip count as one.
    pub loss_events: Option<u64>,
    /// Bytes acknowledged by the peer.
    pub acknowledged_bytes: Option<u64>,
    /// Expirations of the retransmission timer since the connection was opened.
    pub retransmission_timeouts: Option<u64>,
    /// The path MTU, in bytes.
    pub path_mtu: Option<u64>,
    /// The segment size, in bytes of data.
    pub segment_bytes: Option<u64>,
    /// Shift of the windows that this end receives.
    pub send_window_scale: Option<u64>,
    /// Shift of the windows that this end announces.
    pub receive_window_scale: Option<u64>,
    /// The congestion window, in segments.
    pub congestion_window: Option<Distribution>,
    /// The largest congestion window of the first half of the run, in segments.
    pub earlier_congestion_window: Option<u64>,
    /// The slow start threshold, in segments; the maximum of 32 bits (or of 31) if there was no
    /// loss.
    pub slow_start_threshold: Option<u64>,
    /// The smoothed round trip, in microseconds.
    pub round_trip_micros: Option<Distribution>,
    /// The shortest round trip, in microseconds.
    pub shortest_round_trip_micros: Option<u64>,
    /// The most recent delivery rate, in bytes per second.
    pub delivery_rate: Option<u64>,
    /// The delivery rate that 5 % of the samples exceed, in bytes per second: the path carries at
    /// least this much.
    pub peak_delivery_rate: Option<u64>,
    /// The peer's window, in bytes.
    pub peer_window: Option<Distribution>,
    /// The send buffer at the end, as it reads back.
    pub send_buffer: Option<u64>,
    /// The receive buffer at the end, as it reads back.
    pub receive_buffer: Option<u64>,
}

/// The queues of a connection, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueEvidence {
    /// Written and not acknowledged (`SIOCOUTQ`).
    pub unacknowledged: Option<Distribution>,
    /// Written and not sent (`SIOCOUTQNSD`).
    pub unsent: Option<Distribution>,
    /// Received and not read (`SIOCINQ`).
    pub unread: Option<Distribution>,
    /// Memory of the send queue (`SK_MEMINFO_WMEM_QUEUED`).
    pub send_memory: Option<Distribution>,
    /// Memory of the receive queue (`SK_MEMINFO_RMEM_ALLOC`).
    pub receive_memory: Option<Distribution>,
    /// Packets that the socket dropped for lack of room since it was opened.
    pub drops: Option<u64>,
}

/// The state of a sender when it was sampled, as shares of all samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SenderStates {
    /// Number of samples.
    pub samples: u64,
    /// Nothing or little unsent, although the windows would admit more, and the program is in
    /// `write`: the send buffer is full of data in flight.
    pub buffer_full: f64,
    /// Nothing unsent, and the program is not in `write`.
    pub out_of_data: f64,
    /// Data is unsent, and the peer's window is used.
    pub window_full: f64,
    /// Data is unsent, and the congestion window is used.
    pub congestion_window_full: f64,
    /// Data is unsent, although both windows would admit more: pacing, the local queue or the
    /// processor holds it.
    pub held_back: f64,
}

/// Mean and maximum of a sampled value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The mean.
    pub mean: f64,
    /// The maximum.
    pub max: u64,
}

impl EndEvidence {
    /// Returns the share of the observed time that `nanos` are.
    #[must_use]
    pub fn share_of_nanos(&self, nanos: Option<u64>) -> Option<f64> {
        share(nanos?, self.seconds?, 1e9)
    }

    /// Returns the share of the observed time that `micros` are.
    #[must_use]
    pub fn share_of_micros(&self, micros: Option<u64>) -> Option<f64> {
        share(micros?, self.seconds?, 1e6)
    }

    /// Returns the sum of the changes of system counters whose name `is_counted`.
    #[must_use]
    pub fn system_sum(&self, is_counted: impl Fn(&str) -> bool) -> u64 {
        let counted = self.system.iter().filter(|(name, _)| is_counted(name));
        counted.fold(0, |sum, (_, &count)| sum.saturating_add(count))
    }
}

#[allow(clippy::cast_precision_loss, reason = "a share, shown with three digits")]
fn share(part: u64, seconds: f64, per_second: f64) -> Option<f64> {
    (seconds > 0.0).then(|| part as f64 / per_second / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_value_is_neither_zero_nor_a_share() {
        let text = r#"{"seconds":2.0,"thread":{"cpu_nanos":500000000}}"#;
        let end: EndEvidence = serde_json::from_str(text).unwrap();
        assert_eq!(end.share_of_nanos(end.thread.cpu_nanos), Some(0.25));
        assert_eq!(end.share_of_nanos(end.thread.queue_wait_nanos), None);
        assert_eq!(EndEvidence::default().share_of_nanos(Some(1)), None, "no observed time");
        let empty = EndEvidence { seconds: Some(0.0), ..EndEvidence::default() };
        assert_eq!(empty.share_of_micros(Some(1)), None);
        let written = serde_json::to_string(&end).unwrap();
        assert_eq!(serde_json::from_str::<EndEvidence>(&written).unwrap(), end);
    }
}

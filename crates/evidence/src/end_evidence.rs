//! Measurements at one end of a run: its thread, its machine, its TCP connection and its queues.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Measurements at one end, taken during the observed part of a run. `None` stands for a value that
/// the system does not provide, and is never replaced by zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndEvidence {
    /// Duration of the observed part in seconds, to which all differences of counters refer.
    pub seconds: Option<f64>,
    /// Bytes that the program wrote or read during the observed part.
    pub bytes: Option<u64>,
    /// The thread that writes or reads the data.
    pub thread: ThreadEvidence,
    /// The machine of this end.
    pub machine: MachineEvidence,
    /// The TCP connection of this end.
    pub connection: ConnectionEvidence,
    /// The queues of the connection, from samples during the observed part.
    pub queues: QueueEvidence,
    /// The reasons why the sender did not send, from samples; `None` at a receiver.
    pub states: Option<SenderStates>,
    /// Differences of the system's counters of protocols, interfaces and queues. Counters that did
    /// not change are omitted.
    pub system: BTreeMap<String, u64>,
    /// Kernel settings that affect TCP, by `sysctl` name.
    pub settings: BTreeMap<String, String>,
}

/// Measurements of the thread that writes or reads the data, and of the thread that drives
/// linerate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadEvidence {
    /// Processor time of the thread, in nanoseconds.
    pub cpu_nanos: Option<u64>,
    /// Time in which the thread was ready to run but waited in a CPU's run queue, in nanoseconds.
    pub queue_wait_nanos: Option<u64>,
    /// Context switches because the thread waited for an event.
    pub voluntary_switches: Option<u64>,
    /// Context switches because the CPU was given to another thread.
    pub involuntary_switches: Option<u64>,
    /// Time in calls of `write` or `read`, in nanoseconds. It includes copying and waiting.
    pub call_nanos: Option<u64>,
    /// Processor time of the thread that drives linerate's host, in nanoseconds; `None` with the
    /// kernel's TCP.
    pub host_cpu_nanos: Option<u64>,
    /// Time in which the thread of linerate's host waited in a CPU's run queue, in nanoseconds.
    pub host_queue_wait_nanos: Option<u64>,
    /// Context switches because the thread of linerate's host waited for an event.
    pub host_voluntary_switches: Option<u64>,
}

/// Measurements of the machine of one end, during the observed part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineEvidence {
    /// Share of the time for which the hypervisor withheld the CPUs, as the mean over all CPUs.
    pub steal_share: Option<f64>,
    /// Share of its time that one CPU spent in software interrupts, for the CPU with the largest
    /// share.
    pub softirq_share: Option<f64>,
    /// Share of the time in which the CPUs were idle, as the mean over all CPUs.
    pub idle_share: Option<f64>,
}

/// Measurements of a TCP connection: differences over the observed part, and values at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionEvidence {
    /// Time in which data was in flight, in microseconds.
    pub busy_micros: Option<u64>,
    /// Time in which the peer's window limited the sender, in microseconds.
    pub receive_window_limited_micros: Option<u64>,
    /// Time in which the send buffer limited the sender, in microseconds.
    pub send_buffer_limited_micros: Option<u64>,
    /// Data segments sent during the observed part, including retransmissions.
    pub data_segments_sent: Option<u64>,
    /// Segments retransmitted during the observed part.
    pub retransmitted_segments: Option<u64>,
    /// Data segments sent since the connection was opened.
    pub whole_data_segments: Option<u64>,
    /// Segments retransmitted since the connection was opened.
    pub whole_retransmitted_segments: Option<u64>,
    /// Losses since the connection was opened. Losses within one round trip count as one.
    pub loss_events: Option<u64>,
    /// Bytes that the peer acknowledged during the observed part.
    pub acknowledged_bytes: Option<u64>,
    /// Expirations of the retransmission timer since the connection was opened.
    pub retransmission_timeouts: Option<u64>,
    /// The path MTU in bytes.
    pub path_mtu: Option<u64>,
    /// Most data in one segment, in bytes.
    pub segment_bytes: Option<u64>,
    /// Window scale of the windows that this end receives, as a shift count (RFC 7323 §2).
    pub send_window_scale: Option<u64>,
    /// Window scale of the windows that this end announces, as a shift count (RFC 7323 §2).
    pub receive_window_scale: Option<u64>,
    /// The congestion window in segments.
    pub congestion_window: Option<Distribution>,
    /// The largest congestion window in the first half of the run, in segments.
    pub earlier_congestion_window: Option<u64>,
    /// The slow start threshold in segments. Before the first loss, it is the largest value of 31
    /// or 32 bits.
    pub slow_start_threshold: Option<u64>,
    /// The smoothed round-trip time in microseconds.
    pub round_trip_micros: Option<Distribution>,
    /// The shortest round-trip time in microseconds.
    pub shortest_round_trip_micros: Option<u64>,
    /// The most recent delivery rate in bytes per second.
    pub delivery_rate: Option<u64>,
    /// The delivery rate that 5 % of the samples exceed, in bytes per second. The path can carry at
    /// least this much.
    pub peak_delivery_rate: Option<u64>,
    /// The window that the peer advertises, in bytes.
    pub peer_window: Option<Distribution>,
    /// The size of the send buffer at the end in bytes, as the system reports it.
    pub send_buffer: Option<u64>,
    /// The size of the receive buffer at the end in bytes, as the system reports it.
    pub receive_buffer: Option<u64>,
}

/// Sampled lengths of a connection's queues in bytes, and the packets that its socket dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueEvidence {
    /// Data written but not yet acknowledged (`SIOCOUTQ`).
    pub unacknowledged: Option<Distribution>,
    /// Data written but not yet sent (`SIOCOUTQNSD`).
    pub unsent: Option<Distribution>,
    /// Data received but not yet read (`SIOCINQ`).
    pub unread: Option<Distribution>,
    /// Memory that the send queue occupies (`SK_MEMINFO_WMEM_QUEUED`).
    pub send_memory: Option<Distribution>,
    /// Memory that the receive queue occupies (`SK_MEMINFO_RMEM_ALLOC`).
    pub receive_memory: Option<Distribution>,
    /// Packets that the socket has dropped for lack of memory since it was opened.
    pub drops: Option<u64>,
}

/// The reasons why a sender did not send when it was sampled, as shares of all samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SenderStates {
    /// Number of samples.
    pub samples: u64,
    /// Share of samples in which the send buffer is full of data in flight: nearly everything is
    /// sent, the windows have room, and the program is in `write`.
    pub buffer_full: f64,
    /// Share of samples in which everything is sent and the program is not in `write`.
    pub out_of_data: f64,
    /// Share of samples in which unsent data waits for the peer's window.
    pub window_full: f64,
    /// Share of samples in which unsent data waits for the congestion window.
    pub congestion_window_full: f64,
    /// Share of samples in which unsent data waits although both windows have room: for pacing, a
    /// local queue or the processor.
    pub held_back: f64,
}

/// The mean and the maximum of a sampled value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Mean of the samples.
    pub mean: f64,
    /// Maximum of the samples.
    pub max: u64,
}

impl EndEvidence {
    /// Converts nanoseconds to a share of the observed part; `None` if either is unknown.
    #[must_use]
    pub fn share_of_nanos(&self, nanos: Option<u64>) -> Option<f64> {
        share(nanos?, self.seconds?, 1e9)
    }

    /// Converts microseconds to a share of the observed part; `None` if either is unknown.
    #[must_use]
    pub fn share_of_micros(&self, micros: Option<u64>) -> Option<f64> {
        share(micros?, self.seconds?, 1e6)
    }

    /// Returns the sum of the differences of all system counters whose name satisfies `is_counted`.
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

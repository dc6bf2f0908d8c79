//! The measurements at one end of a run: of its thread, its machine, its TCP connection and the
//! connection's queues.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The measurements at one end of a run. Most of them refer only to a part of the run, called the
/// observed part. This part begins some time after the first byte, when slow start should be over.
///
/// `None` stands for a value that the system does not provide; such a value is never replaced by
/// zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndEvidence {
    /// Duration of the observed part in seconds. All increases of counters refer to this time.
    pub seconds: Option<f64>,
    /// Number of bytes that the program at this end wrote or read during the observed part.
    pub bytes: Option<u64>,
    /// Measurements of the thread that writes or reads the data.
    pub thread: ThreadEvidence,
    /// Measurements of the machine on which this end runs.
    pub machine: MachineEvidence,
    /// Measurements of the TCP connection at this end.
    pub connection: ConnectionEvidence,
    /// Lengths of the connection's queues, sampled during the observed part.
    pub queues: QueueEvidence,
    /// For each reason why a sender may be unable to send: the share of samples in which it
    /// applied. `None` at a receiving end.
    pub states: Option<SenderStates>,
    /// Increase of the system's counters of protocols, interfaces and queues during the observed
    /// part, by counter name. Counters that did not change are omitted.
    pub system: BTreeMap<String, u64>,
    /// Values of kernel settings that affect TCP, by `sysctl` name.
    pub settings: BTreeMap<String, String>,
}

/// Measurements of two threads during the observed part of a run: the one that writes or reads the
/// data, and the one that drives linerate's host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadEvidence {
    /// Processor time of the thread that writes or reads, in nanoseconds.
    pub cpu_nanos: Option<u64>,
    /// Time for which the thread that writes or reads was ready to run but waited in a CPU's run
    /// queue, in nanoseconds.
    pub queue_wait_nanos: Option<u64>,
    /// Number of context switches because the thread that writes or reads waited for an event.
    pub voluntary_switches: Option<u64>,
    /// Number of context switches because the CPU of the thread that writes or reads was given to
    /// another thread.
    pub involuntary_switches: Option<u64>,
    /// Time that the thread that writes or reads spent in calls of `write` or `read`, in
    /// nanoseconds. It includes copying data, and waiting for data or for room in the send buffer.
    pub call_nanos: Option<u64>,
    /// Processor time of the thread that drives linerate's host, in nanoseconds; `None` with the
    /// kernel's TCP.
    pub host_cpu_nanos: Option<u64>,
    /// Time for which the thread of linerate's host was ready to run but waited in a CPU's run
    /// queue, in nanoseconds; `None` with the kernel's TCP.
    pub host_queue_wait_nanos: Option<u64>,
    /// Number of context switches because the thread of linerate's host waited for an event; `None`
    /// with the kernel's TCP.
    pub host_voluntary_switches: Option<u64>,
}

/// Use of the CPUs of one end's machine during the observed part of a run. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineEvidence {
    /// Share of the time for which the hypervisor withheld the CPUs: the mean over all CPUs.
    pub steal_share: Option<f64>,
    /// Share of the time that a CPU spent in software interrupts. The value is that of the CPU with
    /// the largest share.
    pub softirq_share: Option<f64>,
    /// Share of the time for which the CPUs were idle: the mean over all CPUs.
    pub idle_share: Option<f64>,
    /// Number of CPUs.
    pub cpus: Option<u32>,
    /// Processor time of the kernel's threads for software interrupts (`ksoftirqd`), in
    /// nanoseconds. The kernel handles received packets in these threads if too many arrive to be
    /// handled in the interrupts themselves.
    pub softirq_thread_nanos: Option<u64>,
    /// Number that identifies the running kernel: the first half of its boot ID. Both ends have the
    /// same number if they run on the same machine.
    pub boot: Option<u64>,
}

/// Measurements of a TCP connection at one end. Unless stated otherwise, the value of a counter is
/// its increase during the observed part of the run. Any other value was measured at the end of
/// that part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionEvidence {
    /// Time for which the sender had unacknowledged data in flight, in microseconds.
    pub busy_micros: Option<u64>,
    /// Time for which the sender had unsent data but the peer's window was full, in microseconds.
    pub receive_window_limited_micros: Option<u64>,
    /// Time for which the send buffer limited the sender, in microseconds. The buffer was then
    /// full, and nearly all of its data was in flight.
    pub send_buffer_limited_micros: Option<u64>,
    /// Number of data segments sent during the observed part, including retransmissions.
    pub data_segments_sent: Option<u64>,
    /// Number of segments retransmitted during the observed part.
    pub retransmitted_segments: Option<u64>,
    /// Number of data segments sent since the connection was opened, including retransmissions.
    pub whole_data_segments: Option<u64>,
    /// Number of segments retransmitted since the connection was opened.
    pub whole_retransmitted_segments: Option<u64>,
    /// Number of loss events since the connection was opened. Losses within one round-trip time
    /// count as one event, because they usually have one cause.
    pub loss_events: Option<u64>,
    /// Number of bytes that the peer acknowledged during the observed part.
    pub acknowledged_bytes: Option<u64>,
    /// Number of expirations of the retransmission timer since the connection was opened.
    pub retransmission_timeouts: Option<u64>,
    /// The path MTU in bytes.
    pub path_mtu: Option<u64>,
    /// Maximum number of data bytes that the connection puts into one segment.
    pub segment_bytes: Option<u64>,
    /// Shift count by which windows received from the peer are scaled (RFC 7323 §2).
    pub send_window_scale: Option<u64>,
    /// Shift count by which windows announced to the peer are scaled (RFC 7323 §2).
    pub receive_window_scale: Option<u64>,
    /// The congestion window in segments, from samples during the observed part.
    pub congestion_window: Option<Distribution>,
    /// The largest congestion window in the samples before the observed part, in segments. A larger
    /// maximum in the observed part shows that the window was still growing.
    pub earlier_congestion_window: Option<u64>,
    /// The slow start threshold in segments. Before the first loss it is huge: the largest value
    /// that the TCP can represent.
    pub slow_start_threshold: Option<u64>,
    /// The smoothed round-trip time in microseconds, from samples during the observed part.
    pub round_trip_micros: Option<Distribution>,
    /// The shortest round-trip time that the TCP has measured, in microseconds.
    pub shortest_round_trip_micros: Option<u64>,
    /// The TCP's most recent estimate of the delivery rate, in bytes per second.
    pub delivery_rate: Option<u64>,
    /// The delivery rate that 5 % of the samples in the observed part exceed, in bytes per second.
    /// The path has carried data at this rate, at least for a short time.
    pub peak_delivery_rate: Option<u64>,
    /// The window that the peer advertises in bytes, from samples during the observed part.
    pub peer_window: Option<Distribution>,
    /// The size of the send buffer in bytes, as the system reports it. The kernel reports twice the
    /// size that was requested.
    pub send_buffer: Option<u64>,
    /// The size of the receive buffer in bytes, as the system reports it. The kernel reports twice
    /// the size that was requested.
    pub receive_buffer: Option<u64>,
}

/// Lengths of a connection's queues in bytes, sampled during the observed part of a run, and the
/// number of packets that the connection's socket dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueEvidence {
    /// Bytes that were written but not yet acknowledged (`SIOCOUTQ`).
    pub unacknowledged: Option<Distribution>,
    /// Bytes that were written but not yet sent (`tcpi_notsent_bytes`).
    pub unsent: Option<Distribution>,
    /// Bytes that were received but not yet read (`SIOCINQ`).
    pub unread: Option<Distribution>,
    /// Memory that the send queue occupies, in bytes (`SK_MEMINFO_WMEM_QUEUED`).
    pub send_memory: Option<Distribution>,
    /// Memory that the receive queue occupies, in bytes (`SK_MEMINFO_RMEM_ALLOC`).
    pub receive_memory: Option<Distribution>,
    /// Number of packets that the socket has dropped since it was opened. The kernel's socket
    /// counts packets dropped for lack of memory and duplicates. linerate's socket counts only
    /// packets dropped for lack of memory.
    pub drops: Option<u64>,
}

/// How often each reason kept a sender from sending, as shares of all samples, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SenderStates {
    /// Number of all samples, to which the shares refer.
    pub samples: u64,
    /// Share of samples in which the send buffer was full, nearly all of its data was in flight,
    /// and the program waited in `write`.
    pub buffer_full: f64,
    /// Share of samples in which the sender had no unsent data, and the program was not in `write`.
    pub out_of_data: f64,
    /// Share of samples in which unsent data waited for the peer's window.
    pub window_full: f64,
    /// Share of samples in which unsent data waited for the congestion window.
    pub congestion_window_full: f64,
    /// Share of samples in which unsent data waited although both the peer's window and the
    /// congestion window had room. The data then waited for pacing, a local queue or the processor.
    pub held_back: f64,
}

/// The mean and the maximum of a sampled value. Both have the unit of the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Mean of the samples.
    pub mean: f64,
    /// Maximum of the samples.
    pub max: u64,
}

impl EndEvidence {
    /// Returns `nanos`, a time in nanoseconds, as a share of the observed part. Returns `None` if
    /// `nanos` or the duration of the observed part is unknown, or if that duration is zero.
    #[must_use]
    pub fn share_of_nanos(&self, nanos: Option<u64>) -> Option<f64> {
        share(nanos?, self.seconds?, 1e9)
    }

    /// Returns `micros`, a time in microseconds, as a share of the observed part. Returns `None` if
    /// `micros` or the duration of the observed part is unknown, or if that duration is zero.
    #[must_use]
    pub fn share_of_micros(&self, micros: Option<u64>) -> Option<f64> {
        share(micros?, self.seconds?, 1e6)
    }

    /// Returns the sum of the increases of all system counters whose name satisfies `is_counted`.
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

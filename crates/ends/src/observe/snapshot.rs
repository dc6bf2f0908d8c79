//! All counters of one end (the source or the sink) at one moment, and the differences between two
//! such moments.

use super::call_clock::CallClock;
use super::machine::{MachineCounters, boot};
use super::reading::Reading;
use super::samples::Samples;
use super::system::SystemCounters;
use super::thread::{ObservedThreads, ThreadCounters};
use crate::machine::sysctl;
use crate::socket::Stream;
use linerate_evidence::{
    ConnectionEvidence, EndEvidence, MachineEvidence, QueueEvidence, ThreadEvidence,
};
use std::time::Instant;

/// Kernel settings that limit buffers, windows and packets.
const SETTINGS: [&str; 9] = [
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.netdev_max_backlog",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_mtu_probing",
];

/// All counters of the source or the sink at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// Time at which the counters were read.
    at: Instant,
    /// Number of bytes that the program has written or read.
    bytes: u64,
    /// Time that the program has spent in `write` or `read`, in nanoseconds.
    call_nanos: u64,
    /// Counters of the thread that writes or reads the data.
    thread: ThreadCounters,
    /// Counters of the thread that drives linerate's host; all `None` with the kernel's TCP.
    host: ThreadCounters,
    machine: MachineCounters,
    system: SystemCounters,
    reading: Reading,
    /// Size of the send buffer in bytes, as `getsockopt` reports it.
    send_buffer: Option<u64>,
    /// Size of the receive buffer in bytes, as `getsockopt` reports it.
    receive_buffer: Option<u64>,
}

impl Snapshot {
    /// Reads all counters of the source or the sink that uses `stream`.
    pub(super) fn take(stream: &Stream, clock: &CallClock, threads: ObservedThreads) -> Self {
        let counters = |thread: Option<u32>| thread.map(ThreadCounters::of).unwrap_or_default();
        Self {
            at: Instant::now(),
            bytes: clock.bytes(),
            call_nanos: clock.call_nanos(),
            thread: counters(threads.own),
            host: counters(threads.host),
            machine: MachineCounters::read(),
            system: SystemCounters::read(),
            reading: Reading::of(stream),
            send_buffer: stream.send_buffer().ok(),
            receive_buffer: stream.receive_buffer().ok(),
        }
    }

    /// Returns the evidence about the time from the snapshot `first` to this one. `samples` are the
    /// samples that were taken in this time.
    pub(super) fn since(&self, first: &Self, samples: &Samples) -> EndEvidence {
        let settings = SETTINGS.iter().filter_map(|&name| Some((name.to_owned(), sysctl(name)?)));
        EndEvidence {
            seconds: Some(self.at.saturating_duration_since(first.at).as_secs_f64()),
            bytes: Some(self.bytes.saturating_sub(first.bytes)),
            thread: self.thread_since(first),
            machine: MachineEvidence { boot: boot(), ..self.machine.since(&first.machine) },
            connection: self.connection_since(first, samples),
            queues: QueueEvidence { drops: self.reading.drops, ..samples.queues() },
            states: samples.states(),
            system: self.system.since(&first.system),
            settings: settings.collect(),
        }
    }

    fn thread_since(&self, first: &Self) -> ThreadEvidence {
        let (now, then) = (&self.thread, &first.thread);
        let (host, earlier) = (&self.host, &first.host);
        ThreadEvidence {
            cpu_nanos: difference(now.cpu_nanos, then.cpu_nanos),
            queue_wait_nanos: difference(now.queue_wait_nanos, then.queue_wait_nanos),
            voluntary_switches: difference(now.voluntary_switches, then.voluntary_switches),
            involuntary_switches: difference(now.involuntary_switches, then.involuntary_switches),
            call_nanos: Some(self.call_nanos.saturating_sub(first.call_nanos)),
            host_cpu_nanos: difference(host.cpu_nanos, earlier.cpu_nanos),
            host_queue_wait_nanos: difference(host.queue_wait_nanos, earlier.queue_wait_nanos),
            host_voluntary_switches: difference(
                host.voluntary_switches,
                earlier.voluntary_switches,
            ),
        }
    }

    fn connection_since(&self, first: &Self, samples: &Samples) -> ConnectionEvidence {
        let (now, then) = (&self.reading, &first.reading);
        ConnectionEvidence {
            busy_micros: difference(now.busy, then.busy),
            receive_window_limited_micros: difference(
                now.receive_window_limited,
                then.receive_window_limited,
            ),
            send_buffer_limited_micros: difference(
                now.send_buffer_limited,
                then.send_buffer_limited,
            ),
            data_segments_sent: difference(now.data_segments_sent, then.data_segments_sent),
            retransmitted_segments: difference(now.retransmitted, then.retransmitted),
            whole_data_segments: now.data_segments_sent,
            whole_retransmitted_segments: now.retransmitted,
            loss_events: samples.loss_events(),
            acknowledged_bytes: difference(now.acknowledged, then.acknowledged),
            retransmission_timeouts: now.timeouts,
            path_mtu: now.path_mtu,
            segment_bytes: now.segment,
            send_window_scale: now.send_window_scale,
            receive_window_scale: now.receive_window_scale,
            congestion_window: samples.congestion_window(),
            earlier_congestion_window: samples.earlier_congestion_window(),
            slow_start_threshold: now.slow_start_threshold,
            round_trip_micros: samples.round_trip(),
            shortest_round_trip_micros: now.shortest_round_trip,
            delivery_rate: now.delivery_rate,
            peak_delivery_rate: samples.peak_delivery_rate(),
            peer_window: samples.peer_window(),
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
        }
    }
}

/// Returns the increase of a counter from `then` to `now`; `None` if either value is unknown, or if
/// the counter has decreased.
fn difference(now: Option<u64>, then: Option<u64>) -> Option<u64> {
    now?.checked_sub(then?)
}

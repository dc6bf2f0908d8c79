//! The counters of one end of a connection, under names that do not depend on the TCP
//! implementation.

use super::own_counters::of_connection;
use super::stream::Stream;
use linerate_evidence::{EndCounters, names};
use linerate_link::kernel_tcp::{self, TcpInfo};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Interval between two samples of the queues. At this interval, sampling takes less than a
/// thousandth of the run's time.
const INTERVAL: Duration = Duration::from_millis(1);

/// Fields of `TCP_INFO` that are recorded under another name: pairs of the kernel's name and the
/// name in the records.
const RENAMED: &[(&str, &str)] = &[
    ("data_segs_out", names::DATA_SEGMENTS_SENT),
    ("total_retrans", names::RETRANSMITTED_SEGMENTS),
    ("total_rto", names::RETRANSMISSION_TIMEOUTS),
    ("rwnd_limited", names::RECEIVE_WINDOW_LIMITED_MICROS),
    ("sndbuf_limited", names::SEND_BUFFER_LIMITED_MICROS),
];

/// A sampler of a connection's queues during a run. It stores only the largest value of each.
#[derive(Debug)]
pub struct Sampler {
    /// Time at which the next sample is due.
    next: Instant,
    /// Maximum number of bytes that were written but not acknowledged.
    unacknowledged: u64,
    /// Maximum kernel memory of the send queue in bytes, including overhead.
    send_queue: u64,
    /// Maximum kernel memory of the receive queue in bytes, including overhead.
    receive_queue: u64,
}

impl Sampler {
    /// Creates a sampler whose first sample is due at `now`.
    pub const fn new(now: Instant) -> Self {
        Self { next: now, unacknowledged: 0, send_queue: 0, receive_queue: 0 }
    }

    /// Takes a sample of the queues of `stream` if a sample is due at `now`. Connections of
    /// linerate hosts are not sampled.
    pub fn look(&mut self, now: Instant, stream: &Stream) {
        let Stream::Kernel(stream) = stream else { return };
        if now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        // If a call fails, its sample is missing, and the maximum stays as it is. The run must not
        // fail because of a missing sample.
        if let Ok(bytes) = kernel_tcp::unacknowledged_bytes(stream) {
            self.unacknowledged = self.unacknowledged.max(bytes);
        }
        if let Ok(memory) = kernel_tcp::memory(stream) {
            self.send_queue = self.send_queue.max(memory.send_queue);
            self.receive_queue = self.receive_queue.max(memory.receive_queue);
        }
    }
}

/// Returns the counters of `stream` at the end of a run. For the kernel's TCP, they include the
/// sampled maxima `peaks`.
pub fn counters(stream: &Stream, peaks: &Sampler) -> EndCounters {
    match stream {
        Stream::Kernel(stream) => of_the_kernel(stream, peaks),
        // A connection that linerate's host has already removed has no counters.
        Stream::Own(stream, _) => match (stream.statistics(), stream.tcp_info()) {
            (Ok(counted), Ok(state)) => of_connection(&counted, &state),
            _ => EndCounters::default(),
        },
    }
}

fn of_the_kernel(stream: &TcpStream, peaks: &Sampler) -> EndCounters {
    let mut end = EndCounters::default();
    if let Ok(info) = TcpInfo::of(stream) {
        for (field, value) in info.fields() {
            let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == field);
            end.set(renamed.map_or(field, |(_, ours)| ours), value);
        }
    }
    if let Ok(memory) = kernel_tcp::memory(stream) {
        end.set(names::SOCKET_DROPS, memory.drops);
    }
    end.set("peak_unacknowledged_bytes", peaks.unacknowledged);
    end.set("peak_send_queue_memory", peaks.send_queue);
    end.set("peak_receive_queue_memory", peaks.receive_queue);
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn drops_of_the_kernels_socket_are_not_called_dropped_frames() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let end = counters(&stream.into(), &Sampler::new(Instant::now()));
        assert_eq!(end.get(names::SOCKET_DROPS), Some(0));
        assert_eq!(end.get(names::DROPPED_FRAMES), None);
    }
}

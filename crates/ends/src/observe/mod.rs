//! Observation of one end of a run: its thread, its machine, its TCP connection and its queues.
//!
//! A thread that blocks in `write` or `read` cannot take samples, so a second thread observes the
//! first. The observing thread first waits for a delay after the first byte, so that slow start
//! does not belong to the observed part. Then it reads all counters, samples the queues at regular
//! intervals, and reads all counters again when the transfer has ended.

mod call_clock;
mod machine;
mod reading;
mod samples;
mod snapshot;
mod system;
mod thread;

pub use call_clock::CallClock;

use crate::socket::Stream;
use linerate_evidence::EndEvidence;
use samples::Samples;
use snapshot::Snapshot;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;
use std::time::{Duration, Instant};
use thread::ObservedThreads;

/// Interval between two samples of the queues. A sample takes a few microseconds.
const INTERVAL: Duration = Duration::from_millis(2);

/// Executes `transfer`, which must use `stream` and `clock`, while a second thread observes the
/// connection. Returns the result of `transfer` and the evidence.
///
/// The observed part of the run begins when `after` has passed since the first byte. The evidence
/// is empty if the transfer ends earlier, or if the system provides no second thread.
pub fn observed<T>(
    stream: &Stream,
    clock: &CallClock,
    after: Duration,
    transfer: impl FnOnce() -> T,
) -> (T, EndEvidence) {
    let is_over = &AtomicBool::new(false);
    let host = match stream {
        Stream::Kernel(_) => None,
        Stream::Own(_, threads) => threads.number(),
    };
    let threads = ObservedThreads { own: thread::own_number(), host };
    std::thread::scope(|scope| {
        let observe = move || {
            let mut observer = Observer { stream, clock, threads, after };
            observer.run(is_over)
        };
        let observer = std::thread::Builder::new().spawn_scoped(scope, observe).ok();
        let result = transfer();
        is_over.store(true, Ordering::Relaxed);
        let evidence = observer.map(|observer| {
            observer.thread().unpark();
            observer.join().unwrap_or_default()
        });
        (result, evidence.unwrap_or_default())
    })
}

/// The state of the thread that observes one end of a run.
struct Observer<'a> {
    stream: &'a Stream,
    clock: &'a CallClock,
    threads: ObservedThreads,
    /// Delay from the first byte to the start of the observed part.
    after: Duration,
}

impl Observer<'_> {
    fn run(&mut self, is_over: &AtomicBool) -> EndEvidence {
        let mut samples = Samples::default();
        let mut first_byte: Option<Instant> = None;
        let mut first: Option<Snapshot> = None;
        while !is_over.load(Ordering::Relaxed) {
            let now = Instant::now();
            if first_byte.is_none() && self.clock.bytes() > 0 {
                first_byte = Some(now);
            }
            let is_due = first_byte.is_some_and(|began| now - began >= self.after);
            if first.is_none() && is_due {
                first = Some(self.snapshot());
            }
            if first.is_some() {
                samples.take(self.stream, self.clock, now);
            } else {
                samples.note_earlier(self.stream, now);
            }
            park_timeout(INTERVAL);
        }
        let Some(first) = first else { return EndEvidence::default() };
        self.snapshot().since(&first, &samples)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.stream, self.clock, self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Contents, WriteTask};
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_the_thread_and_the_connection_are_observed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near: Stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap().into();
        let mut far = listener.accept().unwrap().0;
        let reader = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while far.read(&mut buffer).is_ok_and(|count| count > 0) {}
        });
        let clock = CallClock::new();
        let task = WriteTask {
            bytes: u64::MAX,
            write_size: 1 << 16,
            contents: Contents::Any,
            pause: Duration::ZERO,
            max_rate: None,
        };
        // The transfer lasts twenty sampling intervals, so that the observer takes several samples.
        let (given, evidence) = observed(&near, &clock, Duration::ZERO, || {
            task.run_timed(&near, &clock, |began, now| now - began >= 20 * INTERVAL)
        });
        drop(near);
        reader.join().unwrap();
        assert!(given.bytes > 0);
        let bytes = evidence.bytes.unwrap();
        assert!(bytes > 0 && bytes <= given.bytes);
        assert!(evidence.seconds.unwrap() > 0.0);
        assert!(evidence.thread.cpu_nanos.is_some() && evidence.thread.call_nanos.is_some());
        assert!(evidence.connection.acknowledged_bytes.is_some());
        let states = evidence.states.unwrap();
        let sum = states.buffer_full
            + states.out_of_data
            + states.window_full
            + states.congestion_window_full
            + states.held_back;
        assert!((sum - 1.0).abs() < 1e-9, "{states:?}");
    }

    #[test]
    fn a_transfer_that_is_over_too_soon_has_no_evidence() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near: Stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap().into();
        let ((), evidence) = observed(&near, &CallClock::new(), Duration::from_secs(9), || {});
        assert_eq!(evidence, EndEvidence::default());
    }
}

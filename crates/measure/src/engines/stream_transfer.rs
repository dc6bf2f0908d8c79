//! A transfer between two connected streams of this process, with one thread for each stream.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::PinnedThread;
use crate::engines::thread_usage::{StolenTime, ThreadUsage};
use linerate_ends::socket::{Contents, ReadResult, ReadTask, Stream, WriteResult, WriteTask};
use linerate_ends::workload::Pattern;
use linerate_ends::{Ended, Interrupt};
use linerate_evidence::Counters;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Additional time for which the reader waits for data after the maximum duration of a run. It is
/// needed because the threads may start late.
const GRACE: Duration = Duration::from_millis(500);

/// The results of a transfer at both ends.
#[derive(Debug)]
pub(crate) struct Carried {
    /// The result of writing the data to the first stream.
    pub(crate) given: WriteResult,
    /// The result of reading the data from the second stream.
    pub(crate) taken: ReadResult,
    /// The processor time and waiting time of both threads.
    usage: Counters,
}

impl Carried {
    /// Adds the processor time and waiting time of both threads to `counters`, the counters of the
    /// connection.
    pub(crate) fn note_usage(&self, counters: &mut Counters) {
        let ends = [
            (&mut counters.sender, &self.usage.sender),
            (&mut counters.receiver, &self.usage.receiver),
        ];
        for (end, usage) in ends {
            end.counts.extend(usage.counts.iter().map(|(name, count)| (name.clone(), *count)));
        }
    }

    /// Returns the duration of the transfer. It starts with the first write, and ends when the
    /// reader has read the last byte or has given up waiting.
    pub(crate) fn time(&self) -> linerate_units::Duration {
        let end = match (self.taken.ended, self.taken.last) {
            (Ended::Complete, Some(last)) => last,
            _ => self.taken.finished,
        };
        end.saturating_duration_since(self.given.began).into()
    }
}

/// Writes the requested bytes to `near` in one thread, and reads them from `far` in a second
/// thread. Returns an error if the connection failed or the user interrupted the run.
pub(crate) fn carry(
    near: &Stream,
    far: &Stream,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<Carried, BenchError> {
    let max_time = Duration::from(request.max_time);
    let over = &AtomicBool::new(false);
    let (write_task, read_task) = (write_task(request), read_task(request));
    let stolen = StolenTime::start();
    let carried = thread::scope(|scope| {
        let sink = scope.spawn(|| {
            PinnedThread::Sink.pin();
            let usage = ThreadUsage::start();
            let taken = read_task.run(far, b"", || interrupt.is_raised());
            over.store(true, Ordering::Relaxed);
            (taken, usage.counted())
        });
        let late = |began, now: Instant| now.saturating_duration_since(began) >= max_time;
        let source = scope.spawn(move || {
            PinnedThread::Source.pin();
            let usage = ThreadUsage::start();
            let given =
                write_task.run(near, |began, now| over.load(Ordering::Relaxed) || late(began, now));
            if given.error.is_some() {
                // The writer has failed. The shutdown ends the stream at once; otherwise the reader
                // would wait until the maximum duration has passed.
                let _ = near.shutdown(std::net::Shutdown::Both);
            }
            (given, usage.counted())
        });
        source.join().and_then(|(given, sender)| {
            sink.join().map(|(taken, receiver)| {
                let mut usage = Counters { sender, receiver };
                stolen.note(&mut usage.sender);
                Carried { given, taken, usage }
            })
        })
    });
    let carried = carried.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    check_end(carried)
}

/// Returns an error unless the transfer ended because all bytes had been read, or because the
/// maximum duration had passed.
fn check_end(carried: Carried) -> Result<Carried, BenchError> {
    let what = match carried.taken.ended {
        Ended::Complete | Ended::TimeUp => return Ok(carried),
        Ended::Stopped => return Err(BenchError::Interrupted),
        Ended::EndOfStream => carried.given.error,
        Ended::Broken => carried.taken.error,
    };
    let what = what.map_or_else(|| "the source closed it".to_owned(), |error| error.to_string());
    Err(BenchError::ConnectionLost { bytes: carried.taken.bytes, what })
}

/// Returns the task that writes the data of the run `request`.
pub(crate) fn write_task(request: &RunRequest) -> WriteTask {
    let pattern = || Contents::Pattern(Pattern::new(request.seed));
    let contents = if request.verify { pattern() } else { Contents::Any };
    let pause = Duration::ZERO;
    WriteTask {
        bytes: request.bytes,
        write_size: request.write_size,
        contents,
        pause,
        max_rate: None,
    }
}

/// Returns the task that reads the data of the run `request`. Its maximum duration counts from the
/// first byte, because the writing thread may start late.
pub(crate) fn read_task(request: &RunRequest) -> ReadTask {
    let max_time = Duration::from(request.max_time);
    ReadTask {
        bytes: request.bytes,
        read_size: request.read_size,
        pattern: request.verify.then(|| Pattern::new(request.seed)),
        max_time,
        idle_time: max_time.saturating_add(GRACE),
        pause: Duration::ZERO,
        discard: false,
    }
}

/// Converts the result of reading a buffer's size with `getsockopt`, so that an error becomes a
/// [`BenchError`].
pub(crate) fn granted(size: io::Result<u64>) -> Result<u64, BenchError> {
    size.map_err(|error| BenchError::io("reading a buffer's size back", error))
}

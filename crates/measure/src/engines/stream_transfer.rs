//! A transfer over two connected streams of this process, one thread each.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::Seat;
use linerate_ends::socket::{Contents, Given, Intake, Outflow, Stream, Taken};
use linerate_ends::workload::Pattern;
use linerate_ends::{Ended, Interrupt};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long the first byte may take: threads begin when the machine has time for them.
const PATIENCE: Duration = Duration::from_secs(5);

/// What both ends of a transfer did.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) given: Given,
    pub(crate) taken: Taken,
}

impl Carried {
    /// From the first write to the sink having read the last byte, or having given up waiting for
    /// it.
    pub(crate) fn time(&self) -> linerate_units::Duration {
        let end = match (self.taken.ended, self.taken.last) {
            (Ended::Complete, Some(last)) => last,
            _ => self.taken.finished,
        };
        end.saturating_duration_since(self.given.began).into()
    }
}

/// Writes the request's bytes into `near` in one thread and reads them from `far` in another.
pub(crate) fn carry(
    near: &Stream,
    far: &Stream,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<Carried, BenchError> {
    let max_time = Duration::from(request.max_time);
    let over = &AtomicBool::new(false);
    let (outflow, intake) = (outflow(request), intake(request));
    let carried = thread::scope(|scope| {
        let sink = scope.spawn(|| {
            Seat::Sink.take();
            let taken = intake.take(far, b"", || interrupt.is_raised());
            over.store(true, Ordering::Relaxed);
            taken
        });
        let late = |began, now: Instant| now.saturating_duration_since(began) >= max_time;
        let source = scope.spawn(move || {
            Seat::Source.take();
            let given =
                outflow.give(near, |began, now| over.load(Ordering::Relaxed) || late(began, now));
            if given.error.is_some() {
                // The sink then finds the end of the stream, and need not wait for its time to be
                // up.
                let _ = near.shutdown(std::net::Shutdown::Both);
            }
            given
        });
        source.join().and_then(|given| sink.join().map(|taken| Carried { given, taken }))
    });
    let carried = carried.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    judge(carried)
}

/// A transfer that ended otherwise than by its bytes or its time is no measurement.
fn judge(carried: Carried) -> Result<Carried, BenchError> {
    let what = match carried.taken.ended {
        Ended::Complete | Ended::TimeUp => return Ok(carried),
        Ended::Stopped => return Err(BenchError::Interrupted),
        Ended::EndOfStream => carried.given.error,
        Ended::Broken => carried.taken.error,
    };
    let what = what.map_or_else(|| "the source closed it".to_owned(), |error| error.to_string());
    Err(BenchError::ConnectionLost { bytes: carried.taken.bytes, what })
}

/// What the source does.
pub(crate) fn outflow(request: &RunRequest) -> Outflow {
    let pattern = || Contents::Pattern(Pattern::new(request.seed));
    let contents = if request.verify { pattern() } else { Contents::Any };
    Outflow { bytes: request.bytes, write_size: request.write_size, contents }
}

/// What the sink does. Its time begins with the first byte, which the source may be late with,
/// since threads begin when the machine has time for them.
pub(crate) fn intake(request: &RunRequest) -> Intake {
    let max_time = Duration::from(request.max_time);
    Intake {
        bytes: request.bytes,
        read_size: request.read_size,
        pattern: request.verify.then(|| Pattern::new(request.seed)),
        max_time,
        idle_time: max_time.saturating_add(PATIENCE),
    }
}

/// A buffer's size as it reads back.
pub(crate) fn granted(size: io::Result<u64>) -> Result<u64, BenchError> {
    size.map_err(|error| BenchError::io("reading a buffer's size back", error))
}

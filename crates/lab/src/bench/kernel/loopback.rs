//! One transfer inside this process: two threads, two sockets, the kernel's loopback between them.

use super::{Pins, failed};
use crate::Interrupt;
use crate::bench::seat::Seat;
use crate::bench::{BenchError, Counters, RunOutcome, RunRequest};
use crate::control::Ended;
use crate::socket::{self, Contents, Given, Intake, Options, Outflow, Stream, Taken, counters};
use crate::workload::Pattern;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The loopback, and a port that the kernel chooses.
pub(super) const ANYWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
/// A handshake on the loopback takes no time to speak of, nor does a first byte.
const PATIENCE: Duration = Duration::from_secs(5);

/// Carries the request's bytes over a connection of its own.
pub(super) fn run(
    pins: &Pins,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<RunOutcome, BenchError> {
    let sender = pins.sender(ANYWHERE, request);
    let receiver = Options {
        receive_buffer: Some(request.receive_buffer.bytes),
        max_segment: sender.max_segment,
        ..Options::default()
    };
    let (near, far) =
        connected(&sender, &receiver).map_err(|error| failed("opening a connection", error))?;
    let carried = carry(&near, &far, request, interrupt)?;
    Ok(RunOutcome {
        bytes: carried.taken.bytes,
        time: carried.time(),
        complete: carried.taken.ended == Ended::Complete,
        verified: request.verify.then_some(carried.taken.wrong_at.is_none()),
        send_granted: granted(near.send_buffer())?,
        receive_granted: granted(far.receive_buffer())?,
        counters: Counters {
            sender: counters(&near, &carried.given.peaks),
            receiver: counters(&far, &carried.taken.peaks),
        },
    })
}

/// What both ends of a transfer did.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) given: Given,
    pub(super) taken: Taken,
}

impl Carried {
    /// From the first write to the sink having read the last byte, or having given up waiting for it.
    pub(super) fn time(&self) -> linerate_units::Duration {
        let end = match (self.taken.ended, self.taken.last) {
            (Ended::Complete, Some(last)) => last,
            _ => self.taken.finished,
        };
        end.saturating_duration_since(self.given.began).into()
    }
}

/// Writes the request's bytes into `near` in one thread and reads them from `far` in another.
pub(super) fn carry(
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
                // The sink then finds the end of the stream, and need not wait for its time to be up.
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
pub(in crate::bench) fn outflow(request: &RunRequest) -> Outflow {
    let pattern = || Contents::Pattern(Pattern::new(request.seed));
    let contents = if request.verify { pattern() } else { Contents::Any };
    Outflow { bytes: request.bytes, write_size: request.write_size, contents }
}

/// What the sink does. Its time begins with the first byte, which the source may be late with, since threads begin when
/// the machine has time for them.
pub(in crate::bench) fn intake(request: &RunRequest) -> Intake {
    let max_time = Duration::from(request.max_time);
    Intake {
        bytes: request.bytes,
        read_size: request.read_size,
        pattern: request.verify.then(|| Pattern::new(request.seed)),
        max_time,
        idle_time: max_time.saturating_add(PATIENCE),
    }
}

fn connected(sender: &Options, receiver: &Options) -> io::Result<(Stream, Stream)> {
    let listener = socket::listen(ANYWHERE, receiver)?;
    let near = socket::connect(listener.local_addr()?, sender, PATIENCE)?;
    loop {
        // Somebody else may have found the port.
        let (far, peer) = listener.accept()?;
        if peer == near.local_addr()? {
            return Ok((near.into(), far.into()));
        }
    }
}

/// A buffer's size as it reads back.
pub(in crate::bench) fn granted(size: io::Result<u64>) -> Result<u64, BenchError> {
    size.map_err(|error| failed("reading a buffer's size back", error))
}

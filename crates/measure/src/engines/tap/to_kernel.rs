//! linerate sends, the kernel receives.

use super::device::{KERNEL, OURS};
use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::Seat;
use crate::engines::own_tcp::{End, Given, Source, Transfer};
use crate::engines::stream_transfer::{granted, intake};
use crate::engines::threads::joined;
use linerate_ends::Ended;
use linerate_ends::Interrupt;
use linerate_ends::socket::{self, Options, Stream, Taken, counters};
use linerate_evidence::{Counters, EndCounters, RunOutcome};
use linerate_link::{MonotonicClock, Readiness};
use linerate_stack::Link;
use linerate_tcp::Config;
use linerate_units::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// One transfer; the link comes back with the outcome.
pub(crate) fn carry<L: Link + Readiness + Send>(
    link: L,
    config: &Config,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<(RunOutcome, L), BenchError> {
    let options =
        Options { receive_buffer: Some(request.receive_buffer.bytes), ..Options::default() };
    let anywhere = SocketAddr::from((KERNEL, 0));
    let listening = socket::listen(anywhere, &options).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok((listener, SocketAddrV4::new(KERNEL, port)))
    });
    let (listener, address) =
        listening.map_err(|error| BenchError::io("listening for linerate", error))?;
    let transfer = Transfer::new(request, interrupt);
    let (given, received) = thread::scope(|scope| {
        let ours = scope.spawn(|| {
            Seat::Source.take();
            let mut end = End::new(OURS, request.seed, link)?;
            let given = Source::new(&transfer).give(&mut end, address, config)?;
            Ok((given, end.into_link()))
        });
        let kernel = scope.spawn(|| {
            Seat::Sink.take();
            receive(&listener, &transfer)
        });
        (joined(ours), joined(kernel))
    });
    outcome(given, received)
}

/// What the kernel's end has come to.
struct Received {
    taken: Taken,
    /// When reading ended, by the clock of linerate's end.
    finished: linerate_units::Instant,
    verified: Option<bool>,
    counters: EndCounters,
    receive_buffer: u64,
}

/// Accepts the connection and reads it.
fn receive(listener: &TcpListener, transfer: &Transfer<'_>) -> Result<Received, BenchError> {
    let ending = transfer.ending();
    let stream = Stream::from(accept(listener, transfer)?);
    // Dropped before the stream, whose unread bytes reset the connection: a source that sees the
    // reset must find the transfer over.
    let _ending = ending;
    let intake = intake(transfer.request);
    let taken = intake.take(&stream, b"", || transfer.interrupt.is_raised() || transfer.is_over());
    let finished = match (taken.ended, taken.last) {
        (Ended::Complete, Some(last)) => last,
        _ => taken.finished,
    };
    Ok(Received {
        finished: on_our_clock(finished),
        verified: transfer.request.verify.then_some(taken.wrong_at.is_none()),
        counters: counters(&stream, &taken.peaks),
        receive_buffer: granted(stream.receive_buffer())?,
        taken,
    })
}

/// Both clocks are the monotonic one of the system, but only one tells its numbers.
fn on_our_clock(then: Instant) -> linerate_units::Instant {
    let (now, ours) = (Instant::now(), MonotonicClock.now());
    ours - linerate_units::Duration::from(now.saturating_duration_since(then))
}

/// Waits for the connection as long as its source is there.
fn accept(listener: &TcpListener, transfer: &Transfer<'_>) -> Result<TcpStream, BenchError> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if socket::is_pause(&error) => {}
            Err(error) => return Err(BenchError::io("accepting the connection", error)),
        }
        transfer.listen_to_interrupt()?;
        if transfer.is_over() {
            // Whatever happened to the source is its own to tell.
            return Err(BenchError::ConnectionLost {
                bytes: 0,
                what: "there was no connection".to_owned(),
            });
        }
        wait(listener)?;
    }
}

/// Until there is something to accept, or somebody should look whether all is well.
fn wait(listener: &TcpListener) -> Result<(), BenchError> {
    const ATTENTION: Duration = Duration::from_millis(50);
    let limit = Timespec::try_from(ATTENTION).ok();
    match poll(&mut [PollFd::new(listener, PollFlags::IN)], limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(BenchError::io("waiting for a connection", error.into())),
    }
}

fn outcome<L>(
    given: Result<(Given, L), BenchError>,
    received: Result<Received, BenchError>,
) -> Result<(RunOutcome, L), BenchError> {
    if matches!(received, Err(BenchError::Interrupted)) {
        return Err(BenchError::Interrupted);
    }
    let (given, link) = given?;
    let received = received?;
    let complete = match received.taken.ended {
        Ended::Complete => true,
        Ended::TimeUp => false,
        Ended::Stopped => return Err(BenchError::Interrupted),
        Ended::EndOfStream | Ended::Broken => {
            let error = received.taken.error.map(|error| error.to_string());
            let what = error.unwrap_or_else(|| "the source closed it".to_owned());
            return Err(BenchError::ConnectionLost { bytes: received.taken.bytes, what });
        }
    };
    let outcome = RunOutcome {
        bytes: received.taken.bytes,
        time: received.finished.since(given.began),
        complete,
        verified: received.verified,
        send_granted: given.send_buffer,
        receive_granted: received.receive_buffer,
        counters: Counters { sender: given.counters, receiver: received.counters },
    };
    Ok((outcome, link))
}

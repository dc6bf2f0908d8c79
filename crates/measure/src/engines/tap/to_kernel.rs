//! Transfers from linerate's TCP to the kernel's TCP, across a TAP or TUN device.

use super::device;
use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::PinnedThread;
use crate::engines::own_tcp::{End, Source, Transfer, WriteResult};
use crate::engines::stream_transfer::{granted, read_task};
use crate::engines::threads::joined;
use crate::plan::Family;
use linerate_ends::Ended;
use linerate_ends::Interrupt;
use linerate_ends::socket::{self, Options, ReadResult, Stream, counters};
use linerate_evidence::{Counters, EndCounters, RunOutcome};
use linerate_link::{MonotonicClock, Readiness};
use linerate_stack::Link;
use linerate_tcp::Config;
use linerate_units::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Executes a transfer from linerate's host on `link`, whose connection has `config`. Returns the
/// outcome, and the link.
pub(crate) fn carry<L: Link + Readiness + Send>(
    link: L,
    config: &Config,
    family: Family,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<(RunOutcome, L), BenchError> {
    let options =
        Options { receive_buffer: Some(request.receive_buffer.bytes), ..Options::default() };
    let [ours, kernel] = device::ends(family);
    let anywhere = SocketAddr::new(kernel, 0);
    let listening = socket::listen(anywhere, &options).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok((listener, SocketAddr::new(kernel, port)))
    });
    let (listener, address) =
        listening.map_err(|error| BenchError::io("listening for linerate", error))?;
    let transfer = Transfer::new(request, interrupt);
    let (given, received) = thread::scope(|scope| {
        let near = scope.spawn(|| {
            PinnedThread::Source.pin();
            let mut end = End::new(ours, request.seed, link)?;
            let given = Source::new(&transfer).run(&mut end, address, config)?;
            Ok((given, end.into_link()))
        });
        let far = scope.spawn(|| {
            PinnedThread::Sink.pin();
            receive(&listener, &transfer)
        });
        (joined(near), joined(far))
    });
    outcome(given, received)
}

/// The result of the receiving end, which uses the kernel's TCP.
struct Received {
    /// The result of reading the data from the kernel's socket.
    taken: ReadResult,
    /// Time at which reading ended, converted to the clock that the sending thread uses.
    finished: linerate_units::Instant,
    /// Was the data correct? `None` if it was not compared.
    verified: Option<bool>,
    counters: EndCounters,
    /// Size of the receive buffer in bytes, as the kernel reports it.
    receive_buffer: u64,
}

/// Accepts the connection, and reads the data of the transfer.
fn receive(listener: &TcpListener, transfer: &Transfer<'_>) -> Result<Received, BenchError> {
    let ending = transfer.ending();
    let stream = Stream::from(accept(listener, transfer)?);
    // Local variables are dropped in reverse order of their declaration, so `_ending` is dropped
    // before `stream`. If `stream` contains unread data, its drop resets the connection. The source
    // must know by then that the transfer has ended. Otherwise it would report an error.
    let _ending = ending;
    let read_task = read_task(transfer.request);
    let taken =
        read_task.run(&stream, b"", || transfer.interrupt.is_raised() || transfer.is_over());
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

/// Converts a time of `std` to the type of linerate's clock. Both types are times of the system's
/// monotonic clock, but `std` gives no access to the number. The conversion therefore uses the
/// distance from the current time.
fn on_our_clock(then: Instant) -> linerate_units::Instant {
    let (now, ours) = (Instant::now(), MonotonicClock.now());
    ours - linerate_units::Duration::from(now.saturating_duration_since(then))
}

/// Accepts the source's connection. Returns an error if the transfer ends before a connection
/// arrives.
fn accept(listener: &TcpListener, transfer: &Transfer<'_>) -> Result<TcpStream, BenchError> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if socket::is_pause(&error) => {}
            Err(error) => return Err(BenchError::io("accepting the connection", error)),
        }
        transfer.check_interrupt()?;
        if transfer.is_over() {
            // The transfer is over before a connection arrived, so the source has failed. The bench
            // reports the error of the source instead of this error.
            return Err(BenchError::ConnectionLost {
                bytes: 0,
                what: "there was no connection".to_owned(),
            });
        }
        wait(listener)?;
    }
}

/// Waits for a connection, but for at most 50 ms, so that the thread can check for an interrupt.
fn wait(listener: &TcpListener) -> Result<(), BenchError> {
    const POLL_INTERVAL: Duration = Duration::from_millis(50);
    let limit = Timespec::try_from(POLL_INTERVAL).ok();
    match poll(&mut [PollFd::new(listener, PollFlags::IN)], limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(BenchError::io("waiting for a connection", error.into())),
    }
}

/// Combines the results of linerate's end, which sends, and of the kernel's end. If both ends
/// failed, the function returns the interrupt, or else the error of linerate's end. The error of
/// the kernel's end is usually a consequence.
fn outcome<L>(
    given: Result<(WriteResult, L), BenchError>,
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

//! Transfers from the kernel's TCP to linerate's TCP, across a TAP or TUN device.

use super::device;
use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::PinnedThread;
use crate::engines::own_tcp::{End, ReadResult, Sink, Transfer};
use crate::engines::stream_transfer::{granted, write_task};
use crate::engines::threads::joined;
use crate::plan::Family;
use linerate_ends::Interrupt;
use linerate_ends::socket::{self, Options, Stream, counters};
use linerate_evidence::{Counters, EndCounters, RunOutcome};
use linerate_link::{MonotonicClock, Readiness};
use linerate_stack::Link;
use linerate_tcp::Config;
use linerate_units::Clock;
use std::io::Read;
use std::net::{Shutdown, SocketAddr};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Port of the discard service (RFC 863), on which linerate's host listens.
const PORT: u16 = 9;
/// Timeout of the handshake, which takes microseconds within one machine.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Executes a transfer to linerate's host on `link`, whose connection has `config`. `congestion` is
/// the kernel's congestion control. Returns the outcome, and the link.
pub(crate) fn carry<L: Link + Readiness + Send>(
    link: L,
    config: &Config,
    family: Family,
    congestion: Option<&str>,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<(RunOutcome, L), BenchError> {
    let transfer = Transfer::new(request, interrupt);
    let [ours, _] = device::ends(family);
    let address = SocketAddr::new(ours, PORT);
    let options = Options {
        send_buffer: Some(request.send_buffer.bytes),
        congestion: congestion.map(str::to_owned),
        ..Options::default()
    };
    // Through this channel, linerate's thread tells the kernel's thread that its host listens. Only
    // then does the kernel's thread connect.
    let (listens, listening) = mpsc::channel();
    let (taken, sent) = thread::scope(|scope| {
        let transfer = &transfer;
        let near = scope.spawn(move || {
            PinnedThread::Sink.pin();
            let mut end = End::new(ours, request.seed, link)?;
            let listener = Sink::listen(&mut end, address, config)?;
            // The send fails only if the kernel's thread has already failed. The error of that
            // thread is then reported.
            let _ = listens.send(());
            let taken = Sink::new(transfer).run(&mut end, listener, config)?;
            Ok((taken, end.into_link()))
        });
        let kernel = scope.spawn(move || {
            PinnedThread::Source.pin();
            let _ending = transfer.ending();
            if listening.recv().is_err() {
                return Err(lost("linerate does not listen"));
            }
            send(address, &options, transfer)
        });
        (joined(near), joined(kernel))
    });
    outcome(taken, sent)
}

/// The result of the sending end, which uses the kernel's TCP.
struct Sent {
    /// Time of the first write, by the clock of linerate's end.
    began: linerate_units::Instant,
    /// The error of the connection as text, if it failed.
    error: Option<String>,
    counters: EndCounters,
    /// Size of the send buffer in bytes, as the kernel reports it.
    send_buffer: u64,
}

/// Connects to linerate's host, writes all data, and waits until linerate's host closes the
/// connection.
fn send(
    address: SocketAddr,
    options: &Options,
    transfer: &Transfer<'_>,
) -> Result<Sent, BenchError> {
    let stream = socket::connect(address, options, TIMEOUT)
        .map_err(|error| BenchError::io("connecting to linerate", error))?;
    let stream = Stream::from(stream);
    transfer.begin(MonotonicClock.now());
    let stop = || {
        transfer.is_over()
            || transfer.interrupt.is_raised()
            || transfer.is_late(MonotonicClock.now())
    };
    let given = write_task(transfer.request).run(&stream, |_, _| stop());
    // When the maximum duration has passed, the sink resets the connection, and this shutdown
    // fails. That is a normal end of a run, so the error is ignored.
    let _ = stream.shutdown(Shutdown::Write);
    wait_for_the_end(&stream, transfer);
    Ok(Sent {
        began: transfer.began(),
        error: given.error.filter(|_| !transfer.is_over()).map(|error| error.to_string()),
        counters: counters(&stream, &given.peaks),
        send_buffer: granted(stream.send_buffer())?,
    })
}

/// Waits until linerate's host closes the connection, which the host does when it has read
/// everything. Before that, segments are still sent, so the connection's counters are not final.
fn wait_for_the_end(mut stream: &Stream, transfer: &Transfer<'_>) {
    const POLL_INTERVAL: Duration = Duration::from_millis(50);
    let _ = stream.set_read_timeout(Some(POLL_INTERVAL));
    while !transfer.is_over() && !transfer.interrupt.is_raised() {
        match stream.read(&mut [0; 64]) {
            Err(error) if socket::is_pause(&error) => {}
            // The read has returned the end of the stream or an error other than a timeout, so the
            // connection has ended.
            _ => return,
        }
    }
}

/// Combines the results of linerate's end and of the kernel's end, which sends. If both ends
/// failed, the function returns the interrupt, or else the error of the kernel's end. The error of
/// linerate's end is usually a consequence.
fn outcome<L>(
    taken: Result<(ReadResult, L), BenchError>,
    sent: Result<Sent, BenchError>,
) -> Result<(RunOutcome, L), BenchError> {
    if matches!(taken, Err(BenchError::Interrupted)) {
        return Err(BenchError::Interrupted);
    }
    let sent = sent?;
    if let Some(what) = sent.error {
        return Err(lost(&what));
    }
    let (taken, link) = taken?;
    let outcome = RunOutcome {
        bytes: taken.bytes,
        time: taken.finished.since(sent.began),
        complete: taken.complete,
        verified: taken.verified,
        send_granted: sent.send_buffer,
        receive_granted: taken.receive_buffer,
        counters: Counters { sender: sent.counters, receiver: taken.counters },
    };
    Ok((outcome, link))
}

fn lost(what: &str) -> BenchError {
    BenchError::ConnectionLost { bytes: 0, what: what.to_owned() }
}

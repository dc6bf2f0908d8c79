//! One run over sockets: its connections, the writing threads, the observation, and the receiver's
//! report.

use super::far_end::WRITE_SIZE;
use super::near_end::NearEnd;
use super::setup::{SMALL_SEGMENT, Setup};
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::{another_cpu, pin_to};
use linerate_ends::control::{Remote, Report};
use linerate_ends::iperf3::{Client, Test};
use linerate_ends::observe::{CallClock, observed};
use linerate_ends::socket::{Contents, Network, Stream, WriteTask};
use linerate_ends::{Interrupt, Peer};
use linerate_evidence::EndEvidence;
use linerate_evidence::stats::as_f64;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of the handshake of a data connection.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the sink's report to arrive, in addition to one round trip after the end of the run.
/// After this time, the sink is asked to end the run.
const GRACE: Duration = Duration::from_millis(700);
/// Maximum pause between the first segments of a paced run.
const MAX_PAUSE: Duration = Duration::from_millis(20);
/// Number of segments that the kernel sends without pacing at the start of a connection.
const UNPACED: u32 = 10;

/// The evidence of the sender and the receiver of a run, and the run's throughput.
#[derive(Debug)]
pub(super) struct Carried {
    /// Evidence of the sending end.
    pub(super) near: EndEvidence,
    /// Evidence of the receiving end; empty for an iperf3 server.
    pub(super) far: EndEvidence,
    /// Total throughput of all connections, in bytes per second.
    pub(super) bytes_per_second: f64,
}

/// Executes a run that sends to a linerate sink.
///
/// # Errors
/// The sink refuses the run, or a connection failed.
pub(super) fn carry_to_sink(
    near: &NearEnd,
    remote: &mut Remote,
    peer: &Peer,
    setup: &Setup,
    time: Duration,
    interrupt: &Interrupt,
) -> Result<Carried, BenchError> {
    let failed = |error| BenchError::of_control(error, peer);
    // The sink reports only on the connection that is opened last, below, with a greeting. The
    // additional connections send no greeting, so the sink just counts and discards their data.
    let mut others = Vec::new();
    for _ in 1..setup.connections {
        others.push(connect(near, remote, setup)?);
    }
    let opened = remote.open(&setup.spec).map_err(failed)?;
    let stream = connect(near, remote, setup)?;
    (&stream)
        .write_all(opened.greeting().as_bytes())
        .map_err(|error| BenchError::io("greeting on the data connection", error))?;
    remote.await_ready().map_err(failed)?;
    let (sent, shared) = write_all(&stream, &others, setup, time, interrupt);
    drop(others);
    let report = await_report(remote, peer, interrupt)?;
    drop(stream);
    let whole = rate_of_report(&report);
    let far = report.evidence.map(|far| *far).unwrap_or_default();
    let bytes_per_second = rate(&far).unwrap_or(whole) + shared;
    Ok(Carried { near: sent, far, bytes_per_second })
}

/// Executes a run that sends to an iperf3 server.
///
/// # Errors
/// The server refuses the run, or a connection failed.
pub(super) fn carry_to_iperf3(
    server: &Peer,
    setup: &Setup,
    time: Duration,
    interrupt: &Interrupt,
) -> Result<Carried, BenchError> {
    let failed = |error| BenchError::of_iperf3(&error, server);
    let streams = setup.connections;
    let test = Test { streams, is_reverse: false, write_size: WRITE_SIZE, time };
    let client = Client::start(&Network::Kernel, server, &setup.options, &test).map_err(failed)?;
    let far = EndEvidence::default();
    let Some((first, others)) = client.streams().split_first() else {
        return Ok(Carried { near: EndEvidence::default(), far, bytes_per_second: 0.0 });
    };
    for stream in client.streams() {
        discard_at_end(stream)?;
    }
    let (near, shared) = write_all(first, others, setup, time, interrupt);
    let bytes_per_second = acknowledged(&near).unwrap_or(0.0) + shared;
    // The server expects the byte count of each stream, but does not check it. At most the count of
    // the first stream is known here, so it is sent for all streams; zero if it is unknown.
    client.end(&vec![near.bytes.unwrap_or(0); streams], time).map_err(failed)?;
    Ok(Carried { near, far, bytes_per_second })
}

/// Opens a data connection to the sink.
fn connect(near: &NearEnd, remote: &Remote, setup: &Setup) -> Result<Stream, BenchError> {
    let stream = near
        .network
        .connect(remote.address(), &setup.options, TIMEOUT)
        .map_err(|error| BenchError::io("opening a data connection", error))?;
    discard_at_end(&stream)?;
    Ok(stream)
}

/// Configures the stream to discard queued data when it is dropped, so that the data does not
/// disturb the next run.
fn discard_at_end(stream: &Stream) -> Result<(), BenchError> {
    stream.discard_when_dropped().map_err(|error| BenchError::io("setting SO_LINGER", error))
}

/// Writes to all connections, each in its own thread. Returns the evidence of `stream`, which is
/// the first connection, and the total throughput of `others`, which are the additional
/// connections, in bytes per second.
fn write_all(
    stream: &Stream,
    others: &[Stream],
    setup: &Setup,
    time: Duration,
    interrupt: &Interrupt,
) -> (EndEvidence, f64) {
    let is_kernel = matches!(stream, Stream::Kernel(_));
    let task = WriteTask {
        bytes: u64::MAX,
        write_size: setup.write_size,
        contents: Contents::Any,
        pause: setup.write_pause,
        max_rate: setup.max_rate,
    };
    let write = |stream: &Stream| {
        let clock = CallClock::new();
        let stop = |began: Instant, now: Instant| interrupt.is_raised() || now - began >= time;
        let transfer = || {
            if let (true, Some(rate)) = (is_kernel, setup.options.max_pacing_rate) {
                begin_slowly(stream, rate);
            }
            task.run_timed(stream, &clock, stop)
        };
        observed(stream, &clock, time / 2, transfer).1
    };
    let other_cpu = if setup.is_moved { another_cpu() } else { None };
    thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|other| scope.spawn(move || write(other))).collect();
        let first = scope.spawn(|| {
            if let Some(cpu) = other_cpu {
                pin_to(cpu);
            }
            write(stream)
        });
        let first = first.join().unwrap_or_default();
        let shared = others.into_iter().filter_map(|other| acknowledged(&other.join().ok()?)).sum();
        (first, shared)
    })
}

/// Writes the first [`UNPACED`] segments one by one at `rate` bytes per second. The kernel would
/// send them as one burst without pacing. A short queue on the path would drop some segments of the
/// burst, and the loss would end slow start at a small window.
fn begin_slowly(stream: &Stream, rate: u64) {
    let bytes = [0; SMALL_SEGMENT as usize];
    let pause = Duration::from_secs_f64(f64::from(SMALL_SEGMENT) / as_f64(rate.max(1)));
    for _ in 0..UNPACED {
        if (&mut &*stream).write_all(&bytes).is_err() {
            // The connection has failed. That is not reported here: the transfer that follows on
            // this connection fails as well, and reports the error.
            return;
        }
        thread::sleep(pause.min(MAX_PAUSE));
    }
}

/// Waits for the sink's report. Usually the sink ends the run by its own clock, which starts with
/// the first byte. If no report arrives in time, this function asks the sink to end the run.
fn await_report(
    remote: &mut Remote,
    peer: &Peer,
    interrupt: &Interrupt,
) -> Result<Report, BenchError> {
    let failed = |error| BenchError::of_control(error, peer);
    let latest = Instant::now() + remote.shortest_round_trip() + GRACE;
    match remote.await_done(latest).map_err(failed)? {
        Some(report) => Ok(report),
        None if interrupt.is_raised() => Err(BenchError::Interrupted),
        None => remote.stop().map_err(failed),
    }
}

/// Returns the mean throughput of the whole run in bytes per second; zero if the run transferred no
/// data. The caller uses it if the run ended so early that the sink observed no part of it.
#[allow(clippy::cast_precision_loss, reason = "a rate, shown with few digits")]
fn rate_of_report(report: &Report) -> f64 {
    let seconds = Duration::from_nanos(report.span_nanos).as_secs_f64();
    if seconds > 0.0 { report.bytes as f64 / seconds } else { 0.0 }
}

/// Returns the number of acknowledged bytes per second, as the sender observed it; `None` without
/// evidence.
#[allow(clippy::cast_precision_loss, reason = "a rate, shown with few digits")]
fn acknowledged(end: &EndEvidence) -> Option<f64> {
    let (bytes, seconds) = (end.connection.acknowledged_bytes?, end.seconds?);
    (seconds > 0.0).then(|| bytes as f64 / seconds)
}

/// Returns the number of bytes per second that the sink read in the observed part of the run;
/// `None` without evidence.
#[allow(clippy::cast_precision_loss, reason = "a rate, shown with few digits")]
fn rate(end: &EndEvidence) -> Option<f64> {
    let (bytes, seconds) = (end.bytes?, end.seconds?);
    (seconds > 0.0).then(|| bytes as f64 / seconds)
}

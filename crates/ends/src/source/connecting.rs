//! A source that connects to a sink, and sends data to it.

use super::error::SourceError;
use super::supply::{Supply, options};
use crate::control::{ControlError, Remote, Report, RunSpec};
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::peer::Peer;
use crate::socket::{Contents, Network, Stream, WriteTask, is_pause};
use crate::workload::Pattern;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Timeout of the handshake. After the last write, it is also the maximum time without a new
/// acknowledgement.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a single read while the source waits for the end of the stream.
const SLICE: Duration = Duration::from_millis(100);
/// Maximum time from the last write to the report of a sink that compares the data. In this time,
/// the sink must read all data that is still in the buffers of both ends.
const REPORT_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of bytes that the sink reads at once.
const READ_SIZE: u64 = 128 << 10;
/// Maximum duration that a sink accepts in the request for a run.
const MAX_RUN_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The result of a transfer to a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Number of bytes that the socket accepted; in a verified transfer, the number of bytes that
    /// the sink reports as read.
    pub bytes: u64,
    /// Time from the first write until the sink confirmed the last byte, by a report or by closing
    /// the connection. If the sink confirmed nothing, it is the time until the last write. A report
    /// takes about half a round-trip time to arrive, which is subtracted.
    pub time: Duration,
    /// Did the sink confirm that it has read all `bytes`?
    pub confirmed: bool,
    /// Did the data match the pattern? `None` if the data was not compared.
    pub verified: Option<bool>,
}

/// Sends the characters of RFC 864 to `peer` through `network`, until a limit of `supply` is
/// reached or `interrupt` is raised.
///
/// # Errors
/// The peer cannot be reached, the send buffer exceeds the system's limit, or the connection
/// failed.
pub fn send(
    network: &Network,
    peer: &Peer,
    supply: &Supply,
    interrupt: &Interrupt,
) -> Result<Delivered, SourceError> {
    let stream = dial(network, peer, supply)?;
    let write_task = write_task(supply, Contents::Characters);
    let given = write_task.run(&stream, until(supply, interrupt));
    if let Some(source) = given.error {
        return Err(SourceError::Broken { bytes: given.bytes, source });
    }
    let written = given.began.elapsed();
    let confirmed = await_end_of_stream(&stream);
    let time = if confirmed { given.began.elapsed() } else { written };
    Ok(Delivered { bytes: given.bytes, time, confirmed, verified: None })
}

/// Sends the pattern of `seed` to the linerate sink at `peer`, which compares the received data
/// with the pattern. Stops at a limit of `supply` or when `interrupt` is raised.
///
/// # Errors
/// The errors of [`send`], and an error if the peer is not a linerate sink or refuses the transfer.
pub fn send_verified(
    network: &Network,
    peer: &Peer,
    supply: &Supply,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Delivered, SourceError> {
    let mut remote =
        Remote::connect(network, peer, u16::MAX).map_err(|error| unable(peer, error))?;
    let max_time = supply.max_time().min(MAX_RUN_TIME);
    let spec = RunSpec {
        receive_buffer: None,
        bytes: supply.limit(),
        read_size: READ_SIZE,
        verify: Some(seed),
        max_milliseconds: u64::try_from(max_time.as_millis()).unwrap_or(u64::MAX).max(1),
        max_segment: None,
        observe_after: None,
        discard: false,
    };
    let opened = remote.open(&spec).map_err(|error| unable(peer, error))?;
    let broken = |source| SourceError::Broken { bytes: 0, source };
    let stream = dial(network, peer, supply)?;
    (&stream).write_all(opened.greeting().as_bytes()).map_err(broken)?;
    remote.await_ready().map_err(|error| unable(peer, error))?;
    let write_task = write_task(supply, Contents::Pattern(Pattern::new(seed)));
    let given = write_task.run(&stream, until(supply, interrupt));
    // If a write failed, the sink still reads the data that was written before the failure, and
    // reports on it. The report is therefore awaited even after an error.
    let _ = stream.shutdown(Shutdown::Write);
    let report = await_report(&mut remote, peer)?;
    let report = report.checked(given.bytes, spec.bytes).map_err(|error| unable(peer, error))?;
    let whole = report.ended == Ended::Complete || report.bytes == given.bytes;
    match given.error {
        Some(source) if !whole && report.ended != Ended::TimeUp => {
            Err(SourceError::Broken { bytes: given.bytes, source })
        }
        _ => Ok(Delivered {
            bytes: report.bytes,
            time: given.began.elapsed().saturating_sub(remote.shortest_round_trip() / 2),
            confirmed: true,
            verified: Some(report.wrong_at.is_none()),
        }),
    }
}

fn write_task(supply: &Supply, contents: Contents) -> WriteTask {
    WriteTask {
        bytes: supply.limit(),
        write_size: supply.write_length(),
        contents,
        pause: Duration::ZERO,
        max_rate: None,
    }
}

/// Returns the condition under which writing ends: the maximum duration of `supply` has passed, or
/// `interrupt` is raised.
fn until(supply: &Supply, interrupt: &Interrupt) -> impl Fn(Instant, Instant) -> bool {
    let max_time = supply.max_time();
    move |began, now| interrupt.is_raised() || now.saturating_duration_since(began) >= max_time
}

fn dial(network: &Network, peer: &Peer, supply: &Supply) -> Result<Stream, SourceError> {
    let options = options(network, supply)?;
    network
        .dial(peer, |_| options.clone(), TIMEOUT)
        .map_err(|source| SourceError::Unreachable { peer: peer.to_string(), source })
}

/// Converts an error of the control connection to an error of the source.
fn unable(peer: &Peer, error: ControlError) -> SourceError {
    let peer = peer.to_string();
    match error {
        ControlError::Unreachable(source) => SourceError::Unreachable { peer, source },
        ControlError::NotLinerate { .. } => {
            SourceError::NoVerifier { peer, reason: error.to_string() }
        }
        error => SourceError::SinkFailed { peer, reason: error.to_string() },
    }
}

/// Closes the sending direction, and waits until the sink closes the other direction, which
/// confirms that the sink has read everything. Returns false if the connection fails, or if no new
/// acknowledgement arrives for [`TIMEOUT`].
fn await_end_of_stream(mut stream: &Stream) -> bool {
    if stream.shutdown(Shutdown::Write).and_then(|()| stream.set_read_timeout(Some(SLICE))).is_err()
    {
        return false;
    }
    let mut queued = u64::MAX;
    let mut progress = Instant::now();
    while progress.elapsed() < TIMEOUT {
        match stream.read(&mut [0; 4_096]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if is_pause(&error) => {}
            Err(_) => return false,
        }
        let left = stream.unacknowledged_bytes().unwrap_or(0);
        if left < queued {
            (queued, progress) = (left, Instant::now());
        }
    }
    false
}

/// Waits for the sink's report on the run, and stops the run after [`REPORT_TIMEOUT`].
fn await_report(remote: &mut Remote, peer: &Peer) -> Result<Report, SourceError> {
    let latest = Instant::now() + REPORT_TIMEOUT;
    let report = match remote.await_done(latest) {
        Ok(Some(report)) => Ok(report),
        Ok(None) => remote.stop(),
        Err(error) => Err(error),
    };
    report.map_err(|error| unable(peer, error))
}

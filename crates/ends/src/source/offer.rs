//! A source that connects to a sink.

use super::error::SourceError;
use super::supply::{Supply, options};
use crate::control::{ControlError, Remote, Report, RunSpec};
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::peer::Peer;
use crate::socket::{Contents, Network, Outflow, Stream, is_pause};
use crate::workload::Pattern;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// How long a handshake may take, and a sink to close after the last byte.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long one read may wait while the end is watched for.
const SLICE: Duration = Duration::from_millis(100);
/// How long a sink that compares may take for what is still under way when the writing has ended.
const LAST_WORD: Duration = Duration::from_secs(60);
/// What a sink reads at a time.
const READ_SIZE: u64 = 128 << 10;
/// The longest that a sink lets a run last.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What a sink has been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Bytes.
    pub bytes: u64,
    /// From the first write to the word, or the sign, that the last byte was read; to the last
    /// write if there was none.
    pub time: Duration,
    /// Has the sink read them all, as far as one can know: it said so, or it closed after the end?
    pub confirmed: bool,
    /// Was every byte right? `None` if nobody looked.
    pub verified: Option<bool>,
}

/// Gives `supply` of RFC 864's characters by `network` to whatever listens at `peer`.
///
/// # Errors
/// The peer cannot be reached, the buffer is not to be had, or the connection broke.
pub fn give(
    network: &Network,
    peer: &Peer,
    supply: &Supply,
    interrupt: &Interrupt,
) -> Result<Delivered, SourceError> {
    let stream = dial(network, peer, supply)?;
    let outflow = outflow(supply, Contents::Characters);
    let given = outflow.give(&stream, until(supply, interrupt));
    if let Some(source) = given.error {
        return Err(SourceError::Broken { bytes: given.bytes, source });
    }
    let written = given.began.elapsed();
    let confirmed = saw_the_end(&stream);
    let time = if confirmed { given.began.elapsed() } else { written };
    Ok(Delivered { bytes: given.bytes, time, confirmed, verified: None })
}

/// Gives `supply` of the pattern of `seed` to the linerate sink at `peer`, which compares.
///
/// # Errors
/// As [`give`]; and if the peer is no linerate sink.
pub fn give_verified(
    network: &Network,
    peer: &Peer,
    supply: &Supply,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Delivered, SourceError> {
    let mut remote =
        Remote::connect(network, peer, u16::MAX).map_err(|error| unable(peer, error))?;
    let max_time = supply.max_time().min(A_DAY);
    let spec = RunSpec {
        receive_buffer: None,
        bytes: supply.limit(),
        read_size: READ_SIZE,
        verify: Some(seed),
        max_milliseconds: u64::try_from(max_time.as_millis()).unwrap_or(u64::MAX).max(1),
        max_segment: None,
    };
    let opened = remote.open(&spec).map_err(|error| unable(peer, error))?;
    let broken = |source| SourceError::Broken { bytes: 0, source };
    let stream = dial(network, peer, supply)?;
    (&stream).write_all(opened.greeting().as_bytes()).map_err(broken)?;
    remote.await_ready().map_err(|error| unable(peer, error))?;
    let outflow = outflow(supply, Contents::Pattern(Pattern::new(seed)));
    let given = outflow.give(&stream, until(supply, interrupt));
    // Whatever ended the writing, the sink reads to the end of what has been written.
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

fn outflow(supply: &Supply, contents: Contents) -> Outflow {
    Outflow { bytes: supply.limit(), write_size: supply.write_length(), contents }
}

/// Ends the writing when the time is up or somebody asks to stop.
fn until(supply: &Supply, interrupt: &Interrupt) -> impl Fn(Instant, Instant) -> bool {
    let max_time = supply.max_time();
    move |began, now| interrupt.is_raised() || now.saturating_duration_since(began) >= max_time
}

fn dial(network: &Network, peer: &Peer, supply: &Supply) -> Result<Stream, SourceError> {
    let options = options(network, supply)?;
    network
        .dial(peer, |_| options.clone(), PATIENCE)
        .map_err(|source| SourceError::Unreachable { peer: peer.to_string(), source })
}

fn unable(peer: &Peer, error: ControlError) -> SourceError {
    let peer = peer.to_string();
    match error {
        ControlError::Unreachable(source) => SourceError::Unreachable { peer, source },
        error => SourceError::NoVerifier { peer, reason: error.to_string() },
    }
}

/// Closes the writing side and waits for the sink to close its own, which it does when it has read
/// everything. A sink that takes no more bytes, or keeps the connection open, is not waited for
/// long.
fn saw_the_end(mut stream: &Stream) -> bool {
    if stream.shutdown(Shutdown::Write).and_then(|()| stream.set_read_timeout(Some(SLICE))).is_err()
    {
        return false;
    }
    let mut queued = u64::MAX;
    let mut progress = Instant::now();
    while progress.elapsed() < PATIENCE {
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

/// The sink's word on everything that was written.
fn await_report(remote: &mut Remote, peer: &Peer) -> Result<Report, SourceError> {
    let latest = Instant::now() + LAST_WORD;
    let report = match remote.await_done(latest) {
        Ok(Some(report)) => Ok(report),
        Ok(None) => remote.stop(),
        Err(error) => Err(error),
    };
    report.map_err(|error| unable(peer, error))
}

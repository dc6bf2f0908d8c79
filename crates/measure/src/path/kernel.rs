//! The kernel's TCP to a `linerate sink`, for a diagnosis.

use super::{Application, DiagnosedPath};
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::{another_cpu, pin_to};
use crate::engines::network_interface::{Interface, framing, line_rate};
use linerate_ends::control::{Remote, Report, RunSpec};
use linerate_ends::observe::{CallClock, observed};
use linerate_ends::socket::{Congestion, Contents, Network, Options, Stream, WriteTask};
use linerate_ends::{Interrupt, Peer};
use linerate_evidence::{Change, EndEvidence, RunEvidence};
use rustix::net::sockopt;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of a handshake, and of the sink's report at the end of a run.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time after the end of a run in which the sink reports by itself.
const GRACE: Duration = Duration::from_millis(700);
/// Bytes of a read at the sink.
const READ_SIZE: u64 = 128 << 10;
/// Ratio of larger writes to the plain ones.
const LARGER: usize = 8;
/// Maximum size of a write.
const MAX_WRITE: usize = 4 << 20;
/// Ratio of a buffer as it reads back to the requested size.
const DOUBLING: u64 = 2;
/// Share of the plain rate at which a paced run sends.
const PACED: f64 = 0.9;
/// Smallest segment that the kernel accepts.
const MIN_SEGMENT: u64 = 88;

/// The kernel's TCP to a `linerate sink`.
#[derive(Debug)]
pub struct KernelPath {
    remote: Remote,
    peer: Peer,
    application: Application,
    plain: Option<Plain>,
}

/// Properties of the plain transfer to which changes refer.
#[derive(Clone, Copy, Debug)]
struct Plain {
    bytes_per_second: f64,
    send_buffer: Option<u64>,
    receive_buffer: Option<u64>,
    segment: Option<u64>,
}

/// The parameters of one run.
#[derive(Clone, Debug)]
struct Setup {
    options: Options,
    spec: RunSpec,
    write_size: usize,
    write_pause: Duration,
    cpu: Option<usize>,
    connections: usize,
}

impl KernelPath {
    /// Connects to the sink at `peer`.
    ///
    /// # Errors
    /// The peer cannot be reached or is not a linerate sink, or the congestion control is unknown.
    pub fn to(peer: &Peer, application: &Application) -> Result<Self, BenchError> {
        let congestion = Congestion::of_this_machine().choose(application.congestion.as_deref())?;
        let remote = Remote::connect(&Network::Kernel, peer, u16::MAX)
            .map_err(|error| BenchError::of_control(error, peer))?;
        let application = Application { congestion, ..application.clone() };
        Ok(Self { remote, peer: peer.clone(), application, plain: None })
    }

    /// Returns the parameters of a run with `change`; `None` if it is not possible.
    fn setup(&self, change: Option<Change>, time: Duration) -> Option<Setup> {
        let Application { send_buffer, receive_buffer, write_size, write_pause, .. } =
            self.application;
        let after = u64::try_from(time.as_millis() / 2).unwrap_or(u64::MAX);
        let mut setup = Setup {
            options: Options {
                send_buffer,
                congestion: self.application.congestion.clone(),
                ..Options::default()
            },
            spec: RunSpec {
                receive_buffer,
                bytes: u64::MAX,
                read_size: READ_SIZE,
                verify: None,
                max_milliseconds: u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1),
                max_segment: None,
                observe_after: Some(after),
                discard: false,
            },
            write_size,
            write_pause: write_pause.into(),
            cpu: None,
            connections: 1,
        };
        let Some(change) = change else { return Some(setup) };
        let plain = self.plain?;
        match change {
            // A buffer reads back with twice the requested size.
            Change::SendBufferDoubled => setup.options.send_buffer = Some(plain.send_buffer?),
            Change::SendBufferHalved => {
                setup.options.send_buffer = Some(plain.send_buffer? / DOUBLING / 2);
            }
            Change::ReceiveBufferDoubled => {
                setup.spec.receive_buffer = Some(plain.receive_buffer?);
            }
            Change::ReceiveBufferHalved => {
                setup.spec.receive_buffer = Some(plain.receive_buffer? / DOUBLING / 2);
            }
            Change::LargerWrites => {
                setup.write_size = Some(write_size.saturating_mul(LARGER))
                    .filter(|&larger| larger <= MAX_WRITE)?;
            }
            Change::WriterWithoutPauses => {
                (write_pause != linerate_units::Duration::ZERO).then_some(())?;
                setup.write_pause = Duration::ZERO;
            }
            Change::Discard => setup.spec.discard = true,
            Change::Paced => setup.options.max_pacing_rate = Some(paced(plain.bytes_per_second)?),
            Change::SmallerPackets => {
                let half = plain.segment.map(|segment| segment / 2)?;
                let half =
                    u16::try_from(half).ok().filter(|&half| u64::from(half) > MIN_SEGMENT)?;
                setup.options.max_segment = Some(half);
            }
            Change::OtherCpu => setup.cpu = Some(another_cpu()?),
            Change::TwoConnections => setup.connections = 2,
            Change::SenderCpuFaster | Change::ReceiverCpuFaster => return None,
        }
        Some(setup)
    }

    /// Executes a run. Returns the evidence of both ends, and the throughput.
    fn carry(
        &mut self,
        setup: &Setup,
        time: Duration,
        interrupt: &Interrupt,
    ) -> Result<RunEvidence, BenchError> {
        let peer = &self.peer;
        let failed = |error| BenchError::of_control(error, peer);
        // Further connections are plain ones: the sink discards their data.
        let mut others = Vec::new();
        for _ in 1..setup.connections {
            others.push(connect(&self.remote, &setup.options)?);
        }
        let opened = self.remote.open(&setup.spec).map_err(failed)?;
        let stream = connect(&self.remote, &setup.options)?;
        (&stream)
            .write_all(opened.greeting().as_bytes())
            .map_err(|error| BenchError::io("greeting on the data connection", error))?;
        self.remote.await_ready().map_err(failed)?;
        let (near, shared) = write_all(&stream, &others, setup, time, interrupt);
        drop(others);
        let report = await_report(&mut self.remote, peer, interrupt)?;
        drop(stream);
        Ok(self.evidence(near, shared, report))
    }

    fn evidence(&self, near: EndEvidence, shared: f64, report: Report) -> RunEvidence {
        let whole = rate_of_report(&report);
        let far = report.evidence.map(|far| *far).unwrap_or_default();
        let bytes_per_second = rate(&far).unwrap_or(whole) + shared;
        let (address, local) = (self.remote.address(), self.remote.local_address());
        let is_here = local.ip() == address.ip();
        let interface = Interface::towards(address.ip()).filter(|_| !is_here);
        let framing = framing(interface.as_ref(), 12);
        let payload = near.connection.segment_bytes.and_then(|bytes| u32::try_from(bytes).ok());
        let wire = payload.map(|payload| bytes_per_second * framing.bits_per_byte(payload.max(1)));
        RunEvidence {
            change: None,
            bytes_per_second,
            sender: near,
            receiver: far,
            link_bits_per_second: interface.as_ref().and_then(line_rate).map(|rate| {
                #[allow(clippy::cast_precision_loss, reason = "a rate, shown with few digits")]
                let bits = rate.bits_per_second as f64;
                bits
            }),
            wire_bits_per_second: wire,
        }
    }
}

impl DiagnosedPath for KernelPath {
    fn description(&self) -> String {
        let there = self.remote.description();
        format!("the kernel's TCP to {} ({})", self.peer, there.program)
    }

    fn run(
        &mut self,
        change: Option<Change>,
        time: linerate_units::Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<RunEvidence>, BenchError> {
        let time = Duration::from(time);
        let Some(setup) = self.setup(change, time) else { return Ok(None) };
        let evidence = self.carry(&setup, time, interrupt)?;
        if interrupt.is_raised() {
            return Err(BenchError::Interrupted);
        }
        if change.is_none() {
            self.plain = Some(Plain {
                bytes_per_second: evidence.bytes_per_second,
                send_buffer: evidence.sender.connection.send_buffer,
                receive_buffer: evidence.receiver.connection.receive_buffer,
                segment: evidence.sender.connection.segment_bytes,
            });
        }
        let is_changed = change.is_none_or(|change| self.has_changed(change, &evidence));
        Ok(is_changed.then_some(RunEvidence { change, ..evidence }))
    }
}

impl KernelPath {
    /// Returns whether the kernel has granted a changed buffer: limits clip sizes silently.
    fn has_changed(&self, change: Change, evidence: &RunEvidence) -> bool {
        let Some(plain) = self.plain else { return false };
        let sent = evidence.sender.connection.send_buffer;
        let received = evidence.receiver.connection.receive_buffer;
        // In eighths, so that the comparison is exact.
        let ratio = |now: Option<u64>, then: Option<u64>| now?.saturating_mul(8).checked_div(then?);
        match change {
            Change::SendBufferDoubled => ratio(sent, plain.send_buffer) >= Some(12),
            Change::SendBufferHalved => ratio(sent, plain.send_buffer).is_some_and(|r| r <= 5),
            Change::ReceiveBufferDoubled => ratio(received, plain.receive_buffer) >= Some(12),
            Change::ReceiveBufferHalved => {
                ratio(received, plain.receive_buffer).is_some_and(|r| r <= 5)
            }
            _ => true,
        }
    }
}

/// Returns the pacing rate for a plain rate; `None` if it is too small to pace.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive rate below 2^53 bytes per second"
)]
fn paced(bytes_per_second: f64) -> Option<u64> {
    (bytes_per_second >= 1_000.0).then_some((bytes_per_second * PACED) as u64)
}

fn connect(remote: &Remote, options: &Options) -> Result<Stream, BenchError> {
    let stream = Network::Kernel
        .connect(remote.address(), options, TIMEOUT)
        .map_err(|error| BenchError::io("opening a data connection", error))?;
    // Data that is queued at the end of a run must not disturb the next one.
    if let Stream::Kernel(stream) = &stream {
        sockopt::set_socket_linger(stream, Some(Duration::ZERO))
            .map_err(|error| BenchError::io("setting SO_LINGER", error.into()))?;
    }
    Ok(stream)
}

/// Writes to all connections. Returns the evidence of the first one, and the throughput of the
/// others together.
fn write_all(
    stream: &Stream,
    others: &[Stream],
    setup: &Setup,
    time: Duration,
    interrupt: &Interrupt,
) -> (EndEvidence, f64) {
    let task = WriteTask {
        bytes: u64::MAX,
        write_size: setup.write_size,
        contents: Contents::Any,
        pause: setup.write_pause,
    };
    let write = |stream: &Stream| {
        let clock = CallClock::new();
        let stop = |began: Instant, now: Instant| interrupt.is_raised() || now - began >= time;
        let (_, evidence) =
            observed(stream, &clock, time / 2, || task.run_timed(stream, &clock, stop));
        evidence
    };
    thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|other| scope.spawn(move || write(other))).collect();
        let first = scope.spawn(|| {
            if let Some(cpu) = setup.cpu {
                pin_to(cpu);
            }
            write(stream)
        });
        let first = first.join().unwrap_or_default();
        let shared = others.into_iter().filter_map(|other| acknowledged(&other.join().ok()?)).sum();
        (first, shared)
    })
}

/// Waits for the sink's report. The sink ends the run by its own clock, unless no data arrives.
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

/// Returns the throughput of a run that was over before its observed part, or carried nothing.
#[allow(clippy::cast_precision_loss, reason = "a rate, shown with few digits")]
fn rate_of_report(report: &Report) -> f64 {
    let seconds = Duration::from_nanos(report.span_nanos).as_secs_f64();
    if seconds > 0.0 { report.bytes as f64 / seconds } else { 0.0 }
}

/// Returns the rate of acknowledged bytes.
#[allow(clippy::cast_precision_loss, reason = "a rate, shown with few digits")]
fn acknowledged(end: &EndEvidence) -> Option<f64> {
    let (bytes, seconds) = (end.connection.acknowledged_bytes?, end.seconds?);
    (seconds > 0.0).then(|| bytes as f64 / seconds)
}

/// Returns the rate at which the sink has read in the observed part.
#[allow(clippy::cast_precision_loss, reason = "a rate, shown with few digits")]
fn rate(end: &EndEvidence) -> Option<f64> {
    let (bytes, seconds) = (end.bytes?, end.seconds?);
    (seconds > 0.0).then(|| bytes as f64 / seconds)
}

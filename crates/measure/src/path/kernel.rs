//! The kernel's TCP to a `linerate sink` or an iperf3 server, for a diagnosis.

use super::{Application, DiagnosedPath};
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::{another_cpu, pin_to};
use crate::engines::network_interface::{Interface, framing, line_rate};
use linerate_ends::control::{ControlError, Remote, Report, RunSpec};
use linerate_ends::iperf3::{self, Client, Iperf3Error, Test};
use linerate_ends::observe::{CallClock, observed};
use linerate_ends::socket::{Congestion, Contents, Network, Options, Stream, WriteTask};
use linerate_ends::{Interrupt, Peer};
use linerate_evidence::stats::as_f64;
use linerate_evidence::{Change, EndEvidence, RunEvidence};
use rustix::net::sockopt;
use std::io::Write;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of a handshake, and of the sink's report at the end of a run.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time after the end of a run in which the sink reports by itself.
const GRACE: Duration = Duration::from_millis(700);
/// Bytes of a read at the sink.
const READ_SIZE: u64 = 128 << 10;
/// Bytes of a write that an iperf3 server is told.
const WRITE_SIZE: usize = 128 << 10;
/// Ratio of larger writes to the plain ones.
const LARGER: usize = 8;
/// Bytes that the kernel passes to a device at once. Larger writes cost as much for each byte.
const GSO_BURST: usize = 64 << 10;
/// Maximum size of a write.
const MAX_WRITE: usize = 4 << 20;
/// Bytes per second that a transfer with small segments needs at most.
const SLOW: f64 = 1e6;
/// Maximum pause between the first segments of a paced run.
const MAX_PAUSE: Duration = Duration::from_millis(20);
/// Bytes per second below which a rate is low: 100 Mb/s.
const LOW: f64 = 12.5e6;
/// Segments that the kernel sends before it begins to pace.
const UNPACED: u32 = 10;
/// Ratio of a buffer as it reads back to the requested size.
const DOUBLING: u64 = 2;
/// Share of the plain transfer's peak delivery rate at which a paced run sends.
const PACED: f64 = 0.9;
/// Share of the plain rate at which a slowly paced run sends: no queue on the path fills.
const PACED_AT_HALF: f64 = 0.5;
/// Small segment, whose packets every host must accept (RFC 1122 §3.3.2).
const SMALL_SEGMENT: u16 = 512;

/// The kernel's TCP to a `linerate sink` or an iperf3 server.
#[derive(Debug)]
pub struct KernelPath {
    far: FarEnd,
    peer: Peer,
    application: Application,
    plain: Option<Plain>,
}

/// The program at the other end.
#[derive(Debug)]
enum FarEnd {
    /// A `linerate sink`, which observes its end.
    Sink(Box<Remote>),
    /// An iperf3 server, which only counts bytes.
    Iperf3 {
        /// The server, with the port at which it was found.
        server: Peer,
        address: SocketAddr,
        local: SocketAddr,
    },
}

/// Properties of the plain transfer to which changes refer.
#[derive(Clone, Copy, Debug)]
struct Plain {
    bytes_per_second: f64,
    /// The peak delivery rate of the first plain transfer, which is the longest.
    peak: Option<u64>,
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
    /// Connects to the sink at `peer`, or to an iperf3 server there. If nothing listens at the
    /// default port of a sink, an iperf3 server is expected at its own default port.
    ///
    /// # Errors
    /// The peer cannot be reached or is neither of both, or the congestion control is unknown.
    pub fn to(peer: &Peer, application: &Application) -> Result<Self, BenchError> {
        let congestion = Congestion::of_this_machine().choose(application.congestion.as_deref())?;
        let far = far_end(peer)?;
        let application = Application { congestion, ..application.clone() };
        Ok(Self { far, peer: peer.clone(), application, plain: None })
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
                (write_size < GSO_BURST).then_some(())?;
                setup.write_size = Some(write_size.saturating_mul(LARGER))
                    .filter(|&larger| larger <= MAX_WRITE)?;
            }
            Change::WriterWithoutPauses => {
                (write_pause != linerate_units::Duration::ZERO).then_some(())?;
                setup.write_pause = Duration::ZERO;
                setup.options.max_pacing_rate = tenfold(plain.bytes_per_second);
            }
            Change::Discard => {
                matches!(self.far, FarEnd::Sink(_)).then_some(())?;
                setup.spec.discard = true;
                setup.options.max_pacing_rate = tenfold(plain.bytes_per_second);
            }
            Change::Paced => {
                #[allow(clippy::cast_precision_loss, reason = "a rate below 2^53")]
                let peak = plain.peak.map_or(plain.bytes_per_second, |peak| peak as f64);
                setup.options.max_pacing_rate = Some(paced(peak * PACED)?);
            }
            Change::PacedAtHalf => {
                let rate = plain.bytes_per_second * PACED_AT_HALF;
                setup.options.max_pacing_rate = Some(paced(rate)?);
            }
            Change::SmallerPackets => {
                (plain.segment? > u64::from(SMALL_SEGMENT)).then_some(())?;
                setup.options.max_segment = Some(SMALL_SEGMENT);
                // A path that carries them may be fast: a tenfold rate shows it as well.
                setup.options.max_pacing_rate = tenfold(plain.bytes_per_second);
            }
            Change::OtherCpu => setup.cpu = Some(another_cpu()?),
            Change::TwoConnections => setup.connections = 2,
            Change::SenderCpuFaster | Change::ReceiverCpuFaster => return None,
        }
        // The first segments are small, and are not to be merged.
        setup.options.no_delay |= setup.options.max_pacing_rate.is_some();
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
        let remote = match &mut self.far {
            FarEnd::Sink(remote) => remote,
            FarEnd::Iperf3 { server, .. } => {
                let (near, bytes_per_second) = carry_to_iperf3(server, setup, time, interrupt)?;
                return Ok(self.evidence(near, EndEvidence::default(), bytes_per_second));
            }
        };
        // Further connections are plain ones: the sink discards their data.
        let mut others = Vec::new();
        for _ in 1..setup.connections {
            others.push(connect(remote, &setup.options)?);
        }
        let opened = remote.open(&setup.spec).map_err(failed)?;
        let stream = connect(remote, &setup.options)?;
        (&stream)
            .write_all(opened.greeting().as_bytes())
            .map_err(|error| BenchError::io("greeting on the data connection", error))?;
        remote.await_ready().map_err(failed)?;
        let (near, shared) = write_all(&stream, &others, setup, time, interrupt);
        drop(others);
        let report = await_report(remote, peer, interrupt)?;
        drop(stream);
        let whole = rate_of_report(&report);
        let far = report.evidence.map(|far| *far).unwrap_or_default();
        let bytes_per_second = rate(&far).unwrap_or(whole) + shared;
        Ok(self.evidence(near, far, bytes_per_second))
    }

    fn evidence(&self, near: EndEvidence, far: EndEvidence, bytes_per_second: f64) -> RunEvidence {
        let (address, local) = match &self.far {
            FarEnd::Sink(remote) => (remote.address(), remote.local_address()),
            FarEnd::Iperf3 { address, local, .. } => (*address, *local),
        };
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
        match &self.far {
            FarEnd::Sink(remote) => {
                format!("the kernel's TCP to {} ({})", self.peer, remote.description().program)
            }
            FarEnd::Iperf3 { server, .. } => format!(
                "the kernel's TCP to {server} (iperf3: evidence of the far end is missing, so \
                 limits there cannot be named; `linerate sink` provides it)"
            ),
        }
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
                peak: self
                    .plain
                    .map_or(evidence.sender.connection.peak_delivery_rate, |plain| plain.peak),
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

/// Returns ten times a low rate. A change that removes a slow program needs no more to show it, and
/// at full speed the transfer itself would occupy the CPUs. A high rate is not limited.
fn tenfold(bytes_per_second: f64) -> Option<u64> {
    (bytes_per_second < LOW).then(|| paced((bytes_per_second * 10.0).max(SLOW)))?
}

/// Returns the pacing rate; `None` if it is too small to pace.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive rate below 2^53 bytes per second"
)]
fn paced(bytes_per_second: f64) -> Option<u64> {
    (bytes_per_second >= 1_000.0).then_some(bytes_per_second as u64)
}

/// Finds out which program listens at `peer`. A program that waits for more bytes of the other
/// protocol answers neither, so the default port of iperf3 is asked in its protocol first.
fn far_end(peer: &Peer) -> Result<FarEnd, BenchError> {
    if peer.port == iperf3::DEFAULT_PORT
        && let Ok(far) = iperf3_at(peer)
    {
        return Ok(far);
    }
    let error = match Remote::connect(&Network::Kernel, peer, u16::MAX) {
        Ok(remote) => return Ok(FarEnd::Sink(Box::new(remote))),
        Err(error) => error,
    };
    let port = match &error {
        ControlError::Unreachable(_) if peer.port == Peer::DEFAULT_PORT => iperf3::DEFAULT_PORT,
        ControlError::NotLinerate { .. } => peer.port,
        _ => return Err(BenchError::of_control(error, peer)),
    };
    match iperf3_at(&Peer { port, ..peer.clone() }) {
        Ok(far) => Ok(far),
        Err(Iperf3Error::Unreachable(_) | Iperf3Error::NotIperf3) => {
            Err(BenchError::of_control(error, peer))
        }
        Err(error) => Err(BenchError::of_iperf3(&error, peer)),
    }
}

/// Checks with a test without data that an iperf3 server listens at `peer`.
fn iperf3_at(peer: &Peer) -> Result<FarEnd, Iperf3Error> {
    let test = Test {
        streams: 1,
        is_reverse: false,
        write_size: WRITE_SIZE,
        time: Duration::from_secs(1),
    };
    let client = Client::start(&Network::Kernel, peer, &Options::default(), &test)?;
    let (address, local) = (client.address()?, client.local_address()?);
    client.end(&[0], Duration::ZERO)?;
    Ok(FarEnd::Iperf3 { server: peer.clone(), address, local })
}

/// Executes a run to an iperf3 server. Returns the evidence of our end, and the throughput.
fn carry_to_iperf3(
    server: &Peer,
    setup: &Setup,
    time: Duration,
    interrupt: &Interrupt,
) -> Result<(EndEvidence, f64), BenchError> {
    let failed = |error| BenchError::of_iperf3(&error, server);
    let streams = setup.connections;
    let test = Test { streams, is_reverse: false, write_size: WRITE_SIZE, time };
    let client = Client::start(&Network::Kernel, server, &setup.options, &test).map_err(failed)?;
    let Some((first, others)) = client.streams().split_first() else {
        return Ok((EndEvidence::default(), 0.0));
    };
    for stream in client.streams() {
        discard_at_end(stream)?;
    }
    let (near, shared) = write_all(first, others, setup, time, interrupt);
    let bytes_per_second = acknowledged(&near).unwrap_or(0.0) + shared;
    // The server compares nothing with these counts.
    client.end(&vec![near.bytes.unwrap_or(0); streams], time).map_err(failed)?;
    Ok((near, bytes_per_second))
}

fn connect(remote: &Remote, options: &Options) -> Result<Stream, BenchError> {
    let stream = Network::Kernel
        .connect(remote.address(), options, TIMEOUT)
        .map_err(|error| BenchError::io("opening a data connection", error))?;
    discard_at_end(&stream)?;
    Ok(stream)
}

/// Data that is queued at the end of a run must not disturb the next one.
fn discard_at_end(stream: &Stream) -> Result<(), BenchError> {
    let Stream::Kernel(stream) = stream else { return Ok(()) };
    sockopt::set_socket_linger(stream, Some(Duration::ZERO))
        .map_err(|error| BenchError::io("setting SO_LINGER", error.into()))
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
        let transfer = || {
            if let Some(rate) = setup.options.max_pacing_rate {
                begin_slowly(stream, rate);
            }
            task.run_timed(stream, &clock, stop)
        };
        observed(stream, &clock, time / 2, transfer).1
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

/// Writes the first segments at `rate`. The kernel sends them without pacing, and a short queue
/// would drop some of them, which ends slow start at a small window.
fn begin_slowly(stream: &Stream, rate: u64) {
    let bytes = [0; SMALL_SEGMENT as usize];
    let pause = Duration::from_secs_f64(f64::from(SMALL_SEGMENT) / as_f64(rate.max(1)));
    for _ in 0..UNPACED {
        if (&mut &*stream).write_all(&bytes).is_err() {
            // The transfer fails too, and reports it.
            return;
        }
        thread::sleep(pause.min(MAX_PAUSE));
    }
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

//! The parameters of a run, which follow from the application and from at most one intervention.

use super::Application;
use super::far_end::FarEnd;
use super::near_end::NearEnd;
use linerate_ends::control::{RunSpec, SinkTcp};
use linerate_ends::socket::Options;
use linerate_evidence::{Change, RunEvidence};
use std::time::Duration;

/// Number of bytes in a read of the sink.
const READ_SIZE: u64 = 128 << 10;
/// Factor by which the intervention of larger writes increases their size.
const LARGER: usize = 8;
/// Number of bytes that the kernel passes to a device at once (GSO). Writes larger than this save
/// no processor time.
const GSO_BURST: usize = 64 << 10;
/// Maximum number of bytes in a write with the intervention of larger writes.
const MAX_WRITE: usize = 4 << 20;
/// Minimum pacing rate that [`tenfold`] returns, in bytes per second.
const SLOW: f64 = 1e6;
/// Throughput in bytes per second (100 Mb/s) below which some interventions pace at ten times the
/// throughput, see [`tenfold`].
const LOW: f64 = 12.5e6;
/// Share of the peak delivery rate at which [`Change::Paced`] sends.
const PACED: f64 = 0.9;
/// Share of the throughput at which [`Change::PacedAtHalf`] sends. At this rate, no queue on the
/// path fills.
const PACED_AT_HALF: f64 = 0.5;
/// Segment size in bytes that every host must accept: its packets have fewer than 576 bytes (RFC
/// 1122 §3.3.2).
pub(super) const SMALL_SEGMENT: u16 = 512;

/// Results of runs without intervention, from which interventions derive their parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    /// Throughput of the latest run without intervention.
    bytes_per_second: f64,
    /// Peak delivery rate of the first run, which is the longest, in bytes per second; `None` if
    /// the sender does not report it.
    peak: Option<u64>,
    /// Send buffer in bytes, as the sender reports it.
    send_buffer: Option<u64>,
    /// Receive buffer in bytes, as the receiver reports it.
    receive_buffer: Option<u64>,
    /// Number of data bytes in a full segment.
    segment: Option<u64>,
}

/// The parameters of one run.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Options of the sender's sockets.
    pub(super) options: Options,
    /// The request to the sink.
    pub(super) spec: RunSpec,
    /// Number of bytes in a write.
    pub(super) write_size: usize,
    /// Time to wait after each write.
    pub(super) write_pause: Duration,
    /// Must the writing thread move to another CPU?
    pub(super) is_moved: bool,
    /// Number of connections that send at the same time.
    pub(super) connections: usize,
}

impl Plain {
    /// Returns the results of a run without intervention. `earlier` contains the results of
    /// previous runs without intervention, and so the peak delivery rate of the first run.
    pub(super) fn of(evidence: &RunEvidence, earlier: Option<Self>) -> Self {
        let (near, far) = (&evidence.sender.connection, &evidence.receiver.connection);
        Self {
            bytes_per_second: evidence.bytes_per_second,
            peak: earlier.map_or(near.peak_delivery_rate, |plain| plain.peak),
            send_buffer: near.send_buffer,
            receive_buffer: far.receive_buffer,
            segment: near.segment_bytes,
        }
    }

    /// Did the intervention `change` have an effect on the run with this `evidence`? The kernel may
    /// silently limit the size of a changed buffer.
    pub(super) fn has_changed(self, change: Change, evidence: &RunEvidence) -> bool {
        let sent = evidence.sender.connection.send_buffer;
        let received = evidence.receiver.connection.receive_buffer;
        // Ratios are multiplied by eight, so that integers are precise enough. The kernel may
        // round, so a ratio of 1.5 counts as doubled, and one of 5/8 as halved.
        let ratio = |now: Option<u64>, then: Option<u64>| now?.saturating_mul(8).checked_div(then?);
        match change {
            Change::SendBufferDoubled => ratio(sent, self.send_buffer) >= Some(12),
            Change::SendBufferHalved => ratio(sent, self.send_buffer).is_some_and(|r| r <= 5),
            Change::ReceiveBufferDoubled => ratio(received, self.receive_buffer) >= Some(12),
            Change::ReceiveBufferHalved => {
                ratio(received, self.receive_buffer).is_some_and(|r| r <= 5)
            }
            _ => true,
        }
    }
}

impl Setup {
    /// Returns the parameters of a run of duration `time` without intervention.
    pub(super) fn plain(application: &Application, time: Duration) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            options: Options {
                send_buffer: application.send_buffer,
                congestion: application.congestion.clone(),
                ..Options::default()
            },
            spec: RunSpec {
                receive_buffer: application.receive_buffer,
                bytes: u64::MAX,
                read_size: READ_SIZE,
                verify: None,
                max_milliseconds: millis(time).max(1),
                max_segment: None,
                observe_after: Some(millis(time / 2)),
                discard: false,
            },
            write_size: application.write_size,
            write_pause: application.write_pause.into(),
            is_moved: false,
            connections: 1,
        }
    }

    /// Returns these parameters with the intervention `change`; `None` if the TCPs at the two ends
    /// do not support the intervention, or if it would change nothing.
    pub(super) fn with(
        self,
        change: Change,
        plain: Plain,
        near: &NearEnd,
        far: &FarEnd,
    ) -> Option<Self> {
        let mut setup = self;
        // Reported buffer sizes may include the kernel's overhead, but requested sizes do not.
        let sent = plain.send_buffer.map(|bytes| bytes / near.granted_per_asked());
        let received =
            plain.receive_buffer.and_then(|bytes| Some(bytes / far.tcp()?.granted_per_asked()));
        match change {
            Change::SendBufferDoubled => setup.options.send_buffer = Some(sent? * 2),
            Change::SendBufferHalved => setup.options.send_buffer = Some(sent? / 2),
            Change::ReceiveBufferDoubled => setup.spec.receive_buffer = Some(received? * 2),
            Change::ReceiveBufferHalved => setup.spec.receive_buffer = Some(received? / 2),
            Change::LargerWrites => {
                (setup.write_size < GSO_BURST).then_some(())?;
                setup.write_size = Some(setup.write_size.saturating_mul(LARGER))
                    .filter(|&larger| larger <= MAX_WRITE)?;
            }
            Change::WriterWithoutPauses => {
                (!setup.write_pause.is_zero()).then_some(())?;
                setup.write_pause = Duration::ZERO;
                setup.options.max_pacing_rate = tenfold(plain.bytes_per_second);
            }
            Change::Discard => {
                // Only a receiving TCP of the kernel can discard data without copying it.
                (far.tcp()? == SinkTcp::Kernel).then_some(())?;
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
                // If small packets pass, the path may be fast. Ten times the throughput is enough
                // to prove that large packets were the limit.
                setup.options.max_pacing_rate = tenfold(plain.bytes_per_second);
            }
            // The thread of linerate's host does most of the sender's work, and cannot be moved.
            Change::OtherCpu => {
                near.is_kernel().then_some(())?;
                setup.is_moved = true;
            }
            Change::TwoConnections => setup.connections = 2,
            Change::SenderCpuFaster | Change::ReceiverCpuFaster => return None,
        }
        // A paced run begins with small segments, which the Nagle algorithm would merge.
        setup.options.no_delay |= setup.options.max_pacing_rate.is_some();
        Some(setup)
    }
}

/// Returns a pacing rate of ten times `bytes_per_second`; `None` if that throughput is not low. An
/// intervention that removes a slow program proves its point at this rate, whereas a transfer
/// without pacing would occupy the CPUs.
fn tenfold(bytes_per_second: f64) -> Option<u64> {
    (bytes_per_second < LOW).then(|| paced((bytes_per_second * 10.0).max(SLOW)))?
}

/// Converts a rate to an integer pacing rate in bytes per second; `None` if the rate is too low for
/// pacing.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive rate below 2^53 bytes per second"
)]
fn paced(bytes_per_second: f64) -> Option<u64> {
    (bytes_per_second >= 1_000.0).then_some(bytes_per_second as u64)
}

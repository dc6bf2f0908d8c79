//! The parameters of a run, which follow from the application and from at most one intervention.

use super::far_end::FarEnd;
use super::near_end::NearEnd;
use super::{Application, LARGER_BUFFER, LARGER_WRITES};
use linerate_ends::control::{RunSpec, SinkTcp};
use linerate_ends::socket::Options;
use linerate_evidence::{Change, RunEvidence};
use std::time::Duration;

/// Size of each `read` call of the sink, in bytes.
const READ_SIZE: u64 = 128 << 10;
/// Maximum number of bytes that the kernel passes to a device at once (GSO). Writes larger than
/// this save no processor time.
const GSO_BURST: usize = 64 << 10;
/// Divisor of the pause between two writes, with the intervention of shorter pauses.
const SHORTER_PAUSE: u32 = 4;
/// Maximum throughput of a transfer to a discarding reader, as a multiple of the throughput without
/// intervention. Twice the throughput is enough to show that the reader was the limit. Without a
/// maximum, the transfer would occupy the CPUs.
const DISCARD_LIMIT: f64 = 2.0;
/// Pacing rate of a transfer in small segments, as a multiple of the throughput without
/// intervention. Five times the throughput is enough to show that large packets were the limit. The
/// rate needs a limit, because a path that drops large packets may be fast for small packets.
const SMALL_LIMIT: f64 = 5.0;
/// Minimum pacing rate of a transfer in small segments, in bytes per second. The minimum is needed
/// because the throughput without intervention may be zero.
const SMALL_MIN: f64 = 1e6;
/// Minimum size in bytes of a buffer with the intervention of a larger buffer. A smaller buffer
/// holds only a few GSO bursts, and the reader is woken for each burst. On a path with a round trip
/// of microseconds, the enlarged buffer would then still be the limit.
const LARGER_BUFFER_MIN: u64 = 8 * GSO_BURST as u64;
/// Pacing rate of [`Change::Paced`], as a share of the estimated link rate. If segments were lost,
/// the estimate is the peak delivery rate, otherwise the throughput.
const PACED: f64 = 0.9;
/// Pacing rate of [`Change::PacedAtHalf`], as a share of the throughput without intervention. At
/// this rate, no queue on the path fills.
const PACED_AT_HALF: f64 = 0.5;
/// Pacing rate of [`Change::PacedAtTwice`], as a multiple of the throughput without intervention.
const PACED_AT_TWICE: f64 = 2.0;
/// Segment size in bytes that every host must accept: its packets have fewer than 576 bytes (RFC
/// 1122 §3.3.2).
pub(super) const SMALL_SEGMENT: u16 = 512;

/// Results of runs without intervention, from which interventions derive their parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    /// Throughput of the latest run without intervention.
    bytes_per_second: f64,
    /// Highest peak delivery rate of all runs without intervention, in bytes per second; `None` if
    /// the sender does not report it.
    peak: Option<u64>,
    /// Were segments retransmitted in any run without intervention? If that is not known, the value
    /// is true.
    has_losses: bool,
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
    /// Size of each `write` call, in bytes.
    pub(super) write_size: usize,
    /// Time to wait after each write.
    pub(super) write_pause: Duration,
    /// Is the writing thread moved to a CPU other than its current one?
    pub(super) is_moved: bool,
    /// Number of connections that send at the same time.
    pub(super) connections: usize,
    /// Maximum rate in bytes per second at which the program itself writes; `None` for no maximum.
    pub(super) max_rate: Option<u64>,
}

impl Plain {
    /// Returns the results of a run without intervention. `earlier` contains the results of
    /// previous runs without intervention, whose peak delivery rate may be higher.
    pub(super) fn of(evidence: &RunEvidence, earlier: Option<Self>) -> Self {
        let (near, far) = (&evidence.sender.connection, &evidence.receiver.connection);
        Self {
            bytes_per_second: evidence.bytes_per_second,
            peak: near.peak_delivery_rate.max(earlier.and_then(|plain| plain.peak)),
            has_losses: near.whole_retransmitted_segments != Some(0)
                || earlier.is_some_and(|plain| plain.has_losses),
            send_buffer: near.send_buffer,
            receive_buffer: far.receive_buffer,
            segment: near.segment_bytes,
        }
    }

    /// Returns an estimate of the link rate in bytes per second, for a path that the link limits.
    /// If segments were lost, the throughput is below the link rate, so the estimate is the peak
    /// delivery rate. If none were lost, the estimate is the throughput. The peak delivery rate may
    /// exceed the link rate, because some links send queued packets in bursts.
    #[allow(clippy::cast_precision_loss, reason = "a rate below 2^53")]
    fn link_rate(self) -> f64 {
        let peak = self.peak.filter(|_| self.has_losses);
        peak.map_or(self.bytes_per_second, |peak| peak as f64)
    }

    /// Returns the pacing rate of the intervention `change`, in bytes per second; `None` if the
    /// intervention does not pace the sender, or if the rate is too low for pacing.
    pub(super) fn pacing_rate(self, change: Change) -> Option<u64> {
        match change {
            Change::Paced => paced(self.link_rate() * PACED),
            Change::PacedAtHalf => paced(self.bytes_per_second * PACED_AT_HALF),
            Change::PacedAtTwice => paced(self.bytes_per_second * PACED_AT_TWICE),
            _ => None,
        }
    }

    /// Did the intervention `change` actually change the run with this `evidence`? A buffer may
    /// have kept its size, because the kernel silently limits the size.
    pub(super) fn has_changed(self, change: Change, evidence: &RunEvidence) -> bool {
        let sent = evidence.sender.connection.send_buffer;
        let received = evidence.receiver.connection.receive_buffer;
        // The new size is expressed in eighths of the old one, so that integers are precise enough.
        // A halved buffer may have up to 5/8 of the old size, because the kernel rounds. A larger
        // buffer needs only 12/8, although more was requested, because a limit of the system may
        // prevent more.
        let ratio = |now: Option<u64>, then: Option<u64>| now?.saturating_mul(8).checked_div(then?);
        match change {
            Change::SendBufferLarger => ratio(sent, self.send_buffer) >= Some(12),
            Change::SendBufferHalved => ratio(sent, self.send_buffer).is_some_and(|r| r <= 5),
            Change::ReceiveBufferLarger => ratio(received, self.receive_buffer) >= Some(12),
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
            max_rate: None,
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
        // `plain` has the buffer sizes that the kernel reports, which include its overhead. They
        // are converted to sizes that can be requested.
        let sent = plain.send_buffer.map(|bytes| bytes / near.granted_per_asked());
        let received =
            plain.receive_buffer.and_then(|bytes| Some(bytes / far.tcp()?.granted_per_asked()));
        match change {
            Change::SendBufferLarger => {
                setup.options.send_buffer = Some(larger_buffer(sent?));
            }
            Change::SendBufferHalved => setup.options.send_buffer = Some(sent? / 2),
            Change::ReceiveBufferLarger => {
                setup.spec.receive_buffer = Some(larger_buffer(received?));
            }
            Change::ReceiveBufferHalved => setup.spec.receive_buffer = Some(received? / 2),
            Change::LargerWrites => {
                (setup.write_size < GSO_BURST).then_some(())?;
                setup.write_size = setup.write_size.saturating_mul(LARGER_WRITES.into());
            }
            Change::ShorterPauses => {
                (!setup.write_pause.is_zero()).then_some(())?;
                setup.write_pause /= SHORTER_PAUSE;
            }
            Change::Discard => {
                // Only a receiving TCP of the kernel can discard data without copying it.
                (far.tcp()? == SinkTcp::Kernel).then_some(())?;
                setup.spec.discard = true;
                setup.max_rate = paced(plain.bytes_per_second * DISCARD_LIMIT);
            }
            Change::Paced | Change::PacedAtHalf | Change::PacedAtTwice => {
                setup.options.max_pacing_rate = Some(plain.pacing_rate(change)?);
            }
            Change::SmallerPackets => {
                (plain.segment? > u64::from(SMALL_SEGMENT)).then_some(())?;
                setup.options.max_segment = Some(SMALL_SEGMENT);
                let rate = (plain.bytes_per_second * SMALL_LIMIT).max(SMALL_MIN);
                setup.options.max_pacing_rate = paced(rate);
            }
            // If linerate's host sends, its own thread does most of the sender's work, and cannot
            // be moved. Only a writer on the kernel's TCP is therefore moved to another CPU.
            Change::OtherCpu => {
                near.is_kernel().then_some(())?;
                setup.is_moved = true;
            }
            Change::TwoConnections => setup.connections = 2,
            Change::SenderCpuFaster
            | Change::ReceiverCpuFaster
            | Change::LinkFaster
            | Change::QueueLonger => {
                return None;
            }
        }
        // A paced run begins with small segments, which are written one by one (`begin_slowly`).
        // The Nagle algorithm would merge them, so it is switched off.
        setup.options.no_delay |= setup.options.max_pacing_rate.is_some();
        Some(setup)
    }
}

/// Returns the size in bytes of a buffer of `bytes` with the intervention of a larger buffer.
fn larger_buffer(bytes: u64) -> u64 {
    bytes.saturating_mul(LARGER_BUFFER.into()).max(LARGER_BUFFER_MIN)
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

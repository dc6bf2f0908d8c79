//! The figures that rules compare with thresholds, each computed from the counters of a run.

use linerate_evidence::{EndEvidence, RunEvidence, SenderStates, ThreadEvidence};
use serde::Serialize;

/// The end of a transfer at which a figure is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The sending end of the transfer.
    Sender,
    /// The receiving end of the transfer.
    Receiver,
    /// Both ends: the figure combines a counter of the sender with one of the receiver.
    Both,
}

/// A quantity of a run that rules compare with thresholds. Shares are between 0 and 1. A share of
/// the duration is a share of the observed part of the run, which normally begins after slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Processor time at the sender as a share of the duration. Of the writing thread and the
    /// thread of linerate's host, the busier one counts.
    SenderCpu,
    /// Processor time at the receiver as a share of the duration. Of the reading thread and the
    /// thread of linerate's host, the busier one counts.
    ReceiverCpu,
    /// Share of the duration in which the writing thread is neither in `write` nor on a CPU.
    WriterAway,
    /// Mean amount of received data that the program has not read yet, as a share of the largest
    /// receive window that was advertised.
    UnreadShare,
    /// Share of samples in which the send buffer is full and nearly all of its data is in flight.
    BufferFull,
    /// Share of samples in which there is no unsent data, and the program is not in `write`.
    OutOfData,
    /// Share of the run in which the receiver's window limits the sender. Two measurements exist:
    /// the share of samples, and the time by the connection's own counter. The larger one counts.
    WindowFull,
    /// Share of samples in which unsent data waits for the congestion window.
    CongestionWindowFull,
    /// Share of samples in which unsent data waits although the receiver's window has room. The
    /// data then waits for the congestion window, for pacing, in a local queue or for the
    /// processor.
    NetworkHolds,
    /// Retransmitted segments, as a share of all data segments sent.
    Retransmitted,
    /// Number of losses since the connection was opened. If the TCP reports loss events, all losses
    /// within one round trip are one event and count as one. Otherwise every retransmitted segment
    /// counts.
    Losses,
    /// Number of acknowledged bytes per second, divided by the number of data bytes in a full
    /// segment.
    AcknowledgedSegments,
    /// Number of expirations of the retransmission timer since the connection was opened.
    Timeouts,
    /// Ratio of the mean round-trip time to the shortest round-trip time.
    RoundTripRatio,
    /// Mean round-trip time, in milliseconds.
    RoundTripMillis,
    /// Ratio of the largest congestion window during the observed part of the run to the largest
    /// congestion window before it.
    WindowGrowth,
    /// 1 if the congestion window stays below the slow start threshold, so that slow start has not
    /// ended; otherwise 0.
    SlowStart,
    /// Duration of the observed part of the run, in multiples of its mean round-trip time.
    RoundTrips,
    /// Ratio of the packets that the receiving machine dropped to the retransmitted segments.
    ReceiveDrops,
    /// Share of the link's bit rate that data and framing use. In the simulator, this includes
    /// other transfers over the link.
    LinkShare,
}

impl Figure {
    /// All figures, in the order in which tables show them.
    pub const ALL: [Self; 20] = [
        Self::SenderCpu,
        Self::ReceiverCpu,
        Self::WriterAway,
        Self::OutOfData,
        Self::BufferFull,
        Self::WindowFull,
        Self::UnreadShare,
        Self::CongestionWindowFull,
        Self::NetworkHolds,
        Self::Retransmitted,
        Self::Losses,
        Self::AcknowledgedSegments,
        Self::Timeouts,
        Self::RoundTripRatio,
        Self::RoundTripMillis,
        Self::WindowGrowth,
        Self::SlowStart,
        Self::RoundTrips,
        Self::ReceiveDrops,
        Self::LinkShare,
    ];

    /// Returns the name of the figure in JSON and in text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SenderCpu | Self::ReceiverCpu => "thread_cpu_share",
            Self::WriterAway => "writer_away_share",
            Self::UnreadShare => "unread_share_of_window",
            Self::BufferFull => "send_buffer_full_share",
            Self::OutOfData => "out_of_data_share",
            Self::WindowFull => "receive_window_full_share",
            Self::CongestionWindowFull => "congestion_window_full_share",
            Self::NetworkHolds => "network_holds_share",
            Self::Retransmitted => "retransmitted_share",
            Self::Losses => "losses",
            Self::AcknowledgedSegments => "acknowledged_segments_per_second",
            Self::Timeouts => "retransmission_timeouts",
            Self::RoundTripRatio => "round_trip_over_shortest",
            Self::RoundTripMillis => "round_trip_milliseconds",
            Self::WindowGrowth => "congestion_window_growth",
            Self::SlowStart => "slow_start",
            Self::RoundTrips => "round_trips",
            Self::ReceiveDrops => "receive_drops_over_retransmitted",
            Self::LinkShare => "link_rate_share",
        }
    }

    /// Returns the end at which the figure is measured.
    #[must_use]
    pub const fn end(self) -> End {
        match self {
            Self::ReceiverCpu => End::Receiver,
            Self::UnreadShare | Self::ReceiveDrops => End::Both,
            _ => End::Sender,
        }
    }

    /// Computes this figure from the counters of `run`. Returns `None` if a counter that the figure
    /// needs is absent, and normally also if the figure would be a ratio to 0. There are two
    /// exceptions, which are 0: `Retransmitted` if no segments were sent, and `ReceiveDrops` if no
    /// packets were dropped.
    #[must_use]
    pub fn of(self, run: &RunEvidence) -> Option<f64> {
        let (sender, receiver) = (&run.sender, &run.receiver);
        let connection = &sender.connection;
        let state = |share: fn(&SenderStates) -> f64| sender.states.as_ref().map(share);
        match self {
            Self::SenderCpu => busiest(sender),
            Self::ReceiverCpu => busiest(receiver),
            Self::WriterAway => away(sender),
            Self::UnreadShare => {
                let window = as_f64(connection.peer_window?.max);
                let unread = receiver.queues.unread?.mean;
                (window > 0.0).then(|| (unread / window).min(1.0))
            }
            Self::BufferFull => state(|states| states.buffer_full),
            Self::OutOfData => state(|states| states.out_of_data),
            Self::WindowFull => {
                let sampled = state(|states| states.window_full)?;
                let clock = sender.share_of_micros(connection.receive_window_limited_micros);
                Some(clock.unwrap_or(0.0).max(sampled))
            }
            Self::CongestionWindowFull => state(|states| states.congestion_window_full),
            Self::NetworkHolds => state(|states| states.congestion_window_full + states.held_back),
            Self::Retransmitted => {
                let sent = as_f64(connection.data_segments_sent?);
                let repeated = as_f64(connection.retransmitted_segments?);
                Some(if sent > 0.0 { repeated / sent } else { 0.0 })
            }
            Self::Losses => {
                connection.loss_events.or(connection.whole_retransmitted_segments).map(as_f64)
            }
            Self::AcknowledgedSegments => {
                let segment = as_f64(connection.segment_bytes?.max(1));
                Some(as_f64(connection.acknowledged_bytes?) / segment / sender.seconds?)
            }
            Self::Timeouts => connection.retransmission_timeouts.map(as_f64),
            Self::RoundTripRatio => {
                let shortest = as_f64(connection.shortest_round_trip_micros?);
                (shortest > 0.0).then_some(connection.round_trip_micros?.mean / shortest)
            }
            Self::RoundTripMillis => connection.round_trip_micros.map(|time| time.mean / 1e3),
            Self::WindowGrowth => {
                let earlier = as_f64(connection.earlier_congestion_window?);
                let now = as_f64(connection.congestion_window?.max);
                (earlier > 0.0).then_some(now / earlier)
            }
            Self::SlowStart => {
                let window = connection.congestion_window?.max;
                Some(if window < connection.slow_start_threshold? { 1.0 } else { 0.0 })
            }
            Self::RoundTrips => {
                let round_trip = connection.round_trip_micros?.mean / 1e6;
                (round_trip > 0.0).then_some(sender.seconds? / round_trip)
            }
            Self::ReceiveDrops => receive_drops(run),
            Self::LinkShare => Some(run.wire_bits_per_second? / run.link_bits_per_second?),
        }
    }
}

/// Returns the processor time of the busiest thread of one end, as a share of the duration; `None`
/// if it is unknown.
pub(super) fn busiest(end: &EndEvidence) -> Option<f64> {
    let ThreadEvidence { cpu_nanos, host_cpu_nanos, .. } = end.thread;
    end.share_of_nanos(cpu_nanos.max(host_cpu_nanos))
}

/// Returns the share of the duration in which the program's thread is neither on a CPU nor in a
/// call of `write` or `read`. Returns `None` if one of these two times is unknown. The result is a
/// lower bound: a call also uses processor time, so the two times that are subtracted overlap.
fn away(end: &EndEvidence) -> Option<f64> {
    let in_calls = end.share_of_nanos(end.thread.call_nanos)?;
    let on_cpu = end.share_of_nanos(end.thread.cpu_nanos)?;
    Some((1.0 - in_calls - on_cpu).max(0.0))
}

/// Returns the number of packets that the receiving machine dropped, divided by the number of
/// retransmitted segments. The drop counters include other traffic of the machine.
///
/// Without drops, the ratio is 0 even if nothing was retransmitted. It then still shows that drops
/// are not the cause of losses that occurred before the observed part of the run. Returns `None` if
/// there are drops but no retransmissions, or if the receiver was not observed.
fn receive_drops(run: &RunEvidence) -> Option<f64> {
    let repeated = as_f64(run.sender.connection.retransmitted_segments?);
    run.receiver.seconds?;
    let dropped = run.receiver.system_sum(|name| {
        name == "softnet.dropped"
            || name.ends_with(".rx_dropped")
            || name.ends_with(".rx_fifo_errors")
            || name == "TcpExt.TCPBacklogDrop"
            || name == "TcpExt.TCPRcvQDrop"
            || name == "TcpExt.RcvPruned"
    });
    match dropped {
        0 => Some(0.0),
        _ => (repeated > 0.0).then(|| as_f64(dropped) / repeated),
    }
}

#[allow(clippy::cast_precision_loss, reason = "figures are shown with three digits")]
const fn as_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_evidence::{ConnectionEvidence, Distribution, QueueEvidence};

    #[test]
    fn a_figure_without_its_counters_is_absent() {
        for figure in Figure::ALL {
            assert_eq!(figure.of(&RunEvidence::default()), None, "{figure:?}");
        }
    }

    #[test]
    fn figures_are_ratios_of_counters() {
        let distribution = |mean, max| Some(Distribution { mean, max });
        let connection = ConnectionEvidence {
            data_segments_sent: Some(1_000),
            retransmitted_segments: Some(10),
            peer_window: distribution(50_000.0, 100_000),
            round_trip_micros: distribution(30_000.0, 50_000),
            shortest_round_trip_micros: Some(10_000),
            ..ConnectionEvidence::default()
        };
        let sender = EndEvidence { seconds: Some(3.0), connection, ..EndEvidence::default() };
        let queues =
            QueueEvidence { unread: distribution(40_000.0, 90_000), ..QueueEvidence::default() };
        let system = [("eth0.rx_dropped".to_owned(), 5), ("eth0.rx_bytes".to_owned(), 99)].into();
        let receiver = EndEvidence { seconds: Some(3.0), queues, system, ..EndEvidence::default() };
        let run = RunEvidence { sender, receiver, ..RunEvidence::default() };
        assert_eq!(Figure::Retransmitted.of(&run), Some(0.01));
        assert_eq!(Figure::UnreadShare.of(&run), Some(0.4));
        assert_eq!(Figure::RoundTripRatio.of(&run), Some(3.0));
        assert_eq!(Figure::RoundTripMillis.of(&run), Some(30.0));
        assert_eq!(Figure::RoundTrips.of(&run), Some(100.0));
        assert_eq!(Figure::ReceiveDrops.of(&run), Some(0.5));
        let mut lossless = run.clone();
        lossless.sender.connection.retransmitted_segments = Some(0);
        assert_eq!(Figure::ReceiveDrops.of(&lossless), None, "drops of other traffic");
        lossless.receiver.system.clear();
        assert_eq!(Figure::ReceiveDrops.of(&lossless), Some(0.0));
        let mut host = run;
        host.sender.thread.cpu_nanos = Some(750_000_000);
        assert_eq!(Figure::SenderCpu.of(&host), Some(0.25));
        host.sender.thread.host_cpu_nanos = Some(2_250_000_000);
        assert_eq!(Figure::SenderCpu.of(&host), Some(0.75), "linerate's host does the work");
    }
}

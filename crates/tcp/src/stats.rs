//! The counters and the status of a connection, for observers.

use crate::compact::pack::packed;
use crate::input::validate::predict::MissReason;
use crate::send::busy_time::BusyTime;
use linerate_units::{Duration, Instant, Rate};
use linerate_wire::Segment;

/// The counters of a connection. The counters that the fast path increments are adjacent, so that
/// they share cache lines. They are the final fields of `prediction`, and the first fields after
/// `prediction`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub struct Statistics {
    /// The hits and misses of header prediction.
    pub prediction: PredictionStatistics,
    /// The number of segments received, of every kind. Coalesced segments count individually.
    pub segments_received: u64,
    /// The number of data bytes received in order.
    pub bytes_received: u64,
    /// The number of segments sent, of every kind.
    pub segments_sent: u64,
    /// The number of segments sent without data, SYN, FIN or RST.
    pub pure_acks_sent: u64,
    /// The number of segments sent with data, including retransmissions. Data on a SYN is not
    /// counted.
    pub data_segments_sent: u64,
    /// The number of data bytes sent, without retransmissions.
    pub bytes_sent: u64,
    /// The number of data bytes that the peer has acknowledged.
    pub bytes_acknowledged: u64,
    /// The number of received acknowledgements that were not processed individually, because the
    /// same batch contained a newer one.
    pub acks_superseded: u64,
    /// The number of times that segments were found to be reordered on the path.
    pub reorderings: u64,
    /// The number of received segments that the link has coalesced into the segment before them, so
    /// that they were not processed individually.
    pub segments_joined: u64,
    /// The number of segments with retransmitted data.
    pub retransmitted_segments: u64,
    /// The number of data bytes retransmitted. A byte that is retransmitted several times counts
    /// each time.
    pub bytes_retransmitted: u64,
    /// The number of recoveries that began before the retransmission timer expired, because
    /// duplicate ACKs, SACK or a reordering timeout revealed a loss.
    pub fast_retransmissions: u64,
    /// The number of expiries of the retransmission timer. Expiries that sent a tail loss probe are
    /// not counted.
    pub retransmission_timeouts: u64,
    /// The number of tail loss probes sent (RFC 8985 §7).
    pub tail_probes: u64,
    /// The number of recoveries that were found to be spurious, and undone.
    pub spurious_recoveries: u64,
    /// The number of D-SACK blocks received (RFC 2883), in which the peer reports that data of ours
    /// has arrived twice.
    pub duplicates_reported: u64,
    /// The number of times that the peer has reneged: it has discarded data that it had SACKed
    /// before (RFC 2018 §8).
    pub reneged: u64,
    /// The number of path MTU probes sent: segments larger than usual, which test whether the path
    /// carries them (RFC 4821).
    pub path_probes: u64,
    /// The number of path MTU probes that the peer has received.
    pub path_probes_passed: u64,
    /// The number of path MTU probes that were lost because of their size.
    pub path_probes_failed: u64,
    /// The number of times that the segment size was reduced because large segments were lost
    /// repeatedly, without an ICMP report (a black hole).
    pub black_holes: u64,
    /// The number of times that a segment size which a probe had raised was reduced again because
    /// of losses (RFC 4821 §7.8).
    pub path_sizes_withdrawn: u64,
    /// The number of ICMP reports of a smaller path MTU that were held until the fate of the quoted
    /// segment is known (RFC 5927 §7.2). Like the three counters below, it stops at its maximum
    /// instead of wrapping.
    pub reports_held: u32,
    /// The number of ICMP reports of a smaller path MTU that have reduced the segment size.
    pub reports_applied: u32,
    /// The number of ICMP reports of a smaller path MTU that proved false, because the quoted
    /// segment or larger data has arrived.
    pub reports_disproved: u32,
    /// The number of ICMP reports of a smaller path MTU that were ignored, because the quoted
    /// segment was small enough or another report was waiting.
    pub reports_ignored: u32,
    /// The number of duplicate acknowledgements received.
    pub duplicate_acks: u64,
    /// The number of segments received with data that begins after a hole in the received data.
    pub out_of_order_segments: u64,
    /// The number of segments received with data outside the receive window, usually because all
    /// their data had arrived before.
    pub duplicate_segments: u64,
    /// The number of segments whose data was dropped because storing it would need too many ranges
    /// of out-of-order data.
    pub reassembly_full: u64,
    /// The number of segments whose data was dropped because the host had no memory for it.
    pub memory_refusals: u64,
    /// The number of times that out-of-order data was discarded because the host was short of
    /// memory.
    pub pruned: u64,
    /// The number of acknowledgements sent because the delayed-ACK timer had expired.
    pub delayed_ack_timeouts: u64,
    /// The number of probes of a closed window sent.
    pub window_probes: u64,
    /// The number of short segments that the persist timer has sent, because the peer's window was
    /// too small for a full segment.
    pub small_window_timeouts: u64,
    /// The number of keep-alive probes sent.
    pub keep_alive_probes: u64,
    /// The number of challenge ACKs that were due (RFC 5961), including those that were suppressed.
    pub challenge_acks: u64,
    /// The number of challenge ACKs that the host suppressed because it had sent too many.
    pub challenges_withheld: u64,
    /// The number of segments refused because of an old timestamp (PAWS).
    pub old_timestamps: u64,
    /// The number of segments received with data in a packet with a CE mark (RFC 3168).
    pub marked_segments: u64,
    /// The number of acknowledgements received that echo CE marks on our data by ECE (RFC 3168).
    pub mark_echoes: u64,
    /// The number of our packets that arrived at the peer with a CE mark, according to the AccECN
    /// feedback (RFC 9768). With RFC 3168, the number is an estimate: each packet that an ACK with
    /// ECE acknowledges is counted.
    pub marked_deliveries: u64,
    /// The number of times that echoed CE marks have reduced the congestion window.
    pub mark_reductions: u64,
    /// The number of segments received that announced a closed window.
    pub zero_windows_received: u64,
}

impl Statistics {
    /// Returns the number of segments received with data, in order or out of order.
    #[must_use]
    pub const fn data_segments_received(&self) -> u64 {
        let prediction = &self.prediction;
        prediction.data + prediction.both + prediction.missed_data + self.segments_joined
    }
}
packed!(Statistics {
    segments_received,
    segments_joined,
    acks_superseded,
    bytes_received,
    segments_sent,
    data_segments_sent,
    bytes_sent,
    bytes_acknowledged,
    pure_acks_sent,
    retransmitted_segments,
    bytes_retransmitted,
    fast_retransmissions,
    retransmission_timeouts,
    tail_probes,
    spurious_recoveries,
    reorderings,
    duplicates_reported,
    reneged,
    path_probes,
    path_probes_passed,
    path_probes_failed,
    black_holes,
    path_sizes_withdrawn,
    reports_held,
    reports_applied,
    reports_disproved,
    reports_ignored,
    duplicate_acks,
    out_of_order_segments,
    duplicate_segments,
    reassembly_full,
    memory_refusals,
    pruned,
    delayed_ack_timeouts,
    window_probes,
    small_window_timeouts,
    keep_alive_probes,
    challenge_acks,
    challenges_withheld,
    old_timestamps,
    marked_segments,
    mark_echoes,
    marked_deliveries,
    mark_reductions,
    zero_windows_received,
    prediction
});

/// The number of segments that header prediction has recognised (hits), and of those that it has
/// not (misses), for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub struct PredictionStatistics {
    misses: [u64; MissReason::ALL.len()],
    /// The number of segments with data that took the slow path.
    pub(crate) missed_data: u64,
    /// The number of segments that took the fast path with data and an acknowledgement of new data.
    pub both: u64,
    /// The number of acknowledgements without data that took the fast path.
    pub acks: u64,
    /// The number of segments that took the fast path with data, but without an acknowledgement of
    /// new data.
    pub data: u64,
}

packed!(PredictionStatistics { acks, data, both, misses, missed_data });

impl PredictionStatistics {
    /// Returns the number of segments that took the slow path for `reason`.
    #[must_use]
    pub const fn missed(&self, reason: MissReason) -> u64 {
        self.misses[reason as usize]
    }

    /// Returns each reason for the slow path, and the number of segments that took the slow path
    /// for this reason.
    pub fn misses(&self) -> impl Iterator<Item = (MissReason, u64)> + '_ {
        MissReason::ALL.into_iter().map(|reason| (reason, self.missed(reason)))
    }

    /// Returns the number of segments that took the fast path.
    #[must_use]
    pub const fn hits(&self) -> u64 {
        self.acks + self.data + self.both
    }

    pub(crate) fn count_miss(&mut self, reason: MissReason, segment: &Segment<'_>) {
        self.misses[reason as usize] += 1;
        self.missed_data += u64::from(!segment.payload.is_empty());
    }
}

/// The state of loss recovery. The numbers are those of `tcpi_ca_state` in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecoveryState {
    /// No data is missing.
    Open,
    /// Data is missing at the peer, or has arrived there twice or out of order. It is not yet known
    /// whether any data is lost.
    Disorder,
    /// A CE mark has reduced the congestion window, and data that was in flight then is not yet
    /// acknowledged.
    Reduced,
    /// Data is lost and is being retransmitted, without an expiry of the retransmission timer. Each
    /// acknowledgement that shows delivered data permits further retransmissions.
    Recovery,
    /// The retransmission timer has expired, and lost data is being retransmitted in slow start.
    Loss,
}

/// The AccECN counters of both endpoints (RFC 9768 §3.2). As in Linux, they begin with zero, and
/// not with the initial values of the counters in segments. They wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccurateEcn {
    /// The number of packets received with a CE mark.
    pub received: u32,
    /// The number of data bytes received in packets with a CE mark.
    pub received_ce_bytes: u32,
    /// The number of data bytes received in packets with ECT(0).
    pub received_e0_bytes: u32,
    /// The number of data bytes received in packets with ECT(1).
    pub received_e1_bytes: u32,
    /// The number of our packets that the peer has received with a CE mark.
    pub delivered: u32,
    /// The number of our data bytes that the peer has received in packets with a CE mark, by its
    /// AccECN options.
    pub delivered_ce_bytes: u32,
    /// The number of our data bytes that the peer has received in packets with ECT(0), by its
    /// AccECN options.
    pub delivered_e0_bytes: u32,
    /// The number of our data bytes that the peer has received in packets with ECT(1), by its
    /// AccECN options.
    pub delivered_e1_bytes: u32,
    /// Whether the peer's AccECN options arrive, and the path does not overwrite them with zero.
    pub receives_options: bool,
    /// Whether AccECN options are sent. If the first segment with such an option is lost, they are
    /// disabled.
    pub sends_options: bool,
}

/// The status of a connection, which corresponds to Linux's `TCP_INFO`.
///
/// The fields of Linux's `struct tcp_info` (without `tcpi_`) are here and in [`Statistics`]:
///
/// - `state`: [`crate::Connection::state`]
/// - `ca_state`: [`Self::recovery`]
/// - `retransmits`, `probes`, `backoff`: [`Self::consecutive_timeouts`],
///   [`Self::consecutive_probes`], [`Self::backoff`]
/// - `options`: [`Self::timestamps`] 1, [`Self::selective_acks`] 2, [`Self::window_scaling`] 4,
///   [`Self::ecn`] 8, [`Self::ecn_seen`] 16, [`Self::syn_data_accepted`] 32
/// - `snd_wscale`, `rcv_wscale`: [`Self::send_shift`], [`Self::receive_shift`]
/// - `rto`, `ato`: [`Self::retransmission_timeout`], [`Self::delayed_ack`]
/// - `snd_mss`, `rcv_mss`, `advmss`: [`Self::effective_mss`], [`Self::peer_segment`],
///   [`Self::announced_mss`]
/// - `pmtu`: [`Self::path_mtu`]
/// - `unacked`: [`crate::Connection::unacknowledged_bytes`] less [`Self::unsent`], in bytes
/// - `sacked`, `lost`: [`Self::sacked`], [`Self::lost`], in bytes. Lost data that was retransmitted
///   counts as in flight here, not as lost
/// - `retrans`: [`Self::repeated_in_flight`], in bytes
/// - `last_data_sent`, `last_data_recv`, `last_ack_recv`: since [`Self::last_sent`],
///   [`Self::last_data_received`], [`Self::last_received`]
/// - `busy_time`, `rwnd_limited`, `sndbuf_limited`: [`Self::busy`]
/// - `rtt`, `rttvar`, `min_rtt`: [`Self::smoothed_round_trip`], [`Self::round_trip_variation`],
///   [`Self::shortest_round_trip`]
/// - `rcv_rtt`, `rcv_space`: [`Self::receive_round_trip`], [`Self::read_in_a_round_trip`]
/// - `snd_cwnd`, `snd_ssthresh`: [`Self::congestion_window`], [`Self::slow_start_threshold`], in
///   bytes
/// - `snd_wnd`, `rcv_wnd`: [`Self::send_window`], [`Self::receive_window`]
/// - `pacing_rate`, `max_pacing_rate`: [`Self::pacing_rate`], [`Self::max_pacing_rate`]
/// - `notsent_bytes`: [`Self::unsent`]
/// - `delivered`, `delivery_rate`, `delivery_rate_app_limited`: [`Self::delivered`] in bytes,
///   [`Self::delivery_rate`], [`Self::delivery_rate_is_application_limited`]
/// - `reord_seen`: [`Statistics::reorderings`]
/// - `bytes_acked`, `bytes_received`: [`Statistics::bytes_acknowledged`],
///   [`Statistics::bytes_received`]
/// - `bytes_sent`, `bytes_retrans`: [`Statistics::bytes_sent`], which counts each byte once, and
///   [`Statistics::bytes_retransmitted`]
/// - `segs_out`, `segs_in`, `total_retrans`, `rcv_ooopack`: [`Statistics::segments_sent`],
///   [`Statistics::segments_received`], [`Statistics::retransmitted_segments`],
///   [`Statistics::out_of_order_segments`]
/// - `data_segs_out`, `data_segs_in`: [`Statistics::data_segments_sent`],
///   [`Statistics::data_segments_received`]
/// - `delivered_ce`: [`Statistics::marked_deliveries`]
/// - `received_ce`, `received_ce_bytes`, `received_e0_bytes`, `received_e1_bytes`,
///   `delivered_ce_bytes`, `delivered_e0_bytes`, `delivered_e1_bytes`: [`Self::accurate_ecn`]
/// - `dsack_dups`, `total_rto`: [`Statistics::duplicates_reported`],
///   [`Statistics::retransmission_timeouts`]
///
/// These fields have no equivalent: `reordering` (a degree of reordering, which RACK does not use),
/// `fackets` (which Linux does not use any more), `last_ack_sent` (not stored by Linux) and
/// `rcv_ssthresh`. The latter limits the window in Linux, to leave room for packet overhead, which
/// is not charged here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Information {
    /// The state of loss recovery.
    pub recovery: RecoveryState,
    /// The number of expiries of the retransmission timer since the peer most recently acknowledged
    /// new data.
    pub consecutive_timeouts: u32,
    /// The number of times that the RTO has been doubled since the most recent round-trip sample.
    pub backoff: u32,
    /// The number of probes of the peer's closed window since that window was closed.
    pub consecutive_probes: u32,
    /// Whether both endpoints have agreed on timestamps.
    pub timestamps: bool,
    /// Whether both endpoints have agreed on SACK.
    pub selective_acks: bool,
    /// Whether both endpoints have agreed on window scaling.
    pub window_scaling: bool,
    /// The estimated number of data bytes in the peer's full segments.
    pub peer_segment: u32,
    /// The MSS that our SYN would announce if it were sent now: the knowledge of the path may have
    /// changed since the SYN.
    pub announced_mss: u32,
    /// The configured maximum delay of an acknowledgement.
    pub delayed_ack: Duration,
    /// The time when data was most recently sent. If no data was sent, the time when the connection
    /// was opened.
    pub last_sent: Instant,
    /// The time when in-order data most recently arrived. If none has arrived, the time when the
    /// connection was opened.
    pub last_data_received: Instant,
    /// The time during which data was unacknowledged, in total and for each factor that limited the
    /// sender.
    pub busy: BusyTime,
    /// The time when the most recent acceptable segment arrived.
    pub last_received: Instant,
    /// The round-trip time that the receiver has measured for the tuning of its buffer, if it has
    /// measured any.
    pub receive_round_trip: Option<Duration>,
    /// The largest number of bytes that the application has read in a round trip, according to the
    /// tuning of the receive buffer. Zero if no round trip was measured for it.
    pub read_in_a_round_trip: u32,
    /// The pacing rate, if segments are paced.
    pub pacing_rate: Option<Rate>,
    /// The maximum pacing rate, if there is one.
    pub max_pacing_rate: Option<Rate>,
    /// SRTT, the smoothed round-trip time, if measured.
    pub smoothed_round_trip: Option<Duration>,
    /// RTTVAR, the variation of the round-trip time.
    pub round_trip_variation: Duration,
    /// RTO, the retransmission timeout, including backoff.
    pub retransmission_timeout: Duration,
    /// The congestion window in bytes.
    pub congestion_window: u32,
    /// The slow start threshold in bytes.
    pub slow_start_threshold: u32,
    /// SND.WND, the peer's window, in bytes.
    pub send_window: u32,
    /// RCV.WND, the window offered to the peer, in bytes.
    pub receive_window: u32,
    /// The number of bytes in flight: with SACK, the estimate of data in the network (pipe),
    /// otherwise all unacknowledged data.
    pub in_flight: u32,
    /// The number of bytes that the peer has SACKed.
    pub sacked: u32,
    /// The number of bytes that are marked lost and not yet retransmitted.
    pub lost: u32,
    /// The number of retransmitted bytes that are estimated to be in the network.
    pub repeated_in_flight: u32,
    /// The number of bytes delivered during the connection, according to the acknowledgements and
    /// SACK blocks of the peer.
    pub delivered: u64,
    /// The number of bytes marked lost during the connection.
    pub lost_in_total: u64,
    /// The latest sample of the delivery rate. `None` if there is no sample; samples require SACK.
    pub delivery_rate: Option<Rate>,
    /// Whether the sample of [`Self::delivery_rate`] was application-limited.
    pub delivery_rate_is_application_limited: bool,
    /// The recent minimum of the round-trip time, if measured.
    pub shortest_round_trip: Option<Duration>,
    /// Whether segments of ours were found to arrive at the peer out of order.
    pub reordering_seen: bool,
    /// The number of bytes that were written and not sent.
    pub unsent: u32,
    /// The number of data bytes in a full segment.
    pub effective_mss: u32,
    /// The size in bytes of the largest packet that the path is estimated to carry.
    pub path_mtu: u32,
    /// Whether both endpoints have agreed on ECN.
    pub ecn: bool,
    /// Whether a packet with an ECN codepoint has been received.
    pub ecn_seen: bool,
    /// The counters of AccECN (RFC 9768), if both endpoints have agreed on it.
    pub accurate_ecn: Option<AccurateEcn>,
    /// Whether data on a SYN was accepted, by the peer or by this endpoint (RFC 7413).
    pub syn_data_accepted: bool,
    /// The shift by which the peer scales the windows that it announces.
    pub send_shift: u8,
    /// The shift by which we scale the windows that we announce.
    pub receive_shift: u8,
}

//! The counters and the status of a connection.

use crate::compact::pack::packed;
use crate::input::validate::predict::MissReason;
use crate::send::busy_time::BusyTime;
use linerate_units::{Duration, Instant, Rate};
use linerate_wire::Segment;

/// The counters of a connection. The counters that predicted segments increment share cache lines:
/// the last ones of `prediction` and the first ones after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub struct Statistics {
    /// Counters of header prediction.
    pub prediction: PredictionStatistics,
    /// Segments received, of every kind; coalesced segments count individually.
    pub segments_received: u64,
    /// Bytes of data received in order.
    pub bytes_received: u64,
    /// Segments sent, of every kind.
    pub segments_sent: u64,
    /// Segments sent without data, SYN, FIN or RST.
    pub pure_acks_sent: u64,
    /// Segments sent with data, retransmissions included; data on a SYN is not counted.
    pub data_segments_sent: u64,
    /// Bytes of data sent, each counted once.
    pub bytes_sent: u64,
    /// Bytes of data that the peer has acknowledged.
    pub bytes_acknowledged: u64,
    /// Acknowledgements skipped because a later one arrived with them.
    pub acks_superseded: u64,
    /// Number of times that the path was found to reorder segments.
    pub reorderings: u64,
    /// Number of segments that were coalesced into preceding ones, so that header prediction does
    /// not see them.
    pub segments_joined: u64,
    /// Segments with retransmitted data.
    pub retransmitted_segments: u64,
    /// Bytes of retransmitted data, counted each time.
    pub bytes_retransmitted: u64,
    /// Losses detected before the retransmission timer expired.
    pub fast_retransmissions: u64,
    /// Number of expiries of the retransmission timer.
    pub retransmission_timeouts: u64,
    /// Tail loss probes (RFC 8985 §7).
    pub tail_probes: u64,
    /// Recoveries found spurious and undone.
    pub spurious_recoveries: u64,
    /// Duplicates of our segments that the peer has reported (RFC 2883).
    pub duplicates_reported: u64,
    /// Number of times that the peer has reneged, that is, discarded data that it had SACKed (RFC
    /// 2018 §8).
    pub reneged: u64,
    /// Path MTU probes: larger segments sent to test the path (RFC 4821).
    pub path_probes: u64,
    /// Path MTU probes that arrived.
    pub path_probes_passed: u64,
    /// Path MTU probes lost because of their size.
    pub path_probes_failed: u64,
    /// Times that segments became smaller because large ones were lost repeatedly, without a
    /// report.
    pub black_holes: u64,
    /// Times that a larger segment size was withdrawn because of losses (RFC 4821 §7.8).
    pub path_sizes_withdrawn: u64,
    /// ICMP reports of a narrow path that had to wait until the quoted segment was found lost (RFC
    /// 5927 §7.2). The four counters of reports saturate.
    pub reports_held: u32,
    /// ICMP reports of a narrow path that reduced the segment size.
    pub reports_applied: u32,
    /// ICMP reports of a narrow path that arriving data have disproved.
    pub reports_disproved: u32,
    /// ICMP reports of a narrow path without effect: the quoted segment was small enough, or
    /// another report waits.
    pub reports_ignored: u32,
    /// Duplicate acknowledgements received.
    pub duplicate_acks: u64,
    /// Segments with data beyond a hole.
    pub out_of_order_segments: u64,
    /// Segments of which all data had arrived before.
    pub duplicate_segments: u64,
    /// Segments dropped because storing them would need too many ranges beyond holes.
    pub reassembly_full: u64,
    /// Segments dropped because the host had no memory for their data.
    pub memory_refusals: u64,
    /// Number of times that data beyond holes was discarded to free its memory.
    pub pruned: u64,
    /// Acknowledgements sent by the delayed-acknowledgement timer.
    pub delayed_ack_timeouts: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Segments sent because the peer's window remained small for too long.
    pub small_window_timeouts: u64,
    /// Keep-alive probes sent.
    pub keep_alive_probes: u64,
    /// Challenge acknowledgements that were due (RFC 5961).
    pub challenge_acks: u64,
    /// Challenge acknowledgements that the host's limit suppressed.
    pub challenges_withheld: u64,
    /// Segments refused for an old timestamp (PAWS).
    pub old_timestamps: u64,
    /// Segments with data whose packet carried a congestion mark (RFC 3168).
    pub marked_segments: u64,
    /// Acknowledgements that echo marks on our data.
    pub mark_echoes: u64,
    /// Packets of ours that arrived with a congestion mark at the peer: by the peer's counter (RFC
    /// 9768), or acknowledged by an ACK that echoes a mark.
    pub marked_deliveries: u64,
    /// Times that an echoed mark has reduced the congestion window.
    pub mark_reductions: u64,
    /// Segments that announced a closed window.
    pub zero_windows_received: u64,
}

impl Statistics {
    /// Returns the number of segments received with data, in order or not.
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

/// The hits of header prediction, and the reasons for its misses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub struct PredictionStatistics {
    misses: [u64; MissReason::ALL.len()],
    /// Segments with data that took the slow path.
    pub(crate) missed_data: u64,
    /// Data segments with a new acknowledgement that took the fast path.
    pub both: u64,
    /// Pure acknowledgements that took the fast path.
    pub acks: u64,
    /// Data segments without a new acknowledgement that took the fast path.
    pub data: u64,
}

packed!(PredictionStatistics { acks, data, both, misses, missed_data });

impl PredictionStatistics {
    /// Returns the number of segments that took the slow path for `reason`.
    #[must_use]
    pub const fn missed(&self, reason: MissReason) -> u64 {
        self.misses[reason as usize]
    }

    /// Returns every reason with the number of segments that it sent to the slow path.
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

/// The state of loss recovery, with Linux's numbers (`tcpi_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecoveryState {
    /// No data is missing.
    Open,
    /// Data is missing, duplicated or reordered, and it is not yet known whether it is lost.
    Disorder,
    /// A congestion mark has reduced the window, and the data that was in flight then is not yet
    /// acknowledged.
    Reduced,
    /// Data is lost; retransmissions are clocked by acknowledgements.
    Recovery,
    /// The retransmission timer has expired.
    Loss,
}

/// The counters of AccECN at both ends (RFC 9768 §3.2). As in Linux, the counters begin with zero
/// instead of the initial values on the wire, and wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccurateEcn {
    /// Packets received with a CE mark.
    pub received: u32,
    /// Bytes of data in packets received with a CE mark.
    pub received_ce_bytes: u32,
    /// Bytes of data received as ECT(0).
    pub received_e0_bytes: u32,
    /// Bytes of data received as ECT(1).
    pub received_e1_bytes: u32,
    /// Packets that the peer has received with a CE mark.
    pub delivered: u32,
    /// Bytes of data in the packets that arrived with a CE mark at the peer, by the peer's options.
    pub delivered_ce_bytes: u32,
    /// Bytes of data that the peer has received as ECT(0), by its options.
    pub delivered_e0_bytes: u32,
    /// Bytes of data that the peer has received as ECT(1), by its options.
    pub delivered_e1_bytes: u32,
    /// Whether the peer's options arrive, and are not zeroed by the path.
    pub receives_options: bool,
    /// Whether options are sent. They are disabled after the loss of the first segment with one.
    pub sends_options: bool,
}

/// The status of a connection, as `TCP_INFO` reports it for a kernel's.
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
/// - `unacked`: unacknowledged bytes less [`Self::unsent`], in segments
/// - `sacked`, `lost`: [`Self::sacked`], [`Self::lost`] in bytes; retransmitted bytes are in flight
///   here
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
/// - `pacing_rate`: [`Self::pacing_rate`]
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
/// Without an equivalent are `max_pacing_rate` (no limit can be set), `reordering` (a degree that
/// RACK does not use), `fackets` (unused in Linux, too), `last_ack_sent` (not stored by Linux) and
/// `rcv_ssthresh` (the window is the room in the buffer; packet overhead is not charged).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Information {
    /// State of loss recovery.
    pub recovery: RecoveryState,
    /// Expiries of the retransmission timer since the peer last acknowledged new data.
    pub consecutive_timeouts: u32,
    /// Number of times that RTO has been doubled.
    pub backoff: u32,
    /// Probes of the peer's closed window since it was last open.
    pub consecutive_probes: u32,
    /// Whether both ends have agreed on timestamps.
    pub timestamps: bool,
    /// Whether both ends have agreed on SACK.
    pub selective_acks: bool,
    /// Whether both ends have agreed on window scaling.
    pub window_scaling: bool,
    /// Estimated payload of the peer's full segments, in bytes.
    pub peer_segment: u32,
    /// The MSS that our SYN announces, by the current knowledge of the path.
    pub announced_mss: u32,
    /// Longest delay of an acknowledgement.
    pub delayed_ack: Duration,
    /// Time when data was last sent.
    pub last_sent: Instant,
    /// Time of the last in-order data, or of the opening if there was none.
    pub last_data_received: Instant,
    /// The time during which there was data to send, and the limits of the sender.
    pub busy: BusyTime,
    /// Time of the last acceptable segment.
    pub last_received: Instant,
    /// Round trip that the receiver has measured to tune its buffer, if any.
    pub receive_round_trip: Option<Duration>,
    /// The most bytes that the application has read in a round trip, if the receive buffer is
    /// tuned.
    pub read_in_a_round_trip: u32,
    /// The pacing rate, if segments are paced.
    pub pacing_rate: Option<Rate>,
    /// SRTT, once measured.
    pub smoothed_round_trip: Option<Duration>,
    /// RTTVAR.
    pub round_trip_variation: Duration,
    /// RTO, backoff included.
    pub retransmission_timeout: Duration,
    /// CWND in bytes.
    pub congestion_window: u32,
    /// SSTHRESH in bytes.
    pub slow_start_threshold: u32,
    /// SND.WND in bytes.
    pub send_window: u32,
    /// RCV.WND in bytes.
    pub receive_window: u32,
    /// Bytes in flight: with SACK, the pipe (the estimate of data in the network), else all that is
    /// unacknowledged.
    pub in_flight: u32,
    /// Bytes that the peer has SACKed.
    pub sacked: u32,
    /// Bytes marked lost and not yet retransmitted.
    pub lost: u32,
    /// Retransmitted bytes estimated to be in the network.
    pub repeated_in_flight: u32,
    /// Bytes delivered during the connection, by acknowledgements.
    pub delivered: u64,
    /// Bytes marked lost during the connection.
    pub lost_in_total: u64,
    /// The recent delivery rate of the path, if measured: with a peer that supports SACK.
    pub delivery_rate: Option<Rate>,
    /// Whether the sample of [`Self::delivery_rate`] was application-limited.
    pub delivery_rate_is_application_limited: bool,
    /// The recent minimum of the round trip.
    pub shortest_round_trip: Option<Duration>,
    /// Whether segments have been seen to arrive out of order.
    pub reordering_seen: bool,
    /// Bytes written and not sent.
    pub unsent: u32,
    /// Payload bytes of a full segment.
    pub effective_mss: u32,
    /// Bytes of the largest packet that the path is estimated to carry.
    pub path_mtu: u32,
    /// Whether both ends have agreed on ECN.
    pub ecn: bool,
    /// Whether an ECN-capable packet has been received.
    pub ecn_seen: bool,
    /// The counters of AccECN (RFC 9768), if both ends have agreed on it.
    pub accurate_ecn: Option<AccurateEcn>,
    /// Whether data on a SYN was accepted, by the peer or by us (RFC 7413).
    pub syn_data_accepted: bool,
    /// Window scale shift of the windows that the peer announces.
    pub send_shift: u8,
    /// Window scale shift of the windows that we announce.
    pub receive_shift: u8,
}

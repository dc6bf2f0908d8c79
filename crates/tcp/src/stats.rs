//! What a connection has counted, and how it stands.

use crate::input::validate::predict::MissReason;
use crate::rest::pack::packed;
use crate::send::busy_time::BusyTime;
use linerate_units::{Duration, Instant, Rate};
use linerate_wire::Segment;

/// Counters of one connection's life. Those that predicted segments move lie together, the last of `prediction` and
/// what follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Statistics {
    /// Header prediction.
    pub prediction: PredictionStatistics,
    /// Segments that came in, of every kind; those that a link has joined to one are counted one by one.
    pub segments_received: u64,
    /// Bytes of data received in order.
    pub bytes_received: u64,
    /// Segments that went out, of every kind.
    pub segments_sent: u64,
    /// Segments without data, SYN, FIN or RST that went out.
    pub pure_acks_sent: u64,
    /// Of these, the ones with data, again or for the first time; what a SYN bears is not counted.
    pub data_segments_sent: u64,
    /// Bytes of data sent, each counted once.
    pub bytes_sent: u64,
    /// Bytes of data that the peer has acknowledged.
    pub bytes_acknowledged: u64,
    /// Acknowledgements for which a later one stood that had come with them.
    pub acks_superseded: u64,
    /// Times that what was delivered showed that the path changes the order of segments.
    pub reorderings: u64,
    /// Segments that a link had joined to the ones before them: header prediction has not seen them as such.
    pub segments_joined: u64,
    /// Segments with something that had been sent before.
    pub retransmitted_segments: u64,
    /// Bytes of data in them, each counted as often as it was sent again.
    pub bytes_retransmitted: u64,
    /// Times that a loss was noticed before the retransmission timer expired.
    pub fast_retransmissions: u64,
    /// Times that the retransmission timer expired.
    pub retransmission_timeouts: u64,
    /// Probes of a tail that nothing followed (RFC 8985 §7).
    pub tail_probes: u64,
    /// Times that a loss turned out to be none, and the window was given back.
    pub spurious_recoveries: u64,
    /// Duplicates of ours that the peer has told of (RFC 2883).
    pub duplicates_told: u64,
    /// Times that the peer had thrown away what it had named (RFC 2018 §8).
    pub reneged: u64,
    /// Segments that were larger than others, to find out whether the path takes them (RFC 4821).
    pub path_probes: u64,
    /// Of these, the ones that arrived.
    pub path_probes_passed: u64,
    /// Of these, the ones that were lost for their size.
    pub path_probes_failed: u64,
    /// Times that segments became smaller because large ones were lost again and again, in silence.
    pub black_holes: u64,
    /// Times that segments became smaller again because too many of the larger ones were lost (RFC 4821
    /// §7.8).
    pub path_sizes_withdrawn: u64,
    /// Reports of a narrow path that had to wait until the segment that they quote was found lost (RFC
    /// 5927 §7.2). This and the following three counters saturate.
    pub reports_held: u32,
    /// Reports of a narrow path that made segments smaller.
    pub reports_applied: u32,
    /// Reports of a narrow path that were disproved by what arrived.
    pub reports_disproved: u32,
    /// Reports of a narrow path without effect: what they quote would have fitted, or another one waits.
    pub reports_ignored: u32,
    /// Duplicate acknowledgements received.
    pub duplicate_acks: u64,
    /// Segments whose data lay beyond a hole.
    pub out_of_order_segments: u64,
    /// Segments whose data had all arrived before.
    pub duplicate_segments: u64,
    /// Segments dropped because too many stretches lie beyond holes.
    pub reassembly_full: u64,
    /// Segments dropped because the host had no memory for their data.
    pub memory_refusals: u64,
    /// Times that data beyond holes was thrown away to give its memory to others.
    pub pruned: u64,
    /// Acknowledgements that the delayed-acknowledgement timer sent.
    pub delayed_ack_timeouts: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Segments sent because a small window had lasted too long.
    pub small_window_timeouts: u64,
    /// Keep-alive probes sent.
    pub keep_alive_probes: u64,
    /// Challenge acknowledgements that were due (RFC 5961).
    pub challenge_acks: u64,
    /// Acknowledgements of that kind that the host withheld, because it had sent too many.
    pub challenges_withheld: u64,
    /// Segments refused for their old timestamp.
    pub old_timestamps: u64,
    /// Segments with data whose packet bore a congestion mark (RFC 3168).
    pub marked_segments: u64,
    /// Acknowledgements that echo such marks on data of ours.
    pub mark_echoes: u64,
    /// Segments that came to the peer marked, as it counts them (RFC 9768); or that such echoes acknowledge.
    pub marked_deliveries: u64,
    /// Times that such an echo has reduced the congestion window.
    pub mark_reductions: u64,
    /// Segments that announced a closed window to us.
    pub zero_windows_received: u64,
}

impl Statistics {
    /// Segments with data that came in, wanted or not.
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
    duplicates_told,
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

/// How often header prediction was right, and why it was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PredictionStatistics {
    misses: [u64; MissReason::ALL.len()],
    /// Segments with data that took the slow path.
    pub(crate) missed_data: u64,
    /// Data segments that acknowledged something as well, answered by the fast path.
    pub both: u64,
    /// Pure acknowledgements answered by the fast path.
    pub acks: u64,
    /// Data segments that acknowledged nothing new, answered by the fast path.
    pub data: u64,
}

packed!(PredictionStatistics { acks, data, both, misses, missed_data });

impl PredictionStatistics {
    /// Segments that took the slow path for this reason.
    #[must_use]
    pub const fn missed(&self, reason: MissReason) -> u64 {
        self.misses[reason as usize]
    }

    /// Every reason with its count.
    pub fn misses(&self) -> impl Iterator<Item = (MissReason, u64)> + '_ {
        MissReason::ALL.into_iter().map(|reason| (reason, self.missed(reason)))
    }

    /// Segments that took the fast path.
    #[must_use]
    pub const fn hits(&self) -> u64 {
        self.acks + self.data + self.both
    }

    pub(crate) fn count_miss(&mut self, reason: MissReason, segment: &Segment<'_>) {
        self.misses[reason as usize] += 1;
        self.missed_data += u64::from(!segment.payload.is_empty());
    }
}

/// What the sender makes of losses at this moment, under Linux's numbers (`tcpi_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecoveryState {
    /// Nothing is missing.
    Open,
    /// Something is missing, or has come twice or in another order; it is not decided which.
    Disorder,
    /// A router's mark has reduced the window, and what was in flight then still is.
    Reduced,
    /// Something is lost, and the segments that arrive keep the pipe filled.
    Recovery,
    /// The retransmission timer has expired.
    Loss,
}

/// What both ends of a connection in the accurate mode of ECN have counted (RFC 9768 §3.2). As Linux's, the
/// counts begin with zero, and not with what the RFC has them begin with on the wire, and come round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccurateEcn {
    /// Packets that came marked.
    pub received: u32,
    /// Bytes of data in them.
    pub received_ce_bytes: u32,
    /// Bytes of data that came as ECT(0).
    pub received_e0_bytes: u32,
    /// Bytes of data that came as ECT(1).
    pub received_e1_bytes: u32,
    /// Packets that came marked to the peer, as it says.
    pub delivered: u32,
    /// Bytes of data in them, as its options say.
    pub delivered_ce_bytes: u32,
    /// Bytes that came to it as ECT(0), as its options say.
    pub delivered_e0_bytes: u32,
    /// Bytes that came to it as ECT(1), as its options say.
    pub delivered_e1_bytes: u32,
    /// Do its options come, and are not zeroed on the way?
    pub hears_options: bool,
    /// Are options sent? Not if the first that bore one was lost.
    pub sends_options: bool,
}

/// How a connection stands at this moment; what `TCP_INFO` tells of a kernel's.
///
/// What of Linux's `struct tcp_info` (`tcpi_` left out) is where, here and in [`Statistics`]:
///
/// | Linux | here |
/// |---|---|
/// | `state` | [`crate::Connection::state`] |
/// | `ca_state` | [`Self::recovery`] |
/// | `retransmits`, `probes`, `backoff` | [`Self::timeouts_in_a_row`], [`Self::probes_in_a_row`], [`Self::backoff`] |
/// | `options` | [`Self::timestamps`] 1, [`Self::selective_acks`] 2, [`Self::window_scaling`] 4, [`Self::ecn`] 8, [`Self::ecn_seen`] 16, [`Self::syn_data_accepted`] 32 |
/// | `snd_wscale`, `rcv_wscale` | [`Self::send_shift`], [`Self::receive_shift`] |
/// | `rto`, `ato` | [`Self::retransmission_timeout`], [`Self::delayed_ack`] |
/// | `snd_mss`, `rcv_mss`, `advmss` | [`Self::effective_mss`], [`Self::peer_segment`], [`Self::announced_mss`] |
/// | `pmtu` | [`Self::path_mtu`] |
/// | `unacked` | what was written and not acknowledged, less [`Self::unsent`], in segments |
/// | `sacked`, `lost` | [`Self::sacked`], [`Self::lost`] in bytes; what is lost and was sent again is in flight here |
/// | `retrans` | [`Self::repeated_in_flight`], in bytes |
/// | `last_data_sent`, `last_data_recv`, `last_ack_recv` | since [`Self::last_sent`], [`Self::last_data_received`], [`Self::last_heard`] |
/// | `busy_time`, `rwnd_limited`, `sndbuf_limited` | [`Self::busy`] |
/// | `rtt`, `rttvar`, `min_rtt` | [`Self::smoothed_round_trip`], [`Self::round_trip_variation`], [`Self::shortest_round_trip`] |
/// | `rcv_rtt`, `rcv_space` | [`Self::receive_round_trip`], [`Self::read_in_a_round_trip`] |
/// | `snd_cwnd`, `snd_ssthresh` | [`Self::congestion_window`], [`Self::slow_start_threshold`], in bytes |
/// | `snd_wnd`, `rcv_wnd` | [`Self::send_window`], [`Self::receive_window`] |
/// | `pacing_rate` | [`Self::pacing_rate`] |
/// | `notsent_bytes` | [`Self::unsent`] |
/// | `delivered`, `delivery_rate`, `delivery_rate_app_limited` | [`Self::delivered`] in bytes, [`Self::delivery_rate`], [`Self::delivery_rate_is_application_limited`] |
/// | `reord_seen` | [`Statistics::reorderings`] |
/// | `bytes_acked`, `bytes_received` | [`Statistics::bytes_acknowledged`], [`Statistics::bytes_received`] |
/// | `bytes_sent`, `bytes_retrans` | [`Statistics::bytes_sent`], which counts each byte once, and [`Statistics::bytes_retransmitted`] |
/// | `segs_out`, `segs_in`, `total_retrans`, `rcv_ooopack` | [`Statistics::segments_sent`], [`Statistics::segments_received`], [`Statistics::retransmitted_segments`], [`Statistics::out_of_order_segments`] |
/// | `data_segs_out`, `data_segs_in` | [`Statistics::data_segments_sent`], [`Statistics::data_segments_received`] |
/// | `delivered_ce` | [`Statistics::marked_deliveries`] |
/// | `received_ce`, `received_ce_bytes`, `received_e0_bytes`, `received_e1_bytes`, `delivered_ce_bytes`, `delivered_e0_bytes`, `delivered_e1_bytes` | [`Self::accurate_ecn`] |
/// | `dsack_dups`, `total_rto` | [`Statistics::duplicates_told`], [`Statistics::retransmission_timeouts`] |
///
/// No meaning here have `max_pacing_rate` (there is no limit to set), `reordering` (a degree that RACK does
/// without), `fackets` (Linux has no use for it any more either), `last_ack_sent` (which Linux does not
/// remember) and `rcv_ssthresh` (the window is what the buffer has room for, and is not reckoned down by
/// what a packet's memory costs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Information {
    /// What the sender makes of losses.
    pub recovery: RecoveryState,
    /// Times that the retransmission timer has expired since the peer last acknowledged something new.
    pub timeouts_in_a_row: u32,
    /// Times that RTO is doubled.
    pub backoff: u32,
    /// Probes of the peer's closed window since it was last open.
    pub probes_in_a_row: u32,
    /// Have both ends agreed on timestamps?
    pub timestamps: bool,
    /// Have both ends agreed on selective acknowledgements?
    pub selective_acks: bool,
    /// Have both ends agreed on scaled windows?
    pub window_scaling: bool,
    /// Payload bytes of what we take for a full segment of the peer.
    pub peer_segment: u32,
    /// The MSS that our SYN has announced, as the path is known now.
    pub announced_mss: u32,
    /// How long an acknowledgement is held back at most.
    pub delayed_ack: Duration,
    /// When data last left.
    pub last_sent: Instant,
    /// When data last came in order; when the connection began, if none has.
    pub last_data_received: Instant,
    /// For how long there was something to send, and what it waited for.
    pub busy: BusyTime,
    /// When the last acceptable segment came.
    pub last_heard: Instant,
    /// The round trip that the receiver measures to tune its buffer, once it has.
    pub receive_round_trip: Option<Duration>,
    /// Bytes that the application has read in the round trip in which it has read most, if the receive
    /// buffer is tuned.
    pub read_in_a_round_trip: u32,
    /// The rate at which segments leave, if they are spread.
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
    /// Bytes sent and not acknowledged; with a peer that sends selective acknowledgements, the pipe: what
    /// is believed to be in the network.
    pub in_flight: u32,
    /// Bytes that the peer has named beyond holes.
    pub sacked: u32,
    /// Bytes believed to be lost and not sent again since.
    pub lost: u32,
    /// Bytes that were sent again and are believed to be in the network.
    pub repeated_in_flight: u32,
    /// Bytes delivered in the connection's life, as far as acknowledgements tell.
    pub delivered: u64,
    /// Bytes found lost in the connection's life.
    pub lost_in_total: u64,
    /// The rate at which the path has delivered of late, where that is measured: with a peer that sends
    /// selective acknowledgements.
    pub delivery_rate: Option<Rate>,
    /// Was the application, and not the path, what limited that rate?
    pub delivery_rate_is_application_limited: bool,
    /// The shortest round trip of late.
    pub shortest_round_trip: Option<Duration>,
    /// Have segments been seen to arrive in another order than they left?
    pub reordering_seen: bool,
    /// Bytes written and not sent.
    pub unsent: u32,
    /// Payload bytes of a full segment.
    pub effective_mss: u32,
    /// Bytes of the largest packet that the path is believed to take.
    pub path_mtu: u32,
    /// Have both ends agreed on explicit congestion notification?
    pub ecn: bool,
    /// Has a packet come whose sender takes part in it?
    pub ecn_seen: bool,
    /// The counts of the accurate mode (RFC 9768), if both ends have agreed on it.
    pub accurate_ecn: Option<AccurateEcn>,
    /// Was data taken that had come with a SYN, by the peer or by us (RFC 7413)?
    pub syn_data_accepted: bool,
    /// Shift of the windows heard.
    pub send_shift: u8,
    /// Shift of the windows announced.
    pub receive_shift: u8,
}

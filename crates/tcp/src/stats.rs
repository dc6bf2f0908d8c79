//! What a connection has counted, and how it stands.

use crate::input::predict::MissReason;
use linerate_units::{Duration, Rate};

/// Counters of one connection's life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments that came in, of every kind.
    pub segments_received: u64,
    /// Bytes of data received in order.
    pub bytes_received: u64,
    /// Segments that went out, of every kind.
    pub segments_sent: u64,
    /// Bytes of data sent, each counted once.
    pub bytes_sent: u64,
    /// Bytes of data that the peer has acknowledged.
    pub bytes_acknowledged: u64,
    /// Segments without data, SYN, FIN or RST that went out.
    pub pure_acks_sent: u64,
    /// Segments with something that had been sent before.
    pub retransmitted_segments: u64,
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
    /// Times that such an echo has reduced the congestion window.
    pub mark_reductions: u64,
    /// Segments that announced a closed window to us.
    pub zero_windows_heard: u64,
    /// Header prediction.
    pub prediction: PredictionStatistics,
}

/// How often header prediction was right, and why it was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PredictionStatistics {
    /// Pure acknowledgements answered by the fast path.
    pub acks: u64,
    /// Data segments answered by the fast path.
    pub data: u64,
    misses: [u64; MissReason::ALL.len()],
}

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
        self.acks + self.data
    }

    pub(crate) fn count_miss(&mut self, reason: MissReason) {
        self.misses[reason as usize] += 1;
    }
}

/// How a connection stands at this moment; what `TCP_INFO` tells of a kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Information {
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
    /// Have both ends agreed on explicit congestion notification?
    pub ecn: bool,
    /// Shift of the windows heard.
    pub send_shift: u8,
    /// Shift of the windows announced.
    pub receive_shift: u8,
}

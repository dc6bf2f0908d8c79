//! The fields of Linux's `struct tcp_info`, computed from [`linerate_tcp::Information`]. Durations
//! such as the RTT are in microseconds, times since an event are in milliseconds, and congestion
//! windows are in segments.

use linerate_tcp::{AccurateEcn, Connection, Information, State};
use linerate_units::{Duration, Instant};

/// Returns the field `name`, given without its prefix `tcpi_`. Returns `None` if this host does not
/// have the field.
pub(super) fn field(connection: &Connection, now: Instant, name: &str) -> Option<u64> {
    let information = connection.information();
    let statistics = connection.statistics();
    let segments = |bytes: u32| u64::from(bytes.div_ceil(information.effective_mss.max(1)));
    let whole_segments = |bytes: u32| u64::from(bytes / information.effective_mss.max(1));
    Some(match name {
        "state" => state(connection.state()),
        "ca_state" => information.recovery as u64,
        "retransmits" => information.consecutive_timeouts.into(),
        "probes" => information.consecutive_probes.into(),
        "backoff" => information.backoff.into(),
        "options" => options(&information),
        "ato" => information.delayed_ack.as_micros(),
        "rcv_mss" => information.peer_segment.into(),
        "advmss" => information.announced_mss.into(),
        "last_data_sent" => now.since(information.last_sent).as_millis(),
        "last_data_recv" => now.since(information.last_data_received).as_millis(),
        "last_ack_recv" => now.since(information.last_received).as_millis(),
        "rcv_rtt" => information.receive_round_trip.map_or(0, Duration::as_micros),
        "rcv_space" => information.read_in_a_round_trip.into(),
        // Without a limit of the pacing rate, Linux reports the largest number, `u64::MAX`.
        "pacing_rate" => {
            information.pacing_rate.map_or(u64::MAX, |rate| rate.bits_per_second() / 8)
        }
        "bytes_sent" => statistics.bytes_sent + statistics.bytes_retransmitted,
        "bytes_retrans" => statistics.bytes_retransmitted,
        "reord_seen" => statistics.reorderings,
        "busy_time" => information.busy.total(now).as_micros(),
        "rwnd_limited" => information.busy.for_peer_window(now).as_micros(),
        "sndbuf_limited" => information.busy.for_send_buffer(now).as_micros(),
        "data_segs_out" => statistics.data_segments_sent,
        "data_segs_in" => statistics.data_segments_received(),
        "total_rto" => statistics.retransmission_timeouts,
        "snd_wscale" => information.send_shift.into(),
        "rcv_wscale" => information.receive_shift.into(),
        "rto" => information.retransmission_timeout.as_micros(),
        "rtt" => information.smoothed_round_trip.map_or(0, Duration::as_micros),
        "rttvar" => information.round_trip_variation.as_micros(),
        "snd_mss" => information.effective_mss.into(),
        "pmtu" => information.path_mtu.into(),
        "snd_cwnd" => whole_segments(information.congestion_window),
        "snd_ssthresh" => match information.slow_start_threshold {
            // A threshold of 2^30 bytes or more is above every possible window: no threshold has
            // been set yet. Linux then reports 0x7fffffff (`TCP_INFINITE_SSTHRESH`) instead of a
            // number of segments.
            threshold if threshold >= 1 << 30 => 0x7fff_ffff,
            threshold => whole_segments(threshold),
        },
        "unacked" => {
            let unacknowledged =
                u32::try_from(connection.unacknowledged_bytes()).unwrap_or(u32::MAX);
            segments(unacknowledged.saturating_sub(information.unsent))
        }
        "sacked" => segments(information.sacked),
        "lost" => segments(information.lost),
        "retrans" => segments(information.repeated_in_flight),
        // The number of delivered segments includes the SYN, as in Linux.
        "delivered" => {
            1 + information.delivered.div_ceil(u64::from(information.effective_mss.max(1)))
        }
        "delivery_rate" => information.delivery_rate.map_or(0, |rate| rate.bits_per_second() / 8),
        "delivery_rate_app_limited" => information.delivery_rate_is_application_limited.into(),
        "min_rtt" => information.shortest_round_trip.map_or(0, Duration::as_micros),
        "dsack_dups" => statistics.duplicates_reported,
        "notsent_bytes" => information.unsent.into(),
        "snd_wnd" => information.send_window.into(),
        "rcv_wnd" => information.receive_window.into(),
        "total_retrans" => statistics.retransmitted_segments,
        "bytes_acked" => statistics.bytes_acknowledged,
        "bytes_received" => statistics.bytes_received,
        "segs_out" => statistics.segments_sent,
        "segs_in" => statistics.segments_received,
        "rcv_ooopack" => statistics.out_of_order_segments,
        "delivered_ce" => statistics.marked_deliveries,
        name => return accurate_ecn(&information, name),
    })
}

/// Returns a counter of accurate ECN, if the connection has negotiated it.
fn accurate_ecn(information: &Information, name: &str) -> Option<u64> {
    let counted =
        |count: fn(&AccurateEcn) -> u32| information.accurate_ecn.as_ref().map_or(0, count).into();
    Some(match name {
        "received_ce" => counted(|counts| counts.received),
        "received_ce_bytes" => counted(|counts| counts.received_ce_bytes),
        "received_e0_bytes" => counted(|counts| counts.received_e0_bytes),
        "received_e1_bytes" => counted(|counts| counts.received_e1_bytes),
        "delivered_ce_bytes" => counted(|counts| counts.delivered_ce_bytes),
        "delivered_e0_bytes" => counted(|counts| counts.delivered_e0_bytes),
        "delivered_e1_bytes" => counted(|counts| counts.delivered_e1_bytes),
        _ => return None,
    })
}

/// Returns the value of `tcpi_options`, a bit for each negotiated option.
fn options(information: &Information) -> u64 {
    let options = [
        information.timestamps,
        information.selective_acks,
        information.window_scaling,
        information.ecn,
    ];
    let bits = options.into_iter().rev().fold(0, |bits, is_on| bits << 1 | u64::from(is_on));
    bits | u64::from(information.ecn_seen) << 4 | u64::from(information.syn_data_accepted) << 5
}

/// Returns the number of a state in <netinet/tcp.h>.
const fn state(state: State) -> u64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

//! The variables of a TCP connection at one moment, from the kernel's TCP or from linerate's.

use crate::socket::Stream;
use linerate_link::MonotonicClock;
use linerate_link::kernel_socket::unread_bytes;
use linerate_link::kernel_tcp::{self, TcpInfo};
use linerate_units::{Clock, Duration};
use std::net::TcpStream;

/// The variables of a TCP connection at one moment. `None` means that the TCP implementation does
/// not provide the value. Counters and times are totals since the connection was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// Maximum number of data bytes in a segment to the peer.
    pub(super) segment: Option<u64>,
    /// The congestion window in segments.
    pub(super) congestion_window: Option<u64>,
    /// The slow start threshold in segments, which is a very large number before the first loss.
    pub(super) slow_start_threshold: Option<u64>,
    /// Number of segments in flight: sent, but neither acknowledged nor considered lost.
    pub(super) in_flight: Option<u64>,
    /// Number of bytes that the application has written and the peer has not acknowledged.
    pub(super) unacknowledged: Option<u64>,
    /// Number of bytes that the application has written and TCP has not sent yet.
    pub(super) unsent: Option<u64>,
    /// Number of received bytes that the application has not read yet.
    pub(super) unread: Option<u64>,
    /// Kernel memory of the send queue in bytes, including overhead; `None` for linerate.
    pub(super) send_memory: Option<u64>,
    /// Kernel memory of the receive queue in bytes, including overhead; `None` for linerate.
    pub(super) receive_memory: Option<u64>,
    /// Number of received packets that the socket dropped. linerate's TCP counts only packets that
    /// it dropped for lack of memory. The kernel also counts duplicates.
    pub(super) drops: Option<u64>,
    /// The window that the peer advertises, in bytes.
    pub(super) peer_window: Option<u64>,
    /// The smoothed round-trip time in microseconds.
    pub(super) round_trip: Option<u64>,
    /// The shortest measured round-trip time in microseconds; `None` before the first measurement.
    pub(super) shortest_round_trip: Option<u64>,
    /// Time in which data was unacknowledged, in microseconds.
    pub(super) busy: Option<u64>,
    /// Time in which the peer's window limited the sender, in microseconds.
    pub(super) receive_window_limited: Option<u64>,
    /// Time in which a full send buffer limited the sender, in microseconds.
    pub(super) send_buffer_limited: Option<u64>,
    /// Number of data segments sent, including retransmissions.
    pub(super) data_segments_sent: Option<u64>,
    /// Number of retransmitted segments.
    pub(super) retransmitted: Option<u64>,
    /// Number of bytes that the peer has acknowledged.
    pub(super) acknowledged: Option<u64>,
    /// Number of expirations of the retransmission timer.
    pub(super) timeouts: Option<u64>,
    /// The path MTU in bytes.
    pub(super) path_mtu: Option<u64>,
    /// Shift count of the windows that the peer advertises (RFC 7323 §2).
    pub(super) send_window_scale: Option<u64>,
    /// Shift count of the windows that this end advertises (RFC 7323 §2).
    pub(super) receive_window_scale: Option<u64>,
    /// The delivery rate in bytes per second that TCP measured most recently.
    pub(super) delivery_rate: Option<u64>,
}

impl Reading {
    /// Reads the current variables of `stream`.
    pub(super) fn of(stream: &Stream) -> Self {
        match stream {
            Stream::Kernel(stream) => Self::of_the_kernel(stream),
            Stream::Own(stream, _) => Self::of_linerate(stream).unwrap_or_default(),
        }
    }

    fn of_the_kernel(stream: &TcpStream) -> Self {
        let info = TcpInfo::of(stream).ok();
        let field = |name| info.as_ref().and_then(|info| info.field(name));
        let memory = kernel_tcp::memory(stream).ok();
        let in_flight = || {
            let sent = field("unacked")? + field("retrans")?;
            Some(sent.saturating_sub(field("sacked")? + field("lost")?))
        };
        Self {
            segment: field("snd_mss"),
            congestion_window: field("snd_cwnd"),
            slow_start_threshold: field("snd_ssthresh"),
            in_flight: in_flight(),
            unacknowledged: kernel_tcp::unacknowledged_bytes(stream).ok(),
            unsent: field("notsent_bytes"),
            unread: unread_bytes(stream).ok(),
            send_memory: memory.map(|memory| memory.send_queue),
            receive_memory: memory.map(|memory| memory.receive_queue),
            drops: memory.map(|memory| memory.drops),
            peer_window: field("snd_wnd"),
            round_trip: field("rtt"),
            // The kernel reports `u32::MAX` until it has measured a round-trip time.
            shortest_round_trip: field("min_rtt").filter(|&micros| micros != u64::from(u32::MAX)),
            busy: field("busy_time"),
            receive_window_limited: field("rwnd_limited"),
            send_buffer_limited: field("sndbuf_limited"),
            data_segments_sent: field("data_segs_out"),
            retransmitted: field("total_retrans"),
            acknowledged: field("bytes_acked"),
            timeouts: field("total_rto"),
            path_mtu: field("pmtu"),
            send_window_scale: field("snd_wscale"),
            receive_window_scale: field("rcv_wscale"),
            delivery_rate: field("delivery_rate"),
        }
    }

    fn of_linerate(stream: &linerate_sockets::TcpStream) -> Option<Self> {
        let (state, counted) = (stream.tcp_info().ok()?, stream.statistics().ok()?);
        let now = MonotonicClock.now();
        let segment = u64::from(state.effective_mss.max(1));
        let busy = |time: Duration| Some(time.as_micros());
        Some(Self {
            segment: Some(segment),
            congestion_window: Some(u64::from(state.congestion_window) / segment),
            slow_start_threshold: Some(u64::from(state.slow_start_threshold) / segment),
            in_flight: Some(u64::from(state.in_flight) / segment),
            unacknowledged: stream.unacknowledged_bytes().ok().map(|bytes| bytes as u64),
            unsent: Some(state.unsent.into()),
            unread: stream.readable_bytes().ok().map(|bytes| bytes as u64),
            send_memory: None,
            receive_memory: None,
            drops: Some(counted.memory_refusals + counted.reassembly_full),
            peer_window: Some(state.send_window.into()),
            round_trip: state.smoothed_round_trip.map(Duration::as_micros),
            shortest_round_trip: state.shortest_round_trip.map(Duration::as_micros),
            busy: busy(state.busy.total(now)),
            receive_window_limited: busy(state.busy.for_peer_window(now)),
            send_buffer_limited: busy(state.busy.for_send_buffer(now)),
            data_segments_sent: Some(counted.data_segments_sent),
            retransmitted: Some(counted.retransmitted_segments),
            acknowledged: Some(counted.bytes_acknowledged),
            timeouts: Some(counted.retransmission_timeouts),
            path_mtu: Some(state.path_mtu.into()),
            send_window_scale: Some(state.send_shift.into()),
            receive_window_scale: Some(state.receive_shift.into()),
            delivery_rate: state.delivery_rate.map(|rate| rate.bits_per_second() / 8),
        })
    }
}

//! Methods that only observe a connection: they return its state, its counters and its status.

use crate::congestion::RateSample;
use crate::receive::saturated;
use crate::send::loss::R1;
use crate::{Connection, Error, Information, SoftError, State, Statistics};

/// # Observation
impl Connection {
    /// Returns the state of the connection.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Whether the connection is closed and has no reset left to send, so that the host can drop
    /// it.
    #[must_use]
    pub const fn is_released(&self) -> bool {
        matches!(self.state, State::Closed) && self.reset_due.is_none()
    }

    /// Returns the reason why the connection has ended, unless it was closed normally.
    #[must_use]
    pub const fn error(&self) -> Option<Error> {
        self.error
    }

    /// Returns the problem that may lead to the end of the connection, if there is one at present.
    /// An acknowledgement of new data clears it.
    #[must_use]
    pub const fn soft_error(&self) -> Option<SoftError> {
        if self.sender.expiries >= R1 {
            Some(SoftError::Silent)
        } else if self.sender.unreachable {
            Some(SoftError::Unreachable)
        } else {
            None
        }
    }

    /// Returns the number of bytes that can be read now.
    #[must_use]
    pub const fn readable_bytes(&self) -> usize {
        self.receiver.buffer.len()
    }

    /// Returns the number of bytes that can be written now. [`crate::Event::Writable`] is reported
    /// only after a write that did not fit.
    #[must_use]
    pub fn writable_bytes(&self) -> usize {
        if !self.state.may_write() || self.sender.fin() {
            return 0;
        }
        let free = self.sender.buffer.free();
        self.unsent_low_water().map_or(free, |low| free.min(self.room_below(low)))
    }

    /// Returns the number of bytes that the application has written and the peer has not
    /// acknowledged.
    #[must_use]
    pub const fn unacknowledged_bytes(&self) -> usize {
        self.sender.buffer.len()
    }

    /// Whether no more data will arrive, although received data may still be unread.
    #[must_use]
    #[inline]
    pub fn is_at_end_of_stream(&self) -> bool {
        let closed_by_peer = matches!(
            self.state,
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait
        );
        closed_by_peer || self.receiver.shut || self.state == State::Closed
    }

    /// Whether the peer has opened the connection.
    #[must_use]
    pub const fn is_passive(&self) -> bool {
        !self.active
    }

    /// Returns the counters of the connection.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the status of the connection.
    #[must_use]
    pub fn information(&self) -> Information {
        Information {
            recovery: self.recovery_state(),
            consecutive_timeouts: self.sender.expiries,
            backoff: self.sender.rtt.backoff(),
            consecutive_probes: self.sender.probes,
            timestamps: self.timestamps.on,
            selective_acks: self.agreement.selective_acks,
            window_scaling: self.agreement.scaling,
            peer_segment: self.receiver.largest_segment,
            announced_mss: self.path.mss(),
            delayed_ack: self.config.delayed_ack,
            last_sent: self.sender.last_sent,
            last_data_received: self.receiver.last_data,
            last_received: self.last_received,
            busy: self.busy_time(),
            receive_round_trip: self.receiver.autotune.round_trip(),
            read_in_a_round_trip: self.receiver.autotune.best(),
            pacing_rate: self.pacing_rate(),
            max_pacing_rate: self.max_pacing_rate(),
            smoothed_round_trip: self.sender.rtt.smoothed(),
            round_trip_variation: self.sender.rtt.variation(),
            retransmission_timeout: self.sender.rtt.timeout(&self.config.rto),
            congestion_window: self.sender.congestion.window().cwnd(),
            slow_start_threshold: self.sender.congestion.window().ssthresh(),
            send_window: self.snd.wnd,
            receive_window: self.rcv.window(),
            in_flight: self.in_flight(),
            sacked: self.sender.scoreboard.sacked(),
            lost: self.sender.scoreboard.lost(),
            repeated_in_flight: self.repeated_in_flight(),
            delivered: self.sender.account.delivered(),
            lost_in_total: self.sender.account.lost(),
            delivery_rate: self.sender.account.latest.map(RateSample::rate),
            delivery_rate_is_application_limited: self
                .sender
                .account
                .latest
                .is_some_and(|sample| sample.application_limited),
            shortest_round_trip: self.sender.rtt.shortest(),
            reordering_seen: self.sender.rack.reordering_seen,
            unsent: (self.sender.buffer.end() - self.snd.nxt.earlier(self.sender.buffer.end())),
            effective_mss: self.full_segment(),
            path_mtu: saturated(self.path_mtu()),
            ecn: self.ecn.is_on(),
            ecn_seen: self.ecn.is_seen(),
            accurate_ecn: self.accurate_ecn(),
            syn_data_accepted: self.is_syn_data_accepted(),
            send_shift: self.agreement.send_shift,
            receive_shift: self.agreement.receive_shift,
        }
    }
}

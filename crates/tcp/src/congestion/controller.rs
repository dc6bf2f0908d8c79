//! The interface of a congestion control algorithm: the events that it handles, and the window and
//! rate that it sets.

use super::Window;
use crate::compact::pack::packed;
use alloc::boxed::Box;
use core::fmt;
use linerate_units::{Bytes, Duration, Instant, Rate};
use linerate_wire::SeqNum;

/// The response to three duplicate ACKs, after the fast retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastRecovery {
    /// Slow start without fast recovery, as in 4.3BSD Tahoe.
    None,
    /// Fast recovery until the first ACK of new data (RFC 5681 §3.2).
    UntilNewAck,
    /// Fast recovery until all data that was in flight is acknowledged (RFC 6582).
    UntilRecovered,
}

/// An ACK of new data, as input to congestion control. Amounts are in bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Acknowledged {
    /// The number of newly acknowledged bytes.
    pub bytes: u32,
    /// The number of coalesced ACKs that this ACK represents, or one.
    pub count: u32,
    /// The acknowledgement number, SEG.ACK.
    pub number: SeqNum,
    /// SND.MAX: the number after the highest sequence number ever sent.
    pub sent: SeqNum,
    /// The time when the ACK arrived.
    pub now: Instant,
    /// SRTT, the smoothed round-trip time, if measured.
    pub smoothed: Option<Duration>,
    /// The round-trip time that this ACK has measured, if any.
    pub round_trip: Option<Duration>,
    /// The number of bytes that this ACK has revealed as lost.
    pub lost: u32,
    /// The number of bytes in flight after this ACK.
    pub in_flight: u32,
    /// A sample of the delivery rate. Available only if the peer supports SACK.
    pub sample: Option<RateSample>,
}

impl Acknowledged {
    /// Returns the number of newly acknowledged bytes, but at most `limit` for each coalesced ACK
    /// (RFC 3465).
    #[must_use]
    pub fn bytes_within(&self, limit: u32) -> u32 {
        self.bytes.min(limit.saturating_mul(self.count))
    }
}

/// A range of data that was sent together and later found lost, as input to congestion control.
/// Amounts are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The number of lost bytes in the range.
    pub bytes: u32,
    /// The number of bytes in flight when the range was sent, including the range (P.tx_in_flight).
    pub in_flight_at_send: u32,
    /// The number of bytes found lost since the range was sent, including the range.
    pub since_sent: u64,
    /// Whether the sender was application-limited when the range was sent.
    pub application_limited: bool,
}

/// A sample of the delivery rate, measured over the time from the sending of a segment to its ACK
/// (draft-ietf-ccwg-bbr §4.1). Amounts are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSample {
    /// The number of bytes delivered since the connection was opened (C.delivered).
    pub delivered: u64,
    /// The number of bytes that had been delivered when the segment was sent (RS.prior_delivered).
    pub prior_delivered: u64,
    /// The length of the sampling interval (RS.interval).
    pub interval: Duration,
    /// Whether the sender was application-limited when the segment was sent (RS.is_app_limited).
    pub application_limited: bool,
    /// The number of bytes in flight when the segment was sent (RS.tx_in_flight).
    pub in_flight_at_send: u32,
    /// The number of bytes found lost during the interval (RS.lost).
    pub lost: u64,
}

packed!(RateSample {
    delivered,
    prior_delivered,
    interval,
    application_limited,
    in_flight_at_send,
    lost
});

impl RateSample {
    /// Returns the delivery rate (RS.delivery_rate).
    #[must_use]
    pub fn rate(self) -> Rate {
        Rate::of(Bytes::new(self.delivered - self.prior_delivered), self.interval)
    }
}

/// A congestion control algorithm. Windows and amounts are in bytes. The argument `flight` is the
/// amount of unacknowledged data at the time of the event.
///
/// A controller sets the congestion window. It neither detects losses nor retransmits. The
/// connection does both, and reports losses to the controller.
/// [`CustomCongestion`](super::CustomCongestion) registers a controller of another crate.
pub trait Controller: fmt::Debug + Send + Sync {
    /// Returns the congestion window.
    fn window(&self) -> &Window;

    /// Returns the congestion window as a mutable reference, so that the connection can change it.
    fn window_mut(&mut self) -> &mut Window;

    /// Returns the response to three duplicate ACKs.
    fn fast_recovery(&self) -> FastRecovery;

    /// Returns the pacing rate. If it is `None` and segments are paced, the connection derives a
    /// rate from the window.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Handles an ACK, both in recovery and outside it. Called only if the peer supports SACK. For
    /// each ACK, [`on_lost`](Self::on_lost) is called before this method, and
    /// [`on_progress`](Self::on_progress) after it.
    fn on_every_acknowledgement(&mut self, _ack: &Acknowledged) {}

    /// Handles the detection of lost data, both in recovery and outside it. Called only if the peer
    /// supports SACK.
    fn on_lost(&mut self, _lost: &Lost) {}

    /// Whether the controller sets the window itself during recovery. Otherwise proportional rate
    /// reduction sets it (RFC 6937).
    fn governs_recovery(&self) -> bool {
        false
    }

    /// Handles the end of recovery. Called only if the controller [governs
    /// recovery](Self::governs_recovery).
    fn on_recovered(&mut self) {}

    /// Handles a loss that has proved spurious. Called only for a controller that [governs
    /// recovery](Self::governs_recovery). For other controllers, the connection restores the
    /// window.
    fn on_spurious_loss(&mut self) {}

    /// Handles an ACK of new data outside recovery. `limited` is true if the sender was
    /// cwnd-limited.
    #[inline]
    fn on_progress(&mut self, ack: &Acknowledged, limited: bool) {
        if limited {
            self.on_acknowledged(ack);
        } else {
            self.on_acknowledged_unused(ack);
        }
    }

    /// Handles an ACK of new data outside recovery, while the sender was cwnd-limited.
    fn on_acknowledged(&mut self, ack: &Acknowledged) {
        self.window_mut().grow(ack);
    }

    /// Handles an ACK of new data outside recovery, while the application or the peer's window
    /// limited the sender. The congestion window must not grow (RFC 7661 §4.1).
    fn on_acknowledged_unused(&mut self, _ack: &Acknowledged) {}

    /// Handles the end of an idle period, in which nothing was in flight for the time `idle`.
    fn on_idle(&mut self, _idle: Duration) {}

    /// Reduces the window after an idle time longer than the retransmission timeout (RFC 5681
    /// §4.1).
    fn forget_after_idle(&mut self) {
        self.window_mut().forget_after_idle();
    }

    /// Handles the start of recovery without a timeout, by reducing SSTHRESH. During recovery, CWND
    /// is then reduced to SSTHRESH.
    fn on_loss(&mut self, flight: u32);

    /// Handles a congestion mark, by reducing the window as for a loss (RFC 3168 §6.1.2). RFC 8511
    /// would permit a smaller reduction, but like Linux, the built-in controllers do not use it.
    fn on_mark(&mut self, flight: u32) {
        self.window_mut().reduce_to(flight / 2);
    }

    /// Reduces the window to one segment, because the SYN was lost several times or the
    /// retransmission timer has expired again.
    fn restart(&mut self) {
        self.window_mut().restart();
    }

    /// Handles the expiry of the retransmission timer, by a slow start from one segment (RFC 5681
    /// §3.1).
    fn on_timeout(&mut self, flight: u32) {
        self.window_mut().halve_threshold(flight);
        self.window_mut().restart();
    }

    /// Returns a copy of the controller, which the connection keeps during recovery to undo a
    /// spurious reduction.
    fn boxed_clone(&self) -> Box<dyn Controller>;
}

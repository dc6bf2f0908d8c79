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
    /// The number of ACKs that the link has coalesced to this one; one if it has coalesced none.
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
    /// Returns the number of newly acknowledged bytes, but at most `limit` for each of the
    /// [`count`](Self::count) coalesced ACKs (RFC 3465).
    #[must_use]
    pub fn bytes_within(&self, limit: u32) -> u32 {
        self.bytes.min(limit.saturating_mul(self.count))
    }
}

/// A range of data that was sent at one time and later found lost, as input to congestion control.
/// Amounts are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The number of lost bytes in the range.
    pub bytes: u32,
    /// The number of bytes in flight when the range was sent, including the range (P.tx_in_flight).
    pub in_flight_at_send: u32,
    /// The number of bytes found lost from the time when the range was sent until now, including
    /// the range.
    pub since_sent: u64,
    /// Whether the sender was application-limited when the range was sent.
    pub application_limited: bool,
}

/// A sample of the delivery rate. It is measured over the time from the sending of a segment to the
/// ACK of that segment (draft-ietf-ccwg-bbr §4.1). Amounts are in bytes.
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

    /// Returns a mutable reference to the congestion window, by which the connection changes it.
    fn window_mut(&mut self) -> &mut Window;

    /// Returns the response to three duplicate ACKs.
    fn fast_recovery(&self) -> FastRecovery;

    /// Returns the pacing rate. `None` means that the controller requests no rate. If segments are
    /// paced nevertheless, the connection derives the rate from the window.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Handles an ACK, whether recovery is in progress or not. Called only if the peer supports
    /// SACK. For an ACK, [`on_lost`](Self::on_lost) is called before this method, and
    /// [`on_progress`](Self::on_progress) after it.
    fn on_every_acknowledgement(&mut self, _ack: &Acknowledged) {}

    /// Handles the detection of lost data, whether recovery is in progress or not. Called only if
    /// the peer supports SACK.
    fn on_lost(&mut self, _lost: &Lost) {}

    /// Whether the controller sets the window itself during recovery. If false, proportional rate
    /// reduction sets the window during recovery (RFC 6937).
    fn governs_recovery(&self) -> bool {
        false
    }

    /// Handles the successful end of recovery, when all losses are repaired. Called only if the
    /// controller [governs recovery](Self::governs_recovery).
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

    /// Handles the start of a recovery that no timeout has caused, by reducing SSTHRESH. During
    /// that recovery, the connection reduces CWND to SSTHRESH.
    fn on_loss(&mut self, flight: u32);

    /// Handles a congestion mark, by reducing the window as after a loss (RFC 3168 §6.1.2). RFC
    /// 8511 permits a smaller reduction after a mark than after a loss. The built-in controllers,
    /// like those of Linux, do not make use of this permission.
    fn on_mark(&mut self, flight: u32) {
        self.window_mut().reduce_to(flight / 2);
    }

    /// Reduces the window to one segment. Called in two cases: the SYN was lost several times, or
    /// data that was retransmitted after a timeout has timed out again.
    fn restart(&mut self) {
        self.window_mut().restart();
    }

    /// Handles the expiry of the retransmission timer, by a slow start from one segment (RFC 5681
    /// §3.1).
    fn on_timeout(&mut self, flight: u32) {
        self.window_mut().halve_threshold(flight);
        self.window_mut().restart();
    }

    /// Returns a copy of the controller. The connection keeps the copy during recovery, and
    /// restores it if the loss proves spurious.
    fn boxed_clone(&self) -> Box<dyn Controller>;
}

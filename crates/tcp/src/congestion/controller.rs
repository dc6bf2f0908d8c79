//! The interface of a congestion control: the events that it handles, and the window and rate that
//! it sets.

use super::Window;
use crate::compact::pack::packed;
use alloc::boxed::Box;
use core::fmt;
use linerate_units::{Bytes, Duration, Instant, Rate};
use linerate_wire::SeqNum;

/// The response to three duplicate ACKs, in addition to the fast retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastRecovery {
    /// Slow start, as in 4.3BSD Tahoe.
    None,
    /// Fast recovery until the first ACK of new data (RFC 5681 §3.2).
    UntilNewAck,
    /// Fast recovery until all data that was in flight is acknowledged (RFC 6582).
    UntilRecovered,
}

/// An ACK of new data. Amounts are bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Acknowledged {
    /// Newly acknowledged bytes.
    pub bytes: u32,
    /// The number of coalesced ACKs that this one represents; one if none were coalesced.
    pub count: u32,
    /// SEG.ACK.
    pub number: SeqNum,
    /// SND.MAX: one beyond the highest sequence number ever sent.
    pub sent: SeqNum,
    /// The time of arrival.
    pub now: Instant,
    /// SRTT, once there is a sample.
    pub smoothed: Option<Duration>,
    /// The round-trip time sampled by this ACK, if any.
    pub round_trip: Option<Duration>,
    /// Bytes detected as lost by this ACK.
    pub lost: u32,
    /// Bytes in flight after this ACK.
    pub in_flight: u32,
    /// A delivery-rate sample. Only peers that send selective ACKs provide it.
    pub sample: Option<RateSample>,
}

impl Acknowledged {
    /// Returns the newly acknowledged bytes, of which each ACK counts for at most `limit`
    /// (RFC 3465).
    #[must_use]
    pub fn bytes_within(&self, limit: u32) -> u32 {
        self.bytes.min(limit.saturating_mul(self.count))
    }
}

/// Data that was sent together and detected as lost. Amounts are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Lost bytes.
    pub bytes: u32,
    /// Bytes in flight when the data was sent, including the data (P.tx_in_flight).
    pub in_flight_at_send: u32,
    /// Bytes detected as lost since the data was sent, including the data.
    pub since_sent: u64,
    /// Was the sender application-limited when the data was sent?
    pub application_limited: bool,
}

/// A sample of the delivery rate, from the sending of a segment to its ACK (draft-ietf-ccwg-bbr
/// §4.1). Amounts are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSample {
    /// Bytes delivered since the connection was opened (C.delivered).
    pub delivered: u64,
    /// Bytes that had been delivered when the segment was sent (RS.prior_delivered).
    pub prior_delivered: u64,
    /// The length of the sampling interval (RS.interval).
    pub interval: Duration,
    /// Was the sender application-limited (RS.is_app_limited)?
    pub application_limited: bool,
    /// Bytes in flight when the segment was sent (RS.tx_in_flight).
    pub in_flight_at_send: u32,
    /// Bytes detected as lost during the interval (RS.lost).
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

/// A congestion control. Windows and amounts are bytes; `flight` is the data sent and not
/// acknowledged at the time of the event.
///
/// A controller neither detects losses nor retransmits: the connection reports losses to it, and it
/// sets the congestion window. [`CustomCongestion`](super::CustomCongestion) registers a controller
/// of another crate.
pub trait Controller: fmt::Debug + Send + Sync {
    /// Returns the congestion window.
    fn window(&self) -> &Window;

    /// Returns the congestion window for changes.
    fn window_mut(&mut self) -> &mut Window;

    /// Returns the response to three duplicate ACKs.
    fn fast_recovery(&self) -> FastRecovery;

    /// Returns the pacing rate. With `None`, the connection derives a rate from the window, if it
    /// paces.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Handles an ACK of new data, in recovery or not. Called before the other functions.
    fn on_every_acknowledgement(&mut self, _ack: &Acknowledged) {}

    /// Handles the detection of lost data, in recovery or not.
    fn on_lost(&mut self, _lost: &Lost) {}

    /// Does the controller set the window during recovery? Otherwise proportional rate reduction
    /// sets it (RFC 6937).
    fn governs_recovery(&self) -> bool {
        false
    }

    /// Handles the end of recovery. Called only if the controller [governs
    /// recovery](Self::governs_recovery).
    fn on_recovered(&mut self) {}

    /// Handles a loss that turned out to be spurious. Called only for a controller that [governs
    /// recovery](Self::governs_recovery); otherwise the connection restores the window.
    fn on_spurious_loss(&mut self) {}

    /// Handles an ACK of new data outside recovery. `limited`: was the sender cwnd-limited?
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
    /// limited the sender. The window must not grow (RFC 7661 §4.1).
    fn on_acknowledged_unused(&mut self, _ack: &Acknowledged) {}

    /// Handles new output after `idle` time with nothing in flight.
    fn on_idle(&mut self, _idle: Duration) {}

    /// Resets the window after nothing was sent for longer than the retransmission timeout (RFC
    /// 5681 §4.1).
    fn forget_after_idle(&mut self) {
        self.window_mut().forget_after_idle();
    }

    /// Handles the start of recovery without a timeout: reduces SSTHRESH. CWND follows during
    /// recovery.
    fn on_loss(&mut self, flight: u32);

    /// Handles a congestion mark (RFC 3168 §6.1.2): reduces the window as for a loss. RFC 8511
    /// would permit a smaller reduction; like Linux, the built-in controllers do not use it.
    fn on_mark(&mut self, flight: u32) {
        self.window_mut().reduce_to(flight / 2);
    }

    /// Reduces the window to one segment, because the path is unknown or the retransmission timer
    /// has expired again.
    fn restart(&mut self) {
        self.window_mut().restart();
    }

    /// Handles the expiry of the retransmission timer (RFC 5681 §3.1): one segment, and slow start.
    fn on_timeout(&mut self, flight: u32) {
        self.window_mut().halve_threshold(flight);
        self.window_mut().restart();
    }

    /// Returns a copy. The connection keeps one during recovery, to undo a spurious reduction.
    fn boxed_clone(&self) -> Box<dyn Controller>;
}

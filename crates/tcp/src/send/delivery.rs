//! What has arrived: the news of one acknowledgement, and the rate at which the path delivers (the
//! delivery-rate estimation of draft-ietf-ccwg-bbr §4.1).

use super::scoreboard::Stretch;
use crate::congestion::{Lost, RateSample};
use crate::rest::pack::packed;
use linerate_units::{Duration, Instant};
use linerate_wire::SeqNum;

/// How things stood when a segment left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Departure {
    /// When it left.
    pub(crate) sent: Instant,
    /// Which departure it was: a clock is too coarse to tell, where a host sends a whole burst at one time.
    pub(crate) order: u64,
    /// Had it, or a part of it, been sent before? Then its acknowledgement may mean the earlier copy.
    pub(crate) again: bool,
    /// Bytes delivered until then.
    delivered: u64,
    /// When the last of them was.
    delivered_at: Instant,
    /// When the segment left that began the flight of which this is a part.
    first_sent: Instant,
    /// The application had nothing more to send.
    application_limited: bool,
    /// What was in flight then, the segment counted.
    in_flight: u32,
    /// Bytes found lost until then.
    lost: u64,
}

impl Departure {
    /// Did both leave at the same time, with no acknowledgement in between?
    pub(crate) fn is_same_burst(&self, other: &Self) -> bool {
        self.sent == other.sent && self.delivered == other.delivered
    }

    /// `length` bytes more have left with it.
    pub(crate) const fn grow(&mut self, length: u32) {
        self.in_flight = self.in_flight.saturating_add(length);
    }

    /// Did a segment that left like this, and ends at `end`, leave after another? Those of one departure
    /// are ordered by their numbers (RFC 8985 §6.2, `RACK_sent_after`).
    pub(crate) fn is_after(&self, end: SeqNum, other: u64, other_end: SeqNum) -> bool {
        self.order > other || (self.order == other && end.after(other_end))
    }
}

/// The newest of the segments that an acknowledgement tells of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    pub(crate) departure: Departure,
    pub(crate) end: SeqNum,
}

/// What one acknowledgement says has arrived that was not known to have.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// Bytes, acknowledged in order or beyond holes.
    pub(crate) bytes: u32,
    /// The segment among them that left last.
    pub(crate) newest: Option<Newest>,
    /// When the one left first that was never sent again: its round trip holds the peer's delay.
    pub(crate) oldest_original: Option<Instant>,
    /// The first number of what was never sent again.
    pub(crate) first_original: Option<SeqNum>,
    /// The end of the highest segment that had arrived before (RACK.fack).
    forward: SeqNum,
    /// Something that was sent once has arrived after something that was sent later.
    pub(crate) reordered: bool,
}

impl Delivery {
    /// Nothing yet; `forward` is the end of the highest segment that has ever arrived.
    pub(crate) const fn new(forward: SeqNum) -> Self {
        Self {
            bytes: 0,
            newest: None,
            oldest_original: None,
            first_original: None,
            forward,
            reordered: false,
        }
    }

    /// The end of the highest segment that has arrived by now.
    pub(crate) const fn forward(&self) -> SeqNum {
        self.forward
    }

    /// `length` bytes of `stretch`, up to `end`, have arrived.
    #[inline(always)]
    pub(crate) fn take(&mut self, stretch: &Stretch, end: SeqNum, length: u32) {
        let departure = stretch.departure;
        self.bytes += length;
        if self
            .newest
            .is_none_or(|newest| departure.is_after(end, newest.departure.order, newest.end))
        {
            self.newest = Some(Newest { departure, end });
        }
        if !departure.again {
            self.oldest_original.get_or_insert(departure.sent);
            self.first_original.get_or_insert(end - length);
            self.reordered |= end.before(self.forward);
        }
        self.forward = self.forward.later(end);
    }
}

/// The sender's account of what was delivered (the draft's C.delivered and its companions).
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct DeliveryAccount {
    /// The last measurement of the rate.
    pub(crate) latest: Option<RateSample>,
    /// When the last of them was.
    delivered_at: Instant,
    /// When the segment left that was delivered last, or that began the flight.
    first_sent: Instant,
    /// Bytes found lost in the connection's life.
    lost: u64,
    /// The application had nothing more to send when this was the last byte to be delivered; zero if
    /// it had.
    limited_until: u64,
    /// Bytes delivered in the connection's life.
    delivered: u64,
}

packed!(DeliveryAccount { delivered, delivered_at, first_sent, lost, limited_until, latest });

impl DeliveryAccount {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            delivered: 0,
            delivered_at: now,
            first_sent: now,
            lost: 0,
            limited_until: 0,
            latest: None,
        }
    }

    /// Bytes delivered in the connection's life.
    pub(crate) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When something was last delivered, or when the flight began that nothing was delivered of.
    pub(crate) const fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// Bytes found lost in the connection's life.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    /// A segment leaves, perhaps `again`, and `in_flight` is what is then. The `first` of a flight starts
    /// the clock.
    pub(crate) fn depart(
        &mut self,
        now: Instant,
        first: bool,
        again: bool,
        in_flight: u32,
    ) -> Departure {
        if first {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Departure {
            sent: now,
            order: 0,
            again,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            application_limited: self.limited_until > 0,
            in_flight,
            lost: self.lost,
        }
    }

    /// The application has nothing more to send, and the window would let it: until what is in flight
    /// now has arrived, rates tell of the application and not of the path.
    pub(crate) fn note_application_limited(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// `bytes` were found lost.
    pub(crate) fn note_lost(&mut self, bytes: u32) {
        self.lost += u64::from(bytes);
    }

    /// `stretch` is found lost, and with it `found` bytes that are not counted yet: what the congestion
    /// control is told.
    pub(crate) fn loss_of(&self, stretch: &Stretch, found: u64) -> Lost {
        let departure = &stretch.departure;
        Lost {
            bytes: stretch.length(),
            in_flight_at_send: departure.in_flight,
            since_sent: self.lost + found - departure.lost,
            application_limited: departure.application_limited,
        }
    }

    /// Takes in what the arrival of `bytes`, the newest of which left like `departure`, says of the path's rate:
    /// nothing if the time is shorter than the path's shortest round trip, because the rate would be too high (the
    /// draft's §4.1.2.3).
    #[inline(always)]
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        departure: &Departure,
        bytes: u32,
        shortest: Option<Duration>,
    ) -> Option<RateSample> {
        self.delivered += u64::from(bytes);
        self.delivered_at = now;
        if self.limited_until > 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let sending = departure.sent.since(departure.first_sent);
        let acknowledging = now.since(departure.delivered_at);
        self.first_sent = departure.sent;
        let interval = sending.max(acknowledging);
        if interval == Duration::ZERO || shortest.is_some_and(|shortest| interval < shortest) {
            return None;
        }
        let sample = RateSample {
            delivered: self.delivered,
            prior_delivered: departure.delivered,
            interval,
            application_limited: departure.application_limited,
            in_flight_at_send: departure.in_flight,
            lost: self.lost - departure.lost,
        };
        self.latest = Some(sample);
        Some(sample)
    }
}

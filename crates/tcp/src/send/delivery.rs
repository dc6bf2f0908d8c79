//! Deliveries reported by acknowledgements, and the delivery rate of the path (draft-ietf-ccwg-bbr
//! §4.1).

use super::scoreboard::SentRange;
use crate::compact::pack::packed;
use crate::congestion::{Lost, RateSample};
use linerate_units::{Duration, Instant};
use linerate_wire::SeqNum;

/// The state of the connection when a segment was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SendRecord {
    /// Time when the segment was sent.
    pub(crate) sent: Instant,
    /// Number of the transmission, since the segments of a burst have equal times.
    pub(crate) order: u64,
    /// Whether any part was retransmitted, so that an acknowledgement may be for the earlier copy.
    pub(crate) again: bool,
    /// Bytes delivered before the segment was sent.
    delivered: u64,
    /// Time of the last delivery before the segment was sent.
    delivered_at: Instant,
    /// Time when the first segment of the flight was sent.
    first_sent: Instant,
    /// Whether the sender was application-limited.
    application_limited: bool,
    /// Bytes in flight, including the segment.
    in_flight: u32,
    /// Bytes marked lost before the segment was sent.
    lost: u64,
}

impl SendRecord {
    /// Whether both segments were sent at the same time, without an acknowledgement in between.
    pub(crate) fn is_same_burst(&self, other: &Self) -> bool {
        self.sent == other.sent && self.delivered == other.delivered
    }

    /// Adds `length` bytes that were sent in the same burst.
    pub(crate) const fn grow(&mut self, length: u32) {
        self.in_flight = self.in_flight.saturating_add(length);
    }

    /// Whether a segment ending at `end` was sent after another. Equal transmissions are ordered by
    /// sequence number (RFC 8985 §6.2, `RACK_sent_after`).
    pub(crate) fn is_after(&self, end: SeqNum, other: u64, other_end: SeqNum) -> bool {
        self.order > other || (self.order == other && end.after(other_end))
    }
}

/// The segment that was sent last, of those that an acknowledgement reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    pub(crate) send_record: SendRecord,
    pub(crate) end: SeqNum,
}

/// The data that one acknowledgement newly reports as delivered.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// Bytes newly acknowledged or SACKed.
    pub(crate) bytes: u32,
    /// The segment among the delivered ones that was sent last.
    pub(crate) newest: Option<Newest>,
    /// Time when the oldest delivered segment without a retransmission was sent. Its round trip
    /// includes the peer's ACK delay.
    pub(crate) oldest_original: Option<Instant>,
    /// First sequence number of the delivered segments without a retransmission.
    pub(crate) first_original: Option<SeqNum>,
    /// End of the highest segment delivered so far (RACK.fack).
    forward: SeqNum,
    /// Whether a segment without a retransmission arrived after a later one.
    pub(crate) reordered: bool,
}

impl Delivery {
    /// Returns an empty delivery; `forward` is the end of the highest segment ever delivered.
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

    /// Returns the end of the highest segment delivered so far.
    pub(crate) const fn forward(&self) -> SeqNum {
        self.forward
    }

    /// Adds `length` bytes of `range`, up to `end`.
    #[inline(always)]
    pub(crate) fn take(&mut self, range: &SentRange, end: SeqNum, length: u32) {
        let send_record = range.send_record;
        self.bytes += length;
        if self
            .newest
            .is_none_or(|newest| send_record.is_after(end, newest.send_record.order, newest.end))
        {
            self.newest = Some(Newest { send_record, end });
        }
        if !send_record.again {
            self.oldest_original.get_or_insert(send_record.sent);
            self.first_original.get_or_insert(end - length);
            self.reordered |= end.before(self.forward);
        }
        self.forward = self.forward.later(end);
    }
}

/// The delivery state of the sender (C.delivered and others of the draft).
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct DeliveryAccount {
    /// The latest sample of the rate.
    pub(crate) latest: Option<RateSample>,
    /// Time of the last delivery.
    delivered_at: Instant,
    /// Time when the most recently delivered segment was sent, or the first segment of the flight.
    first_sent: Instant,
    /// Bytes marked lost during the connection.
    lost: u64,
    /// Value of `delivered` that ends the application-limited period; zero outside such a period.
    limited_until: u64,
    /// Bytes delivered during the connection.
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

    /// Returns the bytes delivered during the connection.
    pub(crate) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the time of the last delivery, or of the start of a flight without one.
    pub(crate) const fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// Returns the bytes marked lost during the connection.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the record of a segment that is sent now, with `in_flight` bytes in flight including
    /// it. `first` marks the first segment of a flight, with which the sampling interval starts.
    pub(crate) fn record_sent(
        &mut self,
        now: Instant,
        first: bool,
        again: bool,
        in_flight: u32,
    ) -> SendRecord {
        if first {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        SendRecord {
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

    /// Notes that the sender is application-limited: until the data now in flight is delivered,
    /// samples do not measure the path.
    pub(crate) fn note_application_limited(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Counts `bytes` marked lost.
    pub(crate) fn note_lost(&mut self, bytes: u32) {
        self.lost += u64::from(bytes);
    }

    /// Returns the report to congestion control that `range` is lost. `found` bytes were found lost
    /// before it, and are not counted yet.
    pub(crate) fn loss_of(&self, range: &SentRange, found: u64) -> Lost {
        let send_record = &range.send_record;
        Lost {
            bytes: range.length(),
            in_flight_at_send: send_record.in_flight,
            since_sent: self.lost + found - send_record.lost,
            application_limited: send_record.application_limited,
        }
    }

    /// Processes the delivery of `bytes`, of which the segment sent last has the record
    /// `send_record`, and returns a rate sample. There is no sample if the interval is shorter than
    /// the minimum round trip, because the rate would be too high (the draft's §4.1.2.3).
    #[inline(always)]
    pub(crate) fn on_delivered(
        &mut self,
        now: Instant,
        send_record: &SendRecord,
        bytes: u32,
        shortest: Option<Duration>,
    ) -> Option<RateSample> {
        self.delivered += u64::from(bytes);
        self.delivered_at = now;
        if self.limited_until > 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let sending = send_record.sent.since(send_record.first_sent);
        let acknowledging = now.since(send_record.delivered_at);
        self.first_sent = send_record.sent;
        let interval = sending.max(acknowledging);
        if interval == Duration::ZERO || shortest.is_some_and(|shortest| interval < shortest) {
            return None;
        }
        let sample = RateSample {
            delivered: self.delivered,
            prior_delivered: send_record.delivered,
            interval,
            application_limited: send_record.application_limited,
            in_flight_at_send: send_record.in_flight,
            lost: self.lost - send_record.lost,
        };
        self.latest = Some(sample);
        Some(sample)
    }
}

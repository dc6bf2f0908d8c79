//! The data that acknowledgements report as delivered, and the delivery rate that is computed from
//! it (draft-ietf-ccwg-bbr §4.1).

use super::scoreboard::SentRange;
use crate::compact::pack::packed;
use crate::congestion::{Lost, RateSample};
use linerate_units::{Duration, Instant};
use linerate_wire::SeqNum;

/// The state of the connection when a segment was sent. When the segment is delivered, the
/// differences between the state at that time and this record yield the delivery rate and the
/// round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SendRecord {
    /// The time when the segment was sent.
    pub(crate) sent: Instant,
    /// The number of the transmission, which orders segments that were sent at the same time.
    pub(crate) order: u64,
    /// Whether any part of the segment was retransmitted. If so, an acknowledgement of it may have
    /// been caused by an earlier copy.
    pub(crate) again: bool,
    /// The number of bytes that had been delivered when the segment was sent.
    delivered: u64,
    /// The time of the most recent delivery when the segment was sent.
    delivered_at: Instant,
    /// The start of the sampling interval at the sender. It is the time when the most recently
    /// delivered segment was sent, or, for the first segment of a flight, the time when it was sent
    /// itself.
    first_sent: Instant,
    /// Whether the sender was application-limited when the segment was sent.
    application_limited: bool,
    /// The number of bytes in flight when the segment was sent, including the segment.
    in_flight: u32,
    /// The number of bytes that had been marked lost when the segment was sent.
    lost: u64,
}

impl SendRecord {
    /// Whether both segments belong to one burst: they were sent at the same time, and no data was
    /// delivered between the two.
    pub(crate) fn is_same_burst(&self, other: &Self) -> bool {
        self.sent == other.sent && self.delivered == other.delivered
    }

    /// Adds `length` bytes, which were sent in the burst of this segment, to the bytes in flight.
    pub(crate) const fn grow(&mut self, length: u32) {
        self.in_flight = self.in_flight.saturating_add(length);
    }

    /// Whether this segment, which ends at `end`, was sent after the segment with the order
    /// `other`, which ends at `other_end`. If the orders are equal, the sequence numbers decide
    /// (RFC 8985 §6.2, `RACK_sent_after`).
    pub(crate) fn is_after(&self, end: SeqNum, other: u64, other_end: SeqNum) -> bool {
        self.order > other || (self.order == other && end.after(other_end))
    }
}

/// The segment that was sent most recently among those that an acknowledgement reports as
/// delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    pub(crate) send_record: SendRecord,
    pub(crate) end: SeqNum,
}

/// The data that an acknowledgement newly reports as delivered.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// The number of bytes newly acknowledged or SACKed.
    pub(crate) bytes: u32,
    /// The delivered segment that was sent most recently; `None` if nothing was delivered.
    pub(crate) newest: Option<Newest>,
    /// The time when the oldest of the delivered segments was sent, without regard to retransmitted
    /// segments. If the peer has delayed the ACK, a round-trip time measured from this time
    /// includes the delay.
    pub(crate) oldest_original: Option<Instant>,
    /// The lowest sequence number among the delivered segments, without regard to retransmitted
    /// segments.
    pub(crate) first_original: Option<SeqNum>,
    /// RACK.fack (RFC 8985): the end of the highest segment delivered so far.
    forward: SeqNum,
    /// Whether a segment that was not retransmitted has arrived after a segment with a higher
    /// sequence number.
    pub(crate) reordered: bool,
}

impl Delivery {
    /// Creates an empty delivery. `forward` is the end of the highest segment delivered before.
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

    /// Adds a part of `range` to the delivery: the `length` bytes before `end`.
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

/// The counters of delivered and lost data of a sender. Samples of the delivery rate are computed
/// from them (C.delivered and others of draft-ietf-ccwg-bbr §4.1).
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct DeliveryAccount {
    /// The latest sample of the delivery rate.
    pub(crate) latest: Option<RateSample>,
    /// The time of the most recent delivery, or the start of the present flight.
    delivered_at: Instant,
    /// The time when the most recently delivered segment was sent, or the time when the first
    /// segment of the present flight was sent.
    first_sent: Instant,
    /// The number of bytes marked lost during the connection.
    lost: u64,
    /// The application-limited period ends when more than this number of bytes are delivered. Zero
    /// outside such a period.
    limited_until: u64,
    /// The number of bytes delivered during the connection.
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

    /// Returns the number of bytes delivered during the connection.
    pub(crate) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the time of the most recent delivery, or the start of the present flight if that is
    /// later.
    pub(crate) const fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// Returns the number of bytes marked lost during the connection.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the record of a segment that is sent now. `in_flight` bytes are in flight, including
    /// the segment. If `first` is true, nothing else is in flight, and a new sampling interval
    /// starts now. `again` is true for a retransmission.
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

    /// Records that the sender is application-limited. Samples from segments that are sent before
    /// the `in_flight` bytes are delivered may be below the rate that the path can deliver.
    pub(crate) fn note_application_limited(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Counts `bytes` that were marked lost.
    pub(crate) fn note_lost(&mut self, bytes: u32) {
        self.lost += u64::from(bytes);
    }

    /// Returns the report to congestion control that `range` is lost. `found` is the number of lost
    /// bytes that the counter of lost bytes does not include yet, up to and including this range.
    pub(crate) fn loss_of(&self, range: &SentRange, found: u64) -> Lost {
        let send_record = &range.send_record;
        Lost {
            bytes: range.length(),
            in_flight_at_send: send_record.in_flight,
            since_sent: self.lost + found - send_record.lost,
            application_limited: send_record.application_limited,
        }
    }

    /// Processes the delivery of `bytes` bytes, and returns a sample of the delivery rate.
    /// `send_record` belongs to the most recently sent of the delivered segments. `shortest` is the
    /// minimum round-trip time. If the sampling interval is shorter than that, the computed rate
    /// would be too high, so there is no sample (draft-ietf-ccwg-bbr §4.1.2.3).
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

//! The ACK policy: when received data is acknowledged (RFC 9293 §3.8.6.3, RFC 5681 §4.2), and when
//! a larger window is announced (RFC 9293 §3.8.6.2.2).
//!
//! The policy accesses neither the receive buffer nor the delayed-ACK timer. The caller passes the
//! sizes that it needs, and sets the timer.

use crate::compact::pack::packed;

/// The rule that decides when to send acknowledgements and window updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// As in Linux, every second full segment is acknowledged. The first `quick` segments of a
    /// connection are acknowledged at once. Data that ends with PSH is acknowledged as soon as the
    /// application has read all of it. In request-response traffic, this acknowledgement waits for
    /// the delayed-ACK timer, so that the response can carry it.
    Modern {
        /// The number of segments at the start of the connection that are acknowledged at once,
        /// because the peer is then in slow start.
        quick: u8,
    },
    /// As in 4.3BSD, data is acknowledged at the next tick of the delayed-ACK timer, or by a window
    /// update before it. A read by the application causes a window update if the window can grow by
    /// two segments, or by `window_update_percent` of the receive buffer.
    Bsd {
        /// The growth of the window that causes an update, in per cent of the receive buffer: 35 in
        /// Tahoe, 50 in Reno.
        window_update_percent: u8,
    },
}

/// The inputs of a decision about acknowledgements and window updates, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// The bytes received in order that we have not acknowledged.
    pub(crate) pending: u32,
    /// The number of data bytes in the peer's full segments, estimated as the largest number
    /// received in a segment.
    pub(crate) segment: u32,
    /// The bytes received in order that the application has not read.
    pub(crate) unread: u32,
    /// The size of the largest possible window.
    pub(crate) capacity: u32,
    /// The part of the announced window that the peer has not used yet.
    pub(crate) offered: u32,
    /// The size of the window that could be announced now.
    pub(crate) room: u32,
}

impl Received {
    /// Returns the number of bytes by which the announced window could grow now.
    const fn growth(&self) -> u32 {
        self.room.saturating_sub(self.offered)
    }
}

/// Two counts of coming segments that need special treatment. The first is the number of segments
/// that are still to be acknowledged at once, at the start of the connection. The second becomes
/// two whenever we send data, and decreases with each received segment: while it is not zero, the
/// traffic may be a dialogue. In a bulk transfer, both are zero, which one comparison checks.
type Early = [u8; 2];

/// The state of the ACK policy of a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AckPolicy {
    rule: AckRule,
    /// Whether the most recent in-order data segment had PSH. If so, the peer probably has no more
    /// data for now.
    is_pushed: bool,
    /// Whether we have ever sent data on this connection.
    has_sent_data: bool,
    early: Early,
}

packed!(AckPolicy { early, is_pushed, has_sent_data } known { rule: |config| config.acks });

impl AckPolicy {
    pub(crate) const fn new(rule: AckRule) -> Self {
        let quick = match rule {
            AckRule::Modern { quick } => quick,
            AckRule::Bsd { .. } => 0,
        };
        Self { rule, is_pushed: false, has_sent_data: false, early: [quick, 2] }
    }

    /// Records whether the in-order data segment that has just arrived had PSH.
    #[inline(always)]
    pub(crate) const fn note_push(&mut self, is_pushed: bool) {
        self.is_pushed = is_pushed;
    }

    /// Whether the connection is receiving a bulk transfer. If so, both counts in [`Early`] are
    /// zero, and further segments need not be counted.
    #[inline(always)]
    pub(crate) fn is_in_full_flow(&self) -> bool {
        self.early == [0, 0]
    }

    /// Counts `count` segments of in-order data. Returns true if one of them belongs to the
    /// segments at the start of the connection that are acknowledged at once.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, count: u32) -> bool {
        if self.is_in_full_flow() {
            return false;
        }
        let [quick, awaited] = self.early;
        let count = u8::try_from(count).unwrap_or(u8::MAX);
        self.early[1] = awaited.saturating_sub(count);
        if quick > 0 {
            self.early[0] = quick.saturating_sub(count);
        }
        quick > 0
    }

    /// Decides about in-order data in `count` segments of `length` bytes each. If `count` is one,
    /// the length does not matter. Returns two values: whether an acknowledgement is due at once,
    /// and whether the acknowledgement of at least one segment is delayed at first, so that the
    /// delayed-ACK timer runs.
    ///
    /// `pending` is the number of bytes that are not acknowledged once all `count` segments have
    /// arrived, and `segment` is the number of bytes in a full segment. `was_crowded(n)` returns
    /// whether unread data filled more than half of the window before the final `n` bytes arrived.
    /// If it did, no acknowledgement is due at once: it waits until the application has read, so
    /// that it can announce a larger window.
    #[inline(always)]
    pub(crate) fn is_due(
        &self,
        count: u32,
        length: u32,
        pending: u32,
        segment: u32,
        was_crowded: impl Fn(u32) -> bool,
    ) -> (bool, bool) {
        let AckRule::Modern { .. } = self.rule else { return (false, true) };
        let is_enough_without = |left: u32| (pending - left * length) / 2 >= segment;
        if !is_enough_without(0) {
            return (false, true);
        }
        // An acknowledgement may become due before the final segment. `was_crowded` must be
        // evaluated for the first segment that makes one due, because later segments fill the
        // buffer further. `left` is the number of segments after that one.
        let mut left = 0;
        if count > 1 && is_enough_without(1) {
            left = count - 1;
            while !is_enough_without(left) {
                left -= 1;
            }
        }
        let is_due = !was_crowded(left * length);
        (is_due, !is_due || left + 1 < count)
    }

    /// Whether an acknowledgement or a window update is due after the application has read.
    #[inline]
    pub(crate) const fn on_read(&self, received: &Received) -> bool {
        match self.rule {
            AckRule::Bsd { window_update_percent } => {
                let share = received.capacity as u64 * window_update_percent as u64 / 100;
                let growth = received.growth();
                growth > 0
                    && (growth >= received.segment.saturating_mul(2) || growth as u64 >= share)
            }
            AckRule::Modern { .. } => {
                let read_all_of_a_push =
                    self.is_pushed && received.unread == 0 && !self.is_request_response();
                if received.pending > received.segment
                    || (read_all_of_a_push && received.pending > 0)
                {
                    return true;
                }
                let half = received.capacity / 2;
                received.offered <= half && received.growth() > 0 && {
                    // If the window has no room for a segment, the sender waits. Room for one
                    // segment is therefore announced at once (RFC 9293 §3.8.6.2.2).
                    let stalled = received.offered < received.segment;
                    let segments = if stalled { 1 } else { 2 };
                    let worth = received.segment.saturating_mul(segments);
                    received.growth() >= if half < worth { half } else { worth }
                }
            }
        }
    }

    /// Whether it is certain that neither an acknowledgement nor a window update is due after a
    /// read. If it is, the caller need not call [`AckPolicy::on_read`], which takes longer. The
    /// arguments are the fields of [`Received`] with these names.
    #[inline(always)]
    pub(crate) const fn is_nothing_due(
        &self,
        pending: u32,
        segment: u32,
        offered: u32,
        capacity: u32,
    ) -> bool {
        let is_answered = pending <= segment && (!self.is_pushed || self.is_request_response());
        matches!(self.rule, AckRule::Modern { .. })
            && offered > capacity / 2
            && (pending == 0 || is_answered)
    }

    /// Whether a window of [`Received::room`] bytes may be announced without causing the silly
    /// window syndrome (RFC 9293 §3.8.6.2.2). The rule of 4.3BSD requires a minimum size of the new
    /// window. That of the RFC requires a minimum growth from the present window.
    pub(crate) const fn is_worth_offering(&self, received: &Received) -> bool {
        let (grown, share) = match self.rule {
            AckRule::Bsd { .. } => (received.offered + received.growth(), received.capacity / 4),
            AckRule::Modern { .. } => (received.growth(), received.capacity / 2),
        };
        grown >= received.segment || grown >= share
    }

    /// Records that a data segment was sent.
    pub(crate) const fn on_data_sent(&mut self) {
        self.has_sent_data = true;
        self.early[1] = 2;
    }

    /// Whether both endpoints send alternately, at most one segment each. If so, a response of the
    /// application, which can carry the acknowledgement, is likely to come soon.
    const fn is_request_response(&self) -> bool {
        self.has_sent_data && self.early[1] > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN: AckRule = AckRule::Modern { quick: 0 };
    const TAHOE: AckRule = AckRule::Bsd { window_update_percent: 35 };

    /// The state of an idle receiver: room for 17 full segments, and no unread data.
    const IDLE: Received = Received {
        pending: 0,
        segment: 1_460,
        unread: 0,
        capacity: 17 * 1_460,
        offered: 17 * 1_460,
        room: 17 * 1_460,
    };

    /// Processes one segment, after which `pending` bytes are unacknowledged. Returns whether an
    /// acknowledgement is due at once.
    fn on_segment(policy: &mut AckPolicy, pending: u32, is_pushed: bool, is_crowded: bool) -> bool {
        policy.note_push(is_pushed);
        policy.on_data(1) | policy.is_due(1, 1_460, pending, 1_460, |_| is_crowded).0
    }

    #[test]
    fn every_second_segment_is_acknowledged() {
        let mut policy = AckPolicy::new(MODERN);
        assert!(!on_segment(&mut policy, 1_460, false, false));
        assert!(on_segment(&mut policy, 2_920, false, false));
        assert!(!on_segment(&mut policy, 2_920, false, true), "the application must read first");
    }

    #[test]
    fn the_first_segments_are_acknowledged_at_once() {
        let mut policy = AckPolicy::new(AckRule::Modern { quick: 1 });
        assert!(on_segment(&mut policy, 1_460, false, false));
        assert!(!on_segment(&mut policy, 1_460, false, false));
    }

    #[test]
    fn a_gro_run_is_judged_like_its_segments_one_by_one() {
        for (length, count) in
            [300, 1_460].into_iter().flat_map(|length| (1..9).map(move |count| (length, count)))
        {
            for (before, room) in
                (0..5).flat_map(|before| (0..10).map(move |room| (before * 700, room * 900)))
            {
                let mut policy = AckPolicy::new(AckRule::Modern { quick: 3 });
                let mut single = policy.clone();
                let pending = before + count * length;
                let was_crowded = |later| pending - later > room;
                let is_due = policy.is_due(count, length, pending, 1_460, was_crowded);
                let is_quick = policy.on_data(count);
                let (mut one_is_due, mut one_waits, mut one_is_quick) = (false, false, false);
                for later in (0..count).rev().map(|left| left * length) {
                    // The decision for the whole run must equal a series of decisions, one for each
                    // segment. Once an acknowledgement is due, a connection makes no further
                    // decision.
                    if !one_is_due {
                        let judged = single
                            .is_due(1, length, pending - later, 1_460, |_| was_crowded(later));
                        (one_is_due, one_waits) = (judged.0, one_waits | judged.1);
                    }
                    one_is_quick |= single.on_data(1);
                }
                let one_by_one = ((one_is_due, one_waits), one_is_quick, single);
                assert_eq!((is_due, is_quick, policy), one_by_one, "{count} of {length}");
            }
        }
    }

    #[test]
    fn a_pushed_segment_is_acknowledged_when_read() {
        let mut policy = AckPolicy::new(MODERN);
        let one = Received { pending: 1_460, offered: 16 * 1_460, ..IDLE };
        assert!(!on_segment(&mut policy, 1_460, true, false));
        assert!(policy.on_read(&one));
    }

    #[test]
    fn a_response_carries_the_acknowledgement() {
        let mut policy = AckPolicy::new(MODERN);
        policy.on_data_sent();
        let request = Received { pending: 10, offered: 17 * 1_460 - 10, ..IDLE };
        on_segment(&mut policy, 10, true, false);
        assert!(!policy.on_read(&request));
        on_segment(&mut policy, 10, true, false);
        assert!(policy.on_read(&request), "two requests without a response");
    }

    #[test]
    fn tahoe_announces_two_segments_or_35_per_cent_of_the_buffer() {
        let policy = AckPolicy::new(TAHOE);
        let grown = |growth, capacity| {
            policy.on_read(&Received { room: IDLE.offered + growth, capacity, ..IDLE })
        };
        assert!(!grown(1_460, 17 * 1_460));
        assert!(grown(2 * 1_460, 17 * 1_460));
        assert!(grown(1_460, 2 * 1_460));
        assert!(!grown(1_460, 3 * 1_460), "a third is less than 35 %");
    }

    #[test]
    fn a_closed_window_is_reopened_by_a_read() {
        let policy = AckPolicy::new(MODERN);
        let closed = Received { offered: 0, room: 1_460, capacity: 1_460, ..IDLE };
        assert!(policy.on_read(&closed));
        assert!(!policy.on_read(&Received { room: 700, ..closed }));
    }
}

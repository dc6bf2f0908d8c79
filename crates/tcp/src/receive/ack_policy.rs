//! When received data is acknowledged (RFC 9293 §3.8.6.3, RFC 5681 §4.2), and when a window that
//! grew is worth telling (§3.8.6.2.2).
//!
//! Pure decisions: the caller knows the buffer and sets the timer.

use crate::rest::pack::packed;

/// The two traditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// As Linux: at every second full segment; at once for the first `quick` segments of a
    /// connection; at once for pushed data that the application has read, unless the traffic is
    /// request and response, where the response carries the acknowledgement.
    Modern {
        /// Segments acknowledged at once while the peer is in slow start.
        quick: u8,
    },
    /// As 4.3BSD: at the delayed-acknowledgement tick, or with the window update that the end of a
    /// read sends when the window can grow by two segments or by this share of the buffer.
    Bsd {
        /// Per cent of the receive buffer: 35 in Tahoe, 50 in Reno.
        window_update_percent: u8,
    },
}

/// What the decision depends on, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// In order and not acknowledged.
    pub(crate) pending: u32,
    /// The largest segment that the peer has sent.
    pub(crate) segment: u32,
    /// In order and not read.
    pub(crate) unread: u32,
    /// The most that the window can be.
    pub(crate) capacity: u32,
    /// Left of the window as it was last offered.
    pub(crate) offered: u32,
    /// The window that could be offered now, if that is more.
    pub(crate) room: u32,
}

impl Received {
    /// By how much the offered window could grow now.
    const fn growth(&self) -> u32 {
        self.room.saturating_sub(self.offered)
    }
}

/// What the rule has to remember.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AckPolicy {
    rule: AckRule,
    /// Segments still to be acknowledged at once.
    quick: u8,
    /// The last segment was pushed: its sender has nothing more for now.
    pushed: bool,
    /// Has this end sent data at all? A pure receiver never does.
    talks: bool,
    /// Data segments since this end last sent data; 2 stands for more.
    unanswered: u8,
}

packed!(AckPolicy { quick, pushed, talks, unanswered } known { rule: |config| config.acks });

impl AckPolicy {
    pub(crate) const fn new(rule: AckRule) -> Self {
        let quick = match rule {
            AckRule::Modern { quick } => quick,
            AckRule::Bsd { .. } => 0,
        };
        Self { rule, quick, pushed: false, talks: false, unanswered: 0 }
    }

    /// In-order data has arrived, and `pending` bytes are not acknowledged, where a full segment has
    /// `segment`: must they be at once? `is_crowded` says whether unread data fills more than half of the
    /// window: then it waits for the reader, since the acknowledgement that he triggers carries a better one.
    #[inline(always)]
    pub(crate) fn on_data(
        &mut self,
        pending: u32,
        segment: u32,
        pushed: bool,
        is_crowded: impl FnOnce() -> bool,
    ) -> bool {
        self.pushed = pushed;
        if self.unanswered < 2 {
            self.unanswered += 1;
        }
        match self.rule {
            AckRule::Bsd { .. } => false,
            AckRule::Modern { .. } if self.quick > 0 => {
                self.quick -= 1;
                true
            }
            AckRule::Modern { .. } => pending / 2 >= segment && !is_crowded(),
        }
    }

    /// The same for `count` segments of `length` bytes each that came one after the other, where `pending` is what it is
    /// after the last of them, and `was_crowded` tells what was before the last so many bytes. Must they be acknowledged
    /// at once, since one of them must; and is there one that may wait?
    #[inline(always)]
    pub(crate) fn on_train(
        &mut self,
        count: u32,
        length: u32,
        pending: u32,
        segment: u32,
        pushed: bool,
        was_crowded: impl Fn(u32) -> bool,
    ) -> (bool, bool) {
        self.pushed = pushed;
        self.unanswered = if count > 1 { 2 } else { 2.min(self.unanswered + 1) };
        let AckRule::Modern { .. } = self.rule else { return (false, true) };
        let quick = u8::try_from(count).unwrap_or(u8::MAX).min(self.quick);
        self.quick -= quick;
        let (must, mut may_wait) = (quick > 0, false);
        for left in (0..count - u32::from(quick)).rev() {
            let later = left * length;
            if (pending - later) / 2 >= segment {
                // Of those that follow each has as much behind it, and finds the buffer fuller.
                return (must | !was_crowded(later), may_wait | was_crowded(0));
            }
            may_wait = true;
        }
        (must, may_wait)
    }

    /// The application has read: is an acknowledgement, or a window update, due now?
    #[inline]
    pub(crate) const fn on_read(&self, received: &Received) -> bool {
        match self.rule {
            AckRule::Bsd { window_update_percent } => {
                let share = received.capacity as u64 * window_update_percent as u64 / 100;
                let growth = received.growth();
                growth > 0 && (growth >= received.segment.saturating_mul(2) || growth as u64 >= share)
            }
            AckRule::Modern { .. } => {
                let read_all_of_a_push = self.pushed && received.unread == 0 && !self.is_request_response();
                if received.pending > received.segment || (read_all_of_a_push && received.pending > 0) {
                    return true;
                }
                let half = received.capacity / 2;
                received.offered <= half && received.growth() > 0 && {
                    // A sender without room for a segment waits for one (RFC 9293 §3.8.6.2.2).
                    let stalled = received.offered < received.segment;
                    let segments = if stalled { 1 } else { 2 };
                    let worth = received.segment.saturating_mul(segments);
                    received.growth() >= if half < worth { half } else { worth }
                }
            }
        }
    }

    /// Is the window that could be offered worth it, or would it lead the sender into segments of a
    /// few bytes (RFC 9293 §3.8.6.2.2)? 4.3BSD judged the window, the RFC judges its growth.
    pub(crate) const fn is_worth_offering(&self, received: &Received) -> bool {
        let (grown, share) = match self.rule {
            AckRule::Bsd { .. } => (received.offered + received.growth(), received.capacity / 4),
            AckRule::Modern { .. } => (received.growth(), received.capacity / 2),
        };
        grown >= received.segment || grown >= share
    }

    /// A segment with data has left, and carried the acknowledgement.
    pub(crate) const fn on_data_sent(&mut self) {
        self.talks = true;
        self.unanswered = 0;
    }

    /// One segment each way in turn: an answer is likely soon.
    const fn is_request_response(&self) -> bool {
        self.talks && self.unanswered < 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN: AckRule = AckRule::Modern { quick: 0 };
    const TAHOE: AckRule = AckRule::Bsd { window_update_percent: 35 };

    /// 17 packets of room, nothing unread.
    const IDLE: Received = Received {
        pending: 0,
        segment: 1_460,
        unread: 0,
        capacity: 17 * 1_460,
        offered: 17 * 1_460,
        room: 17 * 1_460,
    };

    #[test]
    fn every_second_segment_is_acknowledged() {
        let mut policy = AckPolicy::new(MODERN);
        assert!(!policy.on_data(1_460, 1_460, false, || false));
        assert!(policy.on_data(2_920, 1_460, false, || false));
        assert!(!policy.on_data(2_920, 1_460, false, || true), "the reader is to come first");
    }

    #[test]
    fn the_first_segments_are_acknowledged_at_once() {
        let mut policy = AckPolicy::new(AckRule::Modern { quick: 1 });
        assert!(policy.on_data(1_460, 1_460, false, || false));
        assert!(!policy.on_data(1_460, 1_460, false, || false));
    }

    #[test]
    fn a_train_is_judged_as_its_segments_are_one_by_one() {
        let rules = [TAHOE, MODERN, AckRule::Modern { quick: 3 }];
        let (lengths, counts) = ([300, 1_460], 1..9);
        let mut cases = 0;
        for (rule, length, count) in rules
            .into_iter()
            .flat_map(|rule| lengths.map(|length| (rule, length)))
            .flat_map(|(rule, length)| counts.clone().map(move |count| (rule, length, count)))
        {
            for (before, crowded_from) in
                (0..5).flat_map(|before| (0..10).map(move |at| (before * 700, at * 900)))
            {
                let (mut whole, mut single) = (AckPolicy::new(rule), AckPolicy::new(rule));
                let pending = before + count * length;
                let was_crowded = |later| pending - later > crowded_from;
                let judged = whole.on_train(count, length, pending, 1_460, true, was_crowded);
                let (mut must, mut may_wait) = (false, false);
                for later in (0..count).rev().map(|left| left * length) {
                    let at_once = single.on_data(pending - later, 1_460, later == 0, || was_crowded(later));
                    must |= at_once;
                    may_wait |= !at_once;
                }
                assert_eq!((judged, whole), ((must, may_wait), single), "{rule:?} {count} of {length}");
                cases += 1;
            }
        }
        assert_eq!(cases, 2_400);
    }

    #[test]
    fn a_pushed_segment_that_was_read_is_acknowledged_without_waiting_for_the_timer() {
        let mut policy = AckPolicy::new(MODERN);
        let one = Received { pending: 1_460, offered: 16 * 1_460, ..IDLE };
        assert!(!policy.on_data(1_460, 1_460, true, || false));
        assert!(policy.on_read(&one));
    }

    #[test]
    fn a_response_that_is_likely_soon_carries_the_acknowledgement() {
        let mut policy = AckPolicy::new(MODERN);
        policy.on_data_sent();
        let request = Received { pending: 10, offered: 17 * 1_460 - 10, ..IDLE };
        policy.on_data(10, 1_460, true, || false);
        assert!(!policy.on_read(&request));
        policy.on_data(10, 1_460, true, || false);
        assert!(policy.on_read(&request), "two requests in a row are no dialogue any more");
    }

    #[test]
    fn tahoe_tells_of_two_segments_or_of_35_per_cent_of_the_buffer() {
        let policy = AckPolicy::new(TAHOE);
        let grown =
            |growth, capacity| policy.on_read(&Received { room: IDLE.offered + growth, capacity, ..IDLE });
        assert!(!grown(1_460, 17 * 1_460));
        assert!(grown(2 * 1_460, 17 * 1_460));
        assert!(grown(1_460, 2 * 1_460));
        assert!(!grown(1_460, 3 * 1_460), "a third is less than 35 %");
    }

    #[test]
    fn a_window_that_was_closed_is_reopened_by_the_reader() {
        let policy = AckPolicy::new(MODERN);
        let closed = Received { offered: 0, room: 1_460, capacity: 1_460, ..IDLE };
        assert!(policy.on_read(&closed));
        assert!(!policy.on_read(&Received { room: 700, ..closed }));
    }
}

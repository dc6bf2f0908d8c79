//! CoDel (RFC 8289): drops frames at an increasing rate while the queueing delay exceeds a target
//! for longer than an interval.

use super::{Fifo, QueuedFrame, Verdict, waited};
use linerate_units::{Span, Tick};

#[derive(Clone, Copy, Debug)]
pub(crate) struct CoDelParameters {
    /// Queueing delay that CoDel tolerates permanently (RFC 8289 §4.3).
    pub(crate) target: Span,
    /// Time for which the delay must stay above the target before frames are dropped (RFC 8289
    /// §4.2).
    pub(crate) interval: Span,
}

/// Length of the longest Ethernet frame in bytes. No frame is dropped while at most this many bytes
/// remain in the queue (RFC 8289 §4.4).
const LONGEST_FRAME: usize = 1_518;

#[derive(Clone, Copy, Debug)]
pub(super) struct CoDel {
    parameters: CoDelParameters,
    /// Time at which dropping begins unless the delay falls below the target before; `None` while
    /// the delay is below the target.
    above_until: Option<Tick>,
    dropping: bool,
    next_drop: Tick,
    /// Number of frames dropped or marked in the present phase of dropping, which determines the
    /// time of the next drop. If the phase begins soon after the previous one, this number begins
    /// not with 1, but with the number of drops in the previous phase.
    count: u64,
    /// Value of `count` at the beginning of the present or most recent phase of dropping.
    last_count: u64,
}

impl CoDel {
    pub(super) const fn new(parameters: CoDelParameters) -> Self {
        Self {
            parameters,
            above_until: None,
            dropping: false,
            next_drop: Tick::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// Removes and returns the next frame to send; `None` if the queue is empty. If the queueing
    /// delay has been above the target for an interval, first removes the frames to drop. An
    /// ECN-capable frame is not dropped, but marked and sent (RFC 8289 §5.5).
    pub(super) fn poll(
        &mut self,
        now: Tick,
        line: &mut Fifo,
        verdicts: &mut Vec<Verdict>,
    ) -> Option<QueuedFrame> {
        let (mut next, mut too_long) = self.take(now, line);
        if !self.dropping {
            if too_long {
                self.begin(now);
                next = self.drop_or_mark(now, next?, line, verdicts).0;
            }
            return next;
        }
        if !too_long {
            self.dropping = false;
        }
        while self.dropping && now >= self.next_drop {
            self.count += 1;
            let marked = next.as_ref().is_some_and(|frame| frame.markable);
            (next, too_long) = self.drop_or_mark(now, next?, line, verdicts);
            if too_long {
                self.next_drop = self.after(self.next_drop);
            } else {
                self.dropping = false;
            }
            if marked {
                break;
            }
        }
        next
    }

    /// Begins a phase of dropping. If the previous phase was recent, `count` begins with the number
    /// of drops in it, so that drops continue at that rate. It was recent if its next drop would
    /// have been due less than 16 intervals ago.
    fn begin(&mut self, now: Tick) {
        self.dropping = true;
        let grown = self.count.saturating_sub(self.last_count);
        let lately = now.since(self.next_drop) < self.parameters.interval * 16;
        self.count = if grown > 1 && lately { grown } else { 1 };
        self.last_count = self.count;
        self.next_drop = self.after(now);
    }

    /// Returns the time of the drop that follows a drop at `time`. The interval between drops is
    /// `interval`/√`count` (RFC 8289 §4.4).
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time that is shorter than the interval"
    )]
    fn after(&self, time: Tick) -> Tick {
        let picos = self.parameters.interval.as_picos() as f64 / (self.count as f64).sqrt();
        time + Span::from_picos(picos as u64)
    }

    /// Handles a frame to be dropped. If the frame is ECN-capable, it is marked and returned.
    /// Otherwise it is dropped, and the frame after it is removed and returned. Also returns
    /// whether the queueing delay is still too long.
    fn drop_or_mark(
        &mut self,
        now: Tick,
        frame: QueuedFrame,
        line: &mut Fifo,
        verdicts: &mut Vec<Verdict>,
    ) -> (Option<QueuedFrame>, bool) {
        if frame.markable {
            verdicts.push(Verdict::Mark(frame.frame));
            return (Some(frame), true);
        }
        verdicts.push(Verdict::Drop(frame.frame));
        self.take(now, line)
    }

    /// Removes and returns the oldest frame; `None` if the queue is empty. Also returns whether the
    /// queueing delay has been above the target for at least one interval.
    fn take(&mut self, now: Tick, line: &mut Fifo) -> (Option<QueuedFrame>, bool) {
        let Some(frame) = line.pop() else {
            self.above_until = None;
            return (None, false);
        };
        if waited(now, &frame) < self.parameters.target || line.bytes <= LONGEST_FRAME {
            self.above_until = None;
            return (Some(frame), false);
        }
        let until = *self.above_until.get_or_insert(now + self.parameters.interval);
        (Some(frame), now >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, frames, line};
    use super::*;
    use crate::frame::Frames;

    fn codel() -> CoDel {
        let millis = |millis: u64| Span::from_picos(millis * 1_000_000_000);
        CoDel::new(CoDelParameters { target: millis(5), interval: millis(100) })
    }

    /// Returns the times of drops until `until`, in milliseconds. The queue sends one frame per
    /// millisecond. Each frame has waited for `waited` milliseconds.
    fn drops(codel: &mut CoDel, waited: u64, until: u64) -> Vec<u64> {
        let mut pool = Frames::new(64);
        let mut dropped = Vec::new();
        for now in waited..until {
            let mut line = line(frames(&mut pool, 20, 1, now - waited));
            let mut verdicts = Vec::new();
            codel.poll(at(now), &mut line, &mut verdicts);
            dropped.extend(verdicts.iter().map(|_| now));
        }
        dropped
    }

    #[test]
    fn no_frame_is_dropped_below_the_target() {
        assert_eq!(drops(&mut codel(), 4, 2_000), Vec::<u64>::new());
    }

    #[test]
    fn drops_follow_the_control_law() {
        let dropped = drops(&mut codel(), 10, 700);
        let mut expected = vec![110.0_f64];
        for count in 1..12_u32 {
            expected.push(expected.last().unwrap() + 100.0 / f64::from(count).sqrt());
        }
        for (dropped, expected) in dropped.iter().zip(expected) {
            #[allow(clippy::cast_precision_loss, reason = "a test")]
            let error = *dropped as f64 - expected;
            assert!((0.0..1.0).contains(&error), "{dropped} ms, not {expected}");
        }
        assert!(dropped.len() > 9);
    }

    #[test]
    fn an_ecn_capable_frame_is_marked_and_sent() {
        let (mut codel, mut pool) = (codel(), Frames::new(64));
        let mut verdicts = Vec::new();
        for now in 10..120 {
            let mut line = line(frames(&mut pool, 20, 1, now - 10));
            line.frames.iter_mut().for_each(|frame| frame.markable = true);
            let first = line.frames[0];
            assert_eq!(codel.poll(at(now), &mut line, &mut verdicts), Some(first));
        }
        assert!(matches!(verdicts[..], [Verdict::Mark(_)]), "{verdicts:?}");
    }

    #[test]
    fn a_queue_of_one_frame_causes_no_drops() {
        let (mut codel, mut pool) = (codel(), Frames::new(64));
        let mut verdicts = Vec::new();
        for now in 50..500 {
            let mut line = line(frames(&mut pool, 2, 1, now - 50));
            codel.poll(at(now), &mut line, &mut verdicts);
        }
        assert_eq!(verdicts, []);
    }
}

//! One direction of an impaired link: it decides how each frame is impaired, and holds the frames
//! under way.
//!
//! A frame that is not lost passes two stages. The first stage is the delay, a queue that keeps the
//! order. The second stage reorders: it holds selected frames until others have overtaken them, and
//! lets all other frames through. A frame that has passed both stages is ready to be received. A
//! frame that is neither held nor changed is passed on without a copy, unless others wait before
//! it.

use super::mark::{mark, place_of_mark};
use super::parameters::{Impairment, Probability};
use linerate_stack::{Medium, RxChecksum, RxFrame};
use linerate_units::{Bytes, Duration, Instant};
use oorandom::Rand64;
use std::collections::VecDeque;
use std::num::NonZeroU16;

/// The counters of one direction. A frame that arrives can be counted by several of them, such as
/// `marked` and `delayed`. A dropped frame is counted as offered, and by the one counter for the
/// reason of the drop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImpairCounters {
    /// All frames that were sent in this direction, including those dropped afterwards.
    pub offered: u64,
    /// Frames dropped at random.
    pub lost: u64,
    /// Frames dropped because they exceeded the configured length.
    pub too_long: u64,
    /// Frames marked with ECN, as by a congested router.
    pub marked: u64,
    /// Frames selected for an ECN mark that passed unchanged, because their senders do not support
    /// ECN.
    pub unmarkable: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames with an inverted bit.
    pub corrupted: u64,
    /// Frames that were held so that others could overtake them.
    pub reordered: u64,
    /// Frames that entered the delay stage, because of a delay, jitter or a bottleneck.
    pub delayed: u64,
    /// Frames dropped because the maximum number of frames was under way, or the queue of the
    /// bottleneck was full.
    pub overflowed: u64,
}

/// The position of one bit in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bit {
    byte: usize,
    mask: u8,
}

impl Bit {
    /// Inverts the bit.
    fn flip(self, frame: &mut [u8]) {
        frame[self.byte] ^= self.mask;
    }
}

/// A frame that the link holds, because it has been sent and not yet received.
#[derive(Debug)]
pub struct Held {
    bytes: Vec<u8>,
    checksum: RxChecksum,
    /// The segment size of a GRO frame; `None` if this is not a GRO frame.
    segment: Option<NonZeroU16>,
    /// For a frame in the delay stage, the time at which it will leave this stage. For a frame that
    /// has left the reordering stage, the time at which it left.
    arrived: Instant,
    /// Whether the reordering stage is to hold the frame after its delay.
    set_aside: bool,
}

impl Held {
    /// Returns the frame as the receiver gets it.
    #[must_use]
    pub fn frame(&self) -> RxFrame<'_> {
        let frame = RxFrame::plain(&self.bytes, self.arrived);
        RxFrame { checksum: self.checksum, segment: self.segment, ..frame }
    }
}

/// A frame that is held until others have overtaken it.
#[derive(Debug)]
struct Overtaken {
    frame: Held,
    /// The number of frames that must still overtake this one.
    passes: u32,
    /// The latest time at which the frame is released, even if too few frames have overtaken it.
    until: Instant,
}

/// One direction of an impaired link. [`Impair`](super::Impair) has two; a network in virtual time
/// has one for each direction of each path.
#[derive(Debug)]
pub struct Lane {
    impairment: Impairment,
    generators: Generators,
    /// The probability that a frame begins a burst of losses.
    burst_begins: Probability,
    /// The number of frames that the current burst of losses will still drop.
    burst_remaining: u32,
    /// Frames in the delay stage, in the order of `arrived`.
    delayed: VecDeque<Held>,
    /// Frames that others are to overtake, in the order of `until`.
    aside: VecDeque<Overtaken>,
    ready: VecDeque<Held>,
    /// Buffers of frames that have left this direction, for reuse by later frames.
    spare: Vec<Vec<u8>>,
    /// The time at which the newest frame in the delay stage leaves this stage. Frames sent after
    /// it must not leave before this time, even if their jitter is smaller.
    last_arrival: Instant,
    /// The time until which the bottleneck is busy sending.
    bottleneck_busy_until: Instant,
    counters: ImpairCounters,
}

impl Lane {
    /// Creates a direction whose random decisions are determined by `seed`.
    #[must_use]
    #[allow(clippy::large_types_passed_by_value, reason = "called once for a direction")]
    pub fn new(impairment: Impairment, seed: u64) -> Self {
        Self {
            burst_begins: impairment.loss.of_burst(impairment.loss_burst),
            burst_remaining: 0,
            impairment,
            generators: Generators::new(seed),
            delayed: VecDeque::new(),
            aside: VecDeque::new(),
            ready: VecDeque::new(),
            spare: Vec::new(),
            last_arrival: Instant::ZERO,
            bottleneck_busy_until: Instant::ZERO,
            counters: ImpairCounters::default(),
        }
    }

    /// Changes the impairments for frames that are sent from now on. The release times of frames
    /// that are already in the two stages do not change.
    #[allow(clippy::large_types_passed_by_value, reason = "called rarely")]
    pub fn set_impairment(&mut self, impairment: Impairment) {
        self.burst_begins = impairment.loss.of_burst(impairment.loss_burst);
        self.burst_remaining = 0;
        self.impairment = impairment;
    }

    /// Accepts a sent frame. The frame is dropped, or becomes ready to be received: at once, or
    /// after its delay and reordering.
    pub fn send(&mut self, frame: RxFrame<'_>, medium: Medium, now: Instant) {
        if self.offer(frame, medium, now) && !self.overflows() {
            self.keep(frame);
        }
    }

    /// Returns the counters of this direction.
    #[must_use]
    pub const fn counters(&self) -> &ImpairCounters {
        &self.counters
    }

    /// Accepts a sent frame. Returns true if the caller must pass the unchanged frame on to the
    /// receiver, before any frame from the queue of ready frames. Returns false if the frame was
    /// dropped, or if this direction holds a copy of it.
    pub(super) fn offer(&mut self, frame: RxFrame<'_>, medium: Medium, now: Instant) -> bool {
        let mut decisions =
            self.generators.draw(&self.impairment, self.burst_begins, frame.bytes.len());
        self.counters.offered += 1;
        if self.is_lost(&decisions) {
            self.counters.lost += 1;
            return false;
        }
        if self.is_too_long(frame.bytes.len()) {
            self.counters.too_long += 1;
            return false;
        }
        if decisions.marked {
            decisions.place_of_mark = place_of_mark(medium, frame.bytes);
        }
        if self.impairment.takes_time() {
            self.delay(frame, &decisions);
            // The delay of this frame may be zero. It then leaves the delay stage at once.
            self.release(now);
            return false;
        }
        let passes = !decisions.set_aside
            && decisions.flip.is_none()
            && decisions.place_of_mark.is_none()
            && self.ready.is_empty();
        if !passes {
            if self.overflows() {
                return false;
            }
            let copy = self.copy(frame, &decisions, decisions.set_aside);
            self.second_stage(copy, now);
        }
        self.count_marks(&decisions);
        if decisions.duplicate && !self.overflows() {
            self.counters.duplicated += 1;
            let copy = self.copy(frame, &decisions, false);
            self.second_stage(copy, now);
        }
        if passes {
            self.count_pass(now);
        }
        passes
    }

    /// Returns whether the frame is dropped at random, because it begins a burst of losses or
    /// belongs to a burst.
    fn is_lost(&mut self, decisions: &Decisions) -> bool {
        if self.burst_remaining > 0 {
            self.burst_remaining -= 1;
            return true;
        }
        if decisions.burst_begins {
            self.burst_remaining = self.impairment.loss_burst - 1;
        }
        decisions.burst_begins
    }

    /// Counts the ECN marks, duplicates and bit errors of a frame that was not dropped.
    fn count_marks(&mut self, decisions: &Decisions) {
        if decisions.marked {
            let counted = &mut self.counters;
            let counter = if decisions.place_of_mark.is_some() {
                &mut counted.marked
            } else {
                &mut counted.unmarkable
            };
            *counter += 1;
        }
        self.counters.corrupted += u64::from(decisions.flip.is_some());
    }

    /// Queues a copy of a frame as ready to be received. Called if [`offer`](Self::offer) has
    /// returned true, but the caller cannot pass the frame on at once. For example, the last
    /// segments of a GRO frame can exceed the receiver's budget.
    pub(super) fn keep(&mut self, frame: RxFrame<'_>) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame.bytes);
        let RxFrame { checksum, segment, arrived, .. } = frame;
        self.ready.push_back(Held { bytes, checksum, segment, arrived, set_aside: false });
    }

    fn is_too_long(&self, length: usize) -> bool {
        let Impairment { longest, longest_after, .. } = self.impairment;
        self.counters.offered > longest_after
            && longest.is_some_and(|longest| length as u64 > longest.count())
    }

    /// Moves the frames that are due by `now` out of the delay stage, and then out of the
    /// reordering stage, where they become ready to be received.
    pub fn release(&mut self, now: Instant) {
        while let Some(frame) = self.delayed.pop_front_if(|frame| frame.arrived <= now) {
            self.second_stage(frame, now);
        }
        while let Some(aside) = self.aside.pop_front_if(|aside| aside.until <= now) {
            self.become_ready(aside.frame, now);
        }
    }

    /// Removes and returns the next frame that is ready to be received; `None` if there is none.
    /// The caller should return the frame's buffer by [`recycle`](Self::recycle).
    pub fn pop(&mut self) -> Option<Held> {
        self.ready.pop_front()
    }

    /// Stores the buffer of a received frame, for reuse by a later frame.
    pub fn recycle(&mut self, frame: Held) {
        self.spare.push(frame.bytes);
    }

    /// Returns whether a frame is ready to be received.
    #[must_use]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns whether no frame is in the delay stage, in the reordering stage, or ready to be
    /// received.
    pub(super) fn is_empty(&self) -> bool {
        self.held() == 0
    }

    /// Returns the time at which the next frame leaves the delay stage or the reordering stage;
    /// [`Instant::NEVER`] if both are empty.
    #[must_use]
    pub fn next_release(&self) -> Instant {
        let delayed = self.delayed.front().map_or(Instant::NEVER, |frame| frame.arrived);
        let aside = self.aside.front().map_or(Instant::NEVER, |aside| aside.until);
        delayed.min(aside)
    }

    fn held(&self) -> usize {
        self.delayed.len() + self.aside.len() + self.ready.len()
    }

    /// Returns whether a frame must be dropped because the link already holds the maximum number of
    /// frames. If so, counts the frame as `overflowed`.
    fn overflows(&mut self) -> bool {
        let is_full = self.held() >= self.impairment.limit;
        self.counters.overflowed += u64::from(is_full);
        is_full
    }

    /// Puts a frame, and its duplicate if it has one, into the delay stage. A frame for which the
    /// queue of the bottleneck has no room is dropped.
    fn delay(&mut self, frame: RxFrame<'_>, decisions: &Decisions) {
        if self.overflows() {
            return;
        }
        let span = self.impairment.delay + decisions.jitter - self.impairment.jitter;
        let Some(leaves) = self.pass_bottleneck(&frame) else {
            self.counters.overflowed += 1;
            return;
        };
        self.last_arrival = self.last_arrival.max(leaves + span);
        let frame = RxFrame { arrived: self.last_arrival, ..frame };
        let original = self.copy(frame, decisions, decisions.set_aside);
        self.delayed.push_back(original);
        self.counters.delayed += 1;
        self.count_marks(decisions);
        if decisions.duplicate && !self.overflows() {
            self.counters.duplicated += 1;
            let copy = self.copy(frame, decisions, false);
            self.delayed.push_back(copy);
        }
    }

    /// Returns the time at which the frame leaves the bottleneck, or `None` if the queue in front
    /// of it is full.
    fn pass_bottleneck(&mut self, frame: &RxFrame<'_>) -> Option<Instant> {
        let Some(rate) = self.impairment.rate else { return Some(frame.arrived) };
        let free = self.bottleneck_busy_until.max(frame.arrived);
        let waiting = rate.bytes_in(free.since(frame.arrived));
        if waiting > self.impairment.queue {
            return None;
        }
        self.bottleneck_busy_until = free + rate.time_for(Bytes::new(frame.bytes.len() as u64));
        Some(self.bottleneck_busy_until)
    }

    /// Puts a frame that leaves the delay stage into the reordering stage if it was selected for
    /// reordering. Otherwise the frame becomes ready to be received.
    fn second_stage(&mut self, frame: Held, now: Instant) {
        if frame.set_aside {
            let until = now + self.impairment.reorder_within;
            self.aside.push_back(Overtaken { frame, passes: self.impairment.reorder_by, until });
            self.counters.reordered += 1;
        } else {
            self.ready.push_back(frame);
            self.count_pass(now);
        }
    }

    /// Notes that one more frame overtakes the frames in the reordering stage. Releases those that
    /// the configured number of frames have now overtaken.
    #[inline(always)]
    fn count_pass(&mut self, now: Instant) {
        if !self.aside.is_empty() {
            self.overtake(now);
        }
    }

    #[inline(never)]
    fn overtake(&mut self, now: Instant) {
        for aside in &mut self.aside {
            aside.passes = aside.passes.saturating_sub(1);
        }
        // Each frame in the reordering stage waits until a number of later frames have overtaken
        // it. This number is equal for all frames, so they are released in the order in which they
        // entered.
        while let Some(aside) = self.aside.pop_front_if(|aside| aside.passes == 0) {
            self.become_ready(aside.frame, now);
        }
    }

    fn become_ready(&mut self, mut frame: Held, now: Instant) {
        frame.arrived = frame.arrived.max(now);
        self.ready.push_back(frame);
    }

    /// Returns a copy of the frame, with a bit error and an ECN mark if `decisions` contains them.
    fn copy(&mut self, frame: RxFrame<'_>, decisions: &Decisions, set_aside: bool) -> Held {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame.bytes);
        if let Some(place) = decisions.place_of_mark {
            mark(&mut bytes, place);
        }
        let checksum = match decisions.flip {
            Some(bit) => {
                bit.flip(&mut bytes);
                RxChecksum::Unverified
            }
            None => frame.checksum,
        };
        let RxFrame { segment, arrived, .. } = frame;
        Held { bytes, checksum, segment, arrived, set_aside }
    }
}

/// The random decisions for one frame.
#[derive(Debug)]
struct Decisions {
    /// Whether the frame begins a burst of losses. Ignored while a burst is in progress.
    burst_begins: bool,
    /// Whether the frame is to get an ECN mark.
    marked: bool,
    /// The offset in the frame of the IP packet to mark; `None` if there is nothing to mark or the
    /// packet does not support ECN.
    place_of_mark: Option<usize>,
    duplicate: bool,
    set_aside: bool,
    flip: Option<Bit>,
    /// Random part of the delay: from zero to twice the configured jitter, uniformly distributed.
    /// The delay of the frame is this time plus the configured delay, less the configured jitter.
    jitter: Duration,
}

/// One random number generator for each impairment, so that the selection of one impairment does
/// not depend on the others.
#[derive(Debug)]
struct Generators {
    loss: Rand64,
    duplicate: Rand64,
    corrupt: Rand64,
    reorder: Rand64,
    jitter: Rand64,
    mark: Rand64,
}

impl Generators {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut source = || {
            Rand64::new(
                (u128::from(next_seed(&mut state)) << 64) | u128::from(next_seed(&mut state)),
            )
        };
        Self {
            loss: source(),
            duplicate: source(),
            corrupt: source(),
            reorder: source(),
            jitter: source(),
            mark: source(),
        }
    }

    /// Draws the decisions for a frame of `length` bytes. This is done even for a frame that will
    /// be lost, so that a loss does not shift the random numbers of later frames. An impairment
    /// that is not configured draws nothing, because a random number takes about fifty
    /// instructions.
    fn draw(
        &mut self,
        impairment: &Impairment,
        burst_begins: Probability,
        length: usize,
    ) -> Decisions {
        let &Impairment { duplicate, reorder, corrupt, mark, jitter, .. } = impairment;
        let burst_begins = burst_begins.is_possible() && burst_begins.hits(self.loss.rand_u64());
        let duplicate = duplicate.is_possible() && duplicate.hits(self.duplicate.rand_u64());
        let set_aside = reorder.is_possible() && reorder.hits(self.reorder.rand_u64());
        let flip =
            corrupt.is_possible().then(|| [self.corrupt.rand_u64(), self.corrupt.rand_u64()]);
        let flip = flip
            .filter(|&[hit, _]| corrupt.hits(hit) && length > 0)
            .map(|[_, at]| bit_at(at, length));
        let jitter = match jitter.as_nanos() {
            0 => Duration::ZERO,
            half => Duration::from_nanos(scale(self.jitter.rand_u64(), half.saturating_mul(2))),
        };
        let marked = mark.is_possible() && mark.hits(self.mark.rand_u64());
        Decisions { burst_begins, marked, place_of_mark: None, duplicate, set_aside, flip, jitter }
    }
}

/// Returns the bit of a frame of `length` bytes that the random number `draw` selects.
fn bit_at(draw: u64, length: usize) -> Bit {
    let bit = scale(draw, length as u64 * 8 - 1);
    Bit { byte: usize::try_from(bit / 8).unwrap_or(0).min(length - 1), mask: 1 << (bit % 8) }
}

/// Scales the uniformly distributed random number `draw` to a number from 0 to `most`.
fn scale(draw: u64, most: u64) -> u64 {
    u64::try_from((u128::from(draw) * (u128::from(most) + 1)) >> 64).unwrap_or(most)
}

/// Returns a seed for the next generator, and advances `state` (splitmix64). The seeds look
/// independent of each other, even those from states that differ by one bit.
pub(super) fn next_seed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

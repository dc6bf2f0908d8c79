//! One direction of an impaired link. It decides how each frame is impaired, and holds the frames
//! that were sent and not yet received.
//!
//! A frame that is not dropped passes two stages. The first stage delays frames, and keeps their
//! order. The second stage reorders frames: it holds selected frames until other frames have
//! overtaken them, and lets all others through. After both stages, a frame is ready to be received.
//! Frames that no stage holds and no impairment changes are passed on without a copy, unless
//! earlier frames still wait to be received.

use super::mark::{mark, place_of_mark};
use super::parameters::{Impairment, Probability};
use linerate_stack::{Medium, RxChecksum, RxFrame};
use linerate_units::{Bytes, Duration, Instant};
use oorandom::Rand64;
use std::collections::VecDeque;
use std::num::NonZeroU16;

/// The counters of one direction. A frame that arrives can increment several counters, such as
/// `marked` and `delayed`. A dropped frame increments `offered`, and the one counter for the reason
/// of the drop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImpairCounters {
    /// All frames that were sent in this direction, including those dropped afterwards.
    pub offered: u64,
    /// Frames dropped at random.
    pub lost: u64,
    /// Frames dropped because they were longer than [`Impairment::longest`].
    pub too_long: u64,
    /// Frames that got an ECN mark, as from a congested router.
    pub marked: u64,
    /// Frames that were selected for an ECN mark, but got none because their senders do not support
    /// ECN.
    pub unmarkable: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames with an inverted bit.
    pub corrupted: u64,
    /// Frames that the reordering stage held, so that other frames could overtake them.
    pub reordered: u64,
    /// Frames that entered the delay stage, because of a delay, jitter or a bottleneck.
    pub delayed: u64,
    /// Frames dropped because the link already held the maximum number of frames, or because the
    /// queue of the bottleneck was full. Includes duplicates for which the link had no room.
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
    /// While the frame is in the delay stage, the time at which it leaves this stage. Afterwards,
    /// the time at which it became ready to be received.
    arrived: Instant,
    /// Whether the frame was selected for reordering, so the second stage will hold it.
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

/// A frame that the reordering stage holds until other frames have overtaken it.
#[derive(Debug)]
struct Overtaken {
    frame: Held,
    /// The number of frames that must still overtake this frame before it is released.
    passes: u32,
    /// The latest time at which the frame is released, even if too few frames have overtaken it.
    until: Instant,
}

/// One direction of an impaired link. [`Impair`](super::Impair) has two of them. A simulated
/// network has two for each path.
#[derive(Debug)]
pub struct Lane {
    impairment: Impairment,
    generators: Generators,
    /// The probability with which a frame begins a burst of losses while no burst is in progress.
    burst_begins: Probability,
    /// The number of frames that the current burst of losses will still drop.
    burst_remaining: u32,
    /// Frames in the delay stage, in the order of `arrived`.
    delayed: VecDeque<Held>,
    /// Frames in the reordering stage, in the order in which they entered it.
    aside: VecDeque<Overtaken>,
    ready: VecDeque<Held>,
    /// Buffers of frames that have left this direction, for reuse by later frames.
    spare: Vec<Vec<u8>>,
    /// The time at which the most recently delayed frame leaves the delay stage. Frames that are
    /// sent later must not leave before this time, even if their delay is shorter because of
    /// jitter.
    last_arrival: Instant,
    /// The time at which the bottleneck has sent all frames that it has accepted.
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

    /// Changes the impairments. The new values apply to frames that are sent from now on, and to
    /// the reordering of frames that are still in the delay stage. The release times that frames
    /// already have do not change.
    #[allow(clippy::large_types_passed_by_value, reason = "called rarely")]
    pub fn set_impairment(&mut self, impairment: Impairment) {
        self.burst_begins = impairment.loss.of_burst(impairment.loss_burst);
        self.burst_remaining = 0;
        self.impairment = impairment;
    }

    /// Accepts a sent frame. The frame may be dropped. Otherwise it becomes ready to be received,
    /// immediately or after it has been delayed or reordered.
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

    /// Accepts a sent frame. Returns true if the frame is not impaired: the caller must then pass
    /// it on to the receiver, before any frame from the queue of ready frames. Returns false if the
    /// frame was dropped, or if this direction holds a copy of it, which the receiver gets later.
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
            // If the delay of this frame is zero, the frame leaves the delay stage at once.
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

    /// Returns whether the frame is dropped by random loss: it begins a burst of losses, or the
    /// current burst includes it.
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

    /// Counts the ECN mark and the bit error that were decided for a frame that is not dropped.
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

    /// Queues a copy of a frame as ready to be received. The caller uses this if
    /// [`offer`](Self::offer) has returned true, but the receiver takes no more frames in this
    /// call. For example, a GRO frame can have more segments than the rest of the receiver's
    /// budget.
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

    /// Moves all frames that are due by `now` on to the next stage: from the delay stage to the
    /// reordering stage, and from the reordering stage to the frames that are ready to be received.
    pub fn release(&mut self, now: Instant) {
        while let Some(frame) = self.delayed.pop_front_if(|frame| frame.arrived <= now) {
            self.second_stage(frame, now);
        }
        while let Some(aside) = self.aside.pop_front_if(|aside| aside.until <= now) {
            self.become_ready(aside.frame, now);
        }
    }

    /// Removes the next frame that is ready to be received, and returns it; `None` if there is
    /// none. After use, the caller should return the frame by [`recycle`](Self::recycle), so that
    /// its buffer is reused.
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

    /// Returns whether the link already holds the maximum number of frames, so that one more frame
    /// must be dropped. If so, counts that frame as `overflowed`.
    fn overflows(&mut self) -> bool {
        let is_full = self.held() >= self.impairment.limit;
        self.counters.overflowed += u64::from(is_full);
        is_full
    }

    /// Puts a copy of the frame into the delay stage, and a second copy if the frame is to be
    /// duplicated. Drops the frame if the link, or the queue of the bottleneck, has no room for it.
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

    /// Adds the frame to the queue of the bottleneck, and returns the time at which the bottleneck
    /// has sent it. Returns `None` if the queue is full.
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

    /// Counts that a frame has overtaken all frames in the reordering stage. Releases those that
    /// enough frames have now overtaken.
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
        // All frames in the reordering stage need an equal number of overtakings, unless the
        // configuration has changed since they entered it. So the frame that entered first is
        // released first.
        while let Some(aside) = self.aside.pop_front_if(|aside| aside.passes == 0) {
            self.become_ready(aside.frame, now);
        }
    }

    fn become_ready(&mut self, mut frame: Held, now: Instant) {
        frame.arrived = frame.arrived.max(now);
        self.ready.push_back(frame);
    }

    /// Returns a copy of the frame, which is marked and has an inverted bit if `decisions` says so.
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
    /// Whether the frame begins a burst of losses. Has no effect while a burst is in progress.
    burst_begins: bool,
    /// Whether the frame was selected for an ECN mark. It gets the mark only if it supports ECN.
    marked: bool,
    /// The offset in the frame of the IP packet that gets an ECN mark. `None` if the frame was not
    /// selected for a mark, or its packet does not support ECN.
    place_of_mark: Option<usize>,
    duplicate: bool,
    set_aside: bool,
    flip: Option<Bit>,
    /// Random part of the delay, uniformly distributed from zero to twice the configured jitter.
    /// The delay of the frame is the configured delay, minus the configured jitter, plus this time.
    jitter: Duration,
}

/// The random number generators, one for each impairment. If an impairment is switched on or off,
/// the other impairments thus still affect the frames that they affected before.
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

    /// Draws the random decisions for a frame of `length` bytes. The caller draws them even for a
    /// frame that is then lost, so that a loss does not shift the random numbers of later frames.
    /// No number is drawn for an impairment that is not configured, because that would take some
    /// fifty instructions.
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

/// Returns the bit in a frame of `length` bytes to which the random number `draw` corresponds.
fn bit_at(draw: u64, length: usize) -> Bit {
    let bit = scale(draw, length as u64 * 8 - 1);
    Bit { byte: usize::try_from(bit / 8).unwrap_or(0).min(length - 1), mask: 1 << (bit % 8) }
}

/// Converts `draw`, a uniformly distributed 64-bit number, to a uniformly distributed number from 0
/// to `most`.
fn scale(draw: u64, most: u64) -> u64 {
    u64::try_from((u128::from(draw) * (u128::from(most) + 1)) >> 64).unwrap_or(most)
}

/// Advances `state`, and returns a seed for the next generator (splitmix64). The seeds from two
/// states that differ by a single bit look statistically independent.
pub(super) fn next_seed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

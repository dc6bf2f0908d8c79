//! One direction of an impaired link: what becomes of each frame, and the frames under way.
//!
//! A frame that is not lost goes through two stages. The first is the delay, a queue in which nobody
//! overtakes. Behind it some frames are set aside until others have passed. What has gone through both
//! is ready. A frame that nothing holds up passes without being copied.

use super::mark::{mark, place_of_mark};
use super::parameters::Impairment;
use linerate_stack::{Medium, RxChecksum, RxFrame};
use linerate_units::{Bytes, Duration, Instant};
use oorandom::Rand64;
use std::collections::VecDeque;
use std::num::NonZeroU16;

/// What was done to the frames of one direction so far. A frame may be counted under several headings, but
/// what is thrown away is counted as that alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairCounters {
    /// Frames that came.
    pub offered: u64,
    /// Frames thrown away by chance.
    pub lost: u64,
    /// Frames thrown away for their length.
    pub too_long: u64,
    /// Frames that bear the mark of a congested router.
    pub marked: u64,
    /// Frames that were to be marked and passed as they were, because their senders do not allow it.
    pub unmarkable: u64,
    /// Frames that arrived a second time.
    pub duplicated: u64,
    /// Frames of which a bit was turned over.
    pub corrupted: u64,
    /// Frames set aside until others have passed.
    pub reordered: u64,
    /// Frames that were under way for a time.
    pub delayed: u64,
    /// Frames thrown away because too many were under way.
    pub overflowed: u64,
}

/// A bit of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bit {
    byte: usize,
    mask: u8,
}

impl Bit {
    /// Turns it over.
    fn flip(self, frame: &mut [u8]) {
        frame[self.byte] ^= self.mask;
    }
}

/// A frame under way.
#[derive(Debug)]
pub(super) struct Held {
    bytes: Vec<u8>,
    checksum: RxChecksum,
    /// Of a super-frame.
    segment: Option<NonZeroU16>,
    /// When it arrives, which is when it leaves the delay behind, or is no longer set aside.
    arrived: Instant,
    /// Whether it is to be set aside then.
    set_aside: bool,
}

impl Held {
    /// The frame as it arrives in the end.
    pub(super) fn frame(&self) -> RxFrame<'_> {
        let frame = RxFrame::plain(&self.bytes, self.arrived);
        RxFrame { checksum: self.checksum, segment: self.segment, ..frame }
    }
}

/// A frame that others are to pass.
#[derive(Debug)]
struct Aside {
    frame: Held,
    /// How many still have to.
    passes: u32,
    /// Until when it waits for them.
    until: Instant,
}

/// One direction.
#[derive(Debug)]
pub(super) struct Lane {
    impairment: Impairment,
    chance: Chance,
    /// In the order of `arrived`.
    delayed: VecDeque<Held>,
    /// In the order of `until`.
    aside: VecDeque<Aside>,
    ready: VecDeque<Held>,
    /// Memory of frames that have gone, for those to come.
    spare: Vec<Vec<u8>>,
    /// When the frame that was delayed last arrives.
    last_arrival: Instant,
    /// Until when the narrowest part of the way is taken.
    line_taken: Instant,
    counters: ImpairCounters,
}

impl Lane {
    /// A direction whose chances follow from `seed` and nothing else.
    pub(super) fn new(impairment: Impairment, seed: u64) -> Self {
        Self {
            impairment,
            chance: Chance::new(seed),
            delayed: VecDeque::new(),
            aside: VecDeque::new(),
            ready: VecDeque::new(),
            spare: Vec::new(),
            last_arrival: Instant::ZERO,
            line_taken: Instant::ZERO,
            counters: ImpairCounters::default(),
        }
    }

    /// What was done so far.
    pub(super) const fn counters(&self) -> &ImpairCounters {
        &self.counters
    }

    /// Judges a frame that came. True if it goes through at once, as it is, in front of all that are
    /// ready; otherwise it is lost, or ready now or later.
    pub(super) fn offer(&mut self, frame: RxFrame<'_>, medium: Medium, now: Instant) -> bool {
        let mut fate = self.chance.draw(&self.impairment, frame.bytes.len());
        self.counters.offered += 1;
        if fate.lost {
            self.counters.lost += 1;
            return false;
        }
        if self.is_too_long(frame.bytes.len()) {
            self.counters.too_long += 1;
            return false;
        }
        if fate.marked {
            fate.place_of_mark = place_of_mark(medium, frame.bytes);
        }
        if self.impairment.takes_time() {
            self.delay(frame, &fate);
            // It may be due already.
            self.release(now);
            return false;
        }
        let passes = !fate.set_aside
            && fate.flip.is_none()
            && fate.place_of_mark.is_none()
            && self.ready.is_empty();
        if !passes {
            if self.overflows() {
                return false;
            }
            let copy = self.copy(frame, &fate, fate.set_aside);
            self.depart(copy, now);
        }
        self.count_marks(&fate);
        if fate.duplicate && !self.overflows() {
            self.counters.duplicated += 1;
            let copy = self.copy(frame, &fate, false);
            self.depart(copy, now);
        }
        if passes {
            self.count_pass(now);
        }
        passes
    }

    /// Counts what the frame bears when it arrives.
    fn count_marks(&mut self, fate: &Fate) {
        if fate.marked {
            let counted = &mut self.counters;
            let counter = if fate.place_of_mark.is_some() {
                &mut counted.marked
            } else {
                &mut counted.unmarkable
            };
            *counter += 1;
        }
        self.counters.corrupted += u64::from(fate.flip.is_some());
    }

    /// Makes a frame ready that has gone through, and for which there is no room at the other end yet: one
    /// of many into which a single one was cut.
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

    /// Makes ready what is due.
    pub(super) fn release(&mut self, now: Instant) {
        while let Some(frame) = self.delayed.pop_front_if(|frame| frame.arrived <= now) {
            self.depart(frame, now);
        }
        while let Some(aside) = self.aside.pop_front_if(|aside| aside.until <= now) {
            self.become_ready(aside.frame, now);
        }
    }

    /// The next frame that is ready. Give it back with [`recycle`](Self::recycle).
    pub(super) fn pop(&mut self) -> Option<Held> {
        self.ready.pop_front()
    }

    /// Takes back the memory of a frame that has gone.
    pub(super) fn recycle(&mut self, frame: Held) {
        self.spare.push(frame.bytes);
    }

    /// Whether a frame is ready.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether no frame is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.held() == 0
    }

    /// When the next frame becomes ready by the passing of time.
    pub(super) fn next_release(&self) -> Instant {
        let delayed = self.delayed.front().map_or(Instant::NEVER, |frame| frame.arrived);
        let aside = self.aside.front().map_or(Instant::NEVER, |aside| aside.until);
        delayed.min(aside)
    }

    fn held(&self) -> usize {
        self.delayed.len() + self.aside.len() + self.ready.len()
    }

    /// Are too many frames under way for one more? Then that is thrown away.
    fn overflows(&mut self) -> bool {
        let is_full = self.held() >= self.impairment.limit;
        self.counters.overflowed += u64::from(is_full);
        is_full
    }

    /// The first stage: a place in the queue, and one for the copy. Who finds none takes no time on the line.
    fn delay(&mut self, frame: RxFrame<'_>, fate: &Fate) {
        if self.overflows() {
            return;
        }
        let span = self.impairment.delay + fate.jitter - self.impairment.jitter;
        let Some(leaves) = self.pass_line(&frame) else {
            self.counters.overflowed += 1;
            return;
        };
        self.last_arrival = self.last_arrival.max(leaves + span);
        let frame = RxFrame { arrived: self.last_arrival, ..frame };
        let original = self.copy(frame, fate, fate.set_aside);
        self.delayed.push_back(original);
        self.counters.delayed += 1;
        self.count_marks(fate);
        if fate.duplicate && !self.overflows() {
            self.counters.duplicated += 1;
            let copy = self.copy(frame, fate, false);
            self.delayed.push_back(copy);
        }
    }

    /// When the frame has left the narrowest part of the way behind; `None` if too many wait for it.
    fn pass_line(&mut self, frame: &RxFrame<'_>) -> Option<Instant> {
        let Some(rate) = self.impairment.rate else { return Some(frame.arrived) };
        let free = self.line_taken.max(frame.arrived);
        let waiting = rate.bytes_in(free.since(frame.arrived));
        if waiting > self.impairment.queue {
            return None;
        }
        self.line_taken = free + rate.time_for(Bytes::new(frame.bytes.len() as u64));
        Some(self.line_taken)
    }

    /// The second stage.
    fn depart(&mut self, frame: Held, now: Instant) {
        if frame.set_aside {
            let until = now + self.impairment.reorder_within;
            self.aside.push_back(Aside { frame, passes: self.impairment.reorder_by, until });
            self.counters.reordered += 1;
        } else {
            self.ready.push_back(frame);
            self.count_pass(now);
        }
    }

    /// A frame has passed those that are set aside; the first for which it was enough follow it.
    fn count_pass(&mut self, now: Instant) {
        for aside in &mut self.aside {
            aside.passes = aside.passes.saturating_sub(1);
        }
        // All are passed by the same frames, so those set aside first are free first.
        while let Some(aside) = self.aside.pop_front_if(|aside| aside.passes == 0) {
            self.become_ready(aside.frame, now);
        }
    }

    fn become_ready(&mut self, mut frame: Held, now: Instant) {
        frame.arrived = frame.arrived.max(now);
        self.ready.push_back(frame);
    }

    /// A copy of the frame as it is to arrive.
    fn copy(&mut self, frame: RxFrame<'_>, fate: &Fate, set_aside: bool) -> Held {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame.bytes);
        if let Some(place) = fate.place_of_mark {
            mark(&mut bytes, place);
        }
        let checksum = match fate.flip {
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

/// What was drawn for one frame.
#[derive(Debug)]
struct Fate {
    lost: bool,
    /// It is to be marked.
    marked: bool,
    /// Where the mark goes, once that is known.
    place_of_mark: Option<usize>,
    duplicate: bool,
    set_aside: bool,
    flip: Option<Bit>,
    /// From zero to twice the jitter.
    jitter: Duration,
}

/// The sources of chance, one for each impairment: which frames one of them hits does not depend on
/// whether another is switched on.
#[derive(Debug)]
struct Chance {
    loss: Rand64,
    duplicate: Rand64,
    corrupt: Rand64,
    reorder: Rand64,
    jitter: Rand64,
    mark: Rand64,
}

impl Chance {
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

    /// Draws for a frame of `length` bytes, the lost ones too, so that every source that is asked at all moves with the
    /// frames. What never happens is not asked for: a number costs some fifty instructions.
    fn draw(&mut self, impairment: &Impairment, length: usize) -> Fate {
        let &Impairment { loss, duplicate, reorder, corrupt, mark, jitter, .. } = impairment;
        let lost = loss.is_possible() && loss.hits(self.loss.rand_u64());
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
        Fate { lost, marked, place_of_mark: None, duplicate, set_aside, flip, jitter }
    }
}

/// The bit of a frame of `length` bytes for which `draw` was drawn.
fn bit_at(draw: u64, length: usize) -> Bit {
    let bit = scale(draw, length as u64 * 8 - 1);
    Bit { byte: usize::try_from(bit / 8).unwrap_or(0).min(length - 1), mask: 1 << (bit % 8) }
}

/// A number from 0 to `most`, each as likely as `draw` is one of all 64-bit numbers.
fn scale(draw: u64, most: u64) -> u64 {
    u64::try_from((u128::from(draw) * (u128::from(most) + 1)) >> 64).unwrap_or(most)
}

/// Numbers that have nothing to do with each other although the seeds do (splitmix64).
pub(super) fn next_seed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

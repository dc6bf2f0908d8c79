//! Distributes the queues of one link among the shards of one host. A shard hands over each
//! received frame that belongs to another shard.
//!
//! By default, a NIC chooses queues without regard to the shards. A kernel behind a TAP device
//! sends a flow to the queue on which it last received a packet of the flow, and a new flow to any
//! queue. Therefore each shard determines to which shard a received frame belongs ([`Steering`]).
//! It copies the frames of other shards into rings of these shards. A frame that arrives on the
//! queue of its own shard is not copied. Most frames do so in two cases: the NIC selects queues by
//! the hash of [`Steering`], or the kernel sends flows back to the queue that they came from.

mod counters;
mod handed_over_frame;

pub use counters::{HandoverWatch, Handovers};

use crate::eventfd::Eventfd;
use crate::sys::ring::{Consumer, Producer, ring};
use crate::wait::{Readiness, WaitError};
use handed_over_frame::PREFIX;
use linerate_stack::{
    Capabilities, FrameSource, Link, LinkError, Medium, RxFrame, Shard, Steered, Steering, TxFrame,
};
use linerate_units::Instant;
use std::num::NonZeroU16;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use thiserror::Error;

/// The size of the ring from one shard to another, in bytes. It has room for the data of a large
/// TCP window.
const RING_BYTES: usize = 1 << 20;
/// The minimum and the maximum number of frames in a ring.
const RING_FRAMES: (usize, usize) = (16, 512);
/// The length of an 802.1Q tag in bytes, by which a tagged frame exceeds the MTU of the link.
const TAG: usize = 4;

/// One queue of a link, for one shard of a host.
#[derive(Debug)]
pub struct ShardLink<L> {
    queue: L,
    shard: Shard,
    steering: Steering,
    medium: Medium,
    /// For each other shard, the ring by which this shard hands frames over to it; `None` for this
    /// shard itself.
    outboxes: Vec<Option<Outbox>>,
    /// The rings by which the other shards hand frames over to this shard.
    inboxes: Vec<Consumer>,
    /// Index of the inbox to be read next.
    turn: usize,
    /// Whether this shard's queue, and not the inboxes, gets the odd frame if the next `receive`
    /// divides an odd budget between the two.
    queue_is_first: bool,
    /// Event that other shards set when they put a frame into an inbox while this shard sleeps.
    wakeup: Arc<Eventfd>,
    counted: Handovers,
    watch: HandoverWatch,
}

/// A ring to another shard, which this shard writes.
#[derive(Debug)]
struct Outbox {
    ring: Producer,
    wakeup: Arc<Eventfd>,
}

/// The reason why queues cannot be shared among shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The number of queues is zero or exceeds the number of possible shards.
    #[error("a link of {0} queues cannot carry a host: give 1 to 65535, one for each shard")]
    Queues(usize),
    /// The system cannot create an eventfd.
    #[error(transparent)]
    Descriptor(#[from] WaitError),
}

/// Connects the queues of one link by rings, and returns one link for each shard of a host. `seed`
/// is the seed of the host, from which it derives the hash of flows.
///
/// # Errors
/// [`ShardError`] if there is no queue, or the system has no descriptor left.
pub fn share<L: Link>(queues: Vec<L>, seed: [u8; 32]) -> Result<Vec<ShardLink<L>>, ShardError> {
    let none = ShardError::Queues(queues.len());
    let count = u16::try_from(queues.len()).ok().and_then(NonZeroU16::new).ok_or(none)?;
    let mut links = Vec::new();
    for (number, queue) in (0..).zip(queues) {
        let event = Eventfd::new().map_err(|errno| WaitError { errno: errno.raw_os_error() })?;
        links.push(ShardLink {
            medium: queue.capabilities().medium,
            queue,
            shard: Shard { number, count },
            steering: Steering::new(seed, count),
            outboxes: Vec::new(),
            inboxes: Vec::new(),
            turn: 0,
            queue_is_first: false,
            wakeup: Arc::new(event),
            counted: Handovers::default(),
            watch: HandoverWatch::default(),
        });
    }
    for from in 0..links.len() {
        for to in 0..links.len() {
            let outbox = (from != to).then(|| {
                let room = PREFIX + links[from].queue.capabilities().room() + TAG;
                let frames = (RING_BYTES / room).clamp(RING_FRAMES.0, RING_FRAMES.1);
                let (ring, inbox) = ring(frames, room);
                links[to].inboxes.push(inbox);
                Outbox { ring, wakeup: Arc::clone(&links[to].wakeup) }
            });
            links[from].outboxes.push(outbox);
        }
    }
    Ok(links)
}

impl<L> ShardLink<L> {
    /// Returns the number of this shard, and the total number of shards.
    #[must_use]
    pub const fn shard(&self) -> Shard {
        self.shard
    }

    /// Returns the counters of frames that passed between shards.
    #[must_use]
    pub const fn handovers(&self) -> Handovers {
        self.counted
    }

    /// Returns a view with which another thread can read the counters of this shard's handovers.
    #[must_use]
    pub fn watch(&self) -> HandoverWatch {
        self.watch.clone()
    }

    /// Returns this shard's queue of the link.
    #[must_use]
    pub const fn queue(&self) -> &L {
        &self.queue
    }

    /// Returns this shard's queue of the link, and drops the rings to other shards.
    #[must_use]
    pub fn into_queue(self) -> L {
        self.queue
    }

    /// Reads up to `budget` frames that other shards have handed over, and passes them to
    /// `on_frame`. Returns the number of frames.
    fn take_in(&mut self, budget: usize, on_frame: &mut impl FnMut(RxFrame<'_>)) -> usize {
        let mut taken = 0;
        for _ in 0..self.inboxes.len() {
            if taken == budget {
                break;
            }
            let inbox = &mut self.inboxes[self.turn];
            while taken < budget
                && let Some((frame, stamp)) = inbox.next()
            {
                on_frame(handed_over_frame::read(frame, Instant::from_nanos(stamp)));
                taken += 1;
            }
            // `release` returns whether the producer sleeps until there is room, and would have to
            // be woken. The result is ignored, because other shards never sleep until an inbox has
            // room. They drop frames if it is full.
            let _ = inbox.release();
            // The next inbox is read in the next pass, or in the next call if the budget is used
            // up. So an inbox with many frames waits until all other inboxes have been read.
            self.turn = (self.turn + 1) % self.inboxes.len();
        }
        self.counted.taken += taken as u64;
        taken
    }
}

impl<L: Link> Link for ShardLink<L> {
    /// Receives frames from this shard's queue, and frames that other shards have handed over.
    /// Frames that arrive on the queue for another shard count towards the budget, too, because it
    /// takes time to hand them over.
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        // The budget is divided equally between this shard's queue and the inboxes, so that neither
        // of them is starved. The share of an odd frame alternates from call to call, so with a
        // budget of one, the queue and the inboxes are read alternately.
        let theirs = if self.queue_is_first { budget / 2 } else { budget.div_ceil(2) };
        self.queue_is_first = !self.queue_is_first;
        let received = self.take_in(theirs, &mut on_frame);
        let Self { queue, steering, medium, outboxes, counted, shard, .. } = self;
        let outcome =
            queue.receive(budget - received, |frame| match steering.steer(*medium, frame.bytes) {
                Steered::To(owner) if owner == shard.number => on_frame(frame),
                Steered::To(owner) => {
                    outboxes
                        .get_mut(usize::from(owner))
                        .into_iter()
                        .for_each(|outbox| hand_over(outbox, &frame, counted));
                }
                Steered::ToAll => {
                    outboxes.iter_mut().for_each(|outbox| hand_over(outbox, &frame, counted));
                    on_frame(frame);
                }
            });
        for outbox in outboxes.iter_mut().flatten() {
            if outbox.ring.publish() {
                outbox.wakeup.set();
            }
        }
        let received = outcome.map(|count| received + count);
        let taken = self.take_in(received.map_or(0, |received| budget - received), &mut on_frame);
        self.watch.publish(self.counted);
        Ok(received? + taken)
    }

    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        self.queue.transmit(budget, fill)
    }

    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.queue.transmit_from(budget, source)
    }

    fn hold_new_flows(&mut self, hold: bool) {
        self.queue.hold_new_flows(hold);
    }

    fn hand_over(&mut self, shard: u16, frame: RxFrame<'_>) {
        let Some(outbox) = self.outboxes.get_mut(usize::from(shard)) else { return };
        hand_over(outbox, &frame, &mut self.counted);
        if let Some(outbox) = outbox
            && outbox.ring.publish()
        {
            outbox.wakeup.set();
        }
        self.watch.publish(self.counted);
    }

    fn capabilities(&self) -> Capabilities {
        self.queue.capabilities()
    }
}

/// Puts a frame into `outbox`, and counts it as handed over or dropped. Does nothing if `outbox` is
/// `None`: the frame is for this shard itself.
fn hand_over(outbox: &mut Option<Outbox>, frame: &RxFrame<'_>, counted: &mut Handovers) {
    let Some(outbox) = outbox else { return };
    match handed_over_frame::put(&mut outbox.ring, frame) {
        Some(()) => counted.given += 1,
        None => counted.dropped += 1,
    }
}

impl<L: Readiness> Readiness for ShardLink<L> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.queue.fd()
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wakeup.as_fd())
    }

    fn wants_room(&self) -> bool {
        self.queue.wants_room()
    }

    fn is_ready(&mut self) -> bool {
        self.queue.is_ready() || self.inboxes.iter_mut().any(Consumer::has_frame)
    }

    fn prepare_to_sleep(&mut self) -> bool {
        let nothing_comes = self.inboxes.iter_mut().all(Consumer::fall_asleep);
        if nothing_comes && self.queue.prepare_to_sleep() {
            return true;
        }
        self.inboxes.iter().for_each(Consumer::awake);
        false
    }

    fn awake(&mut self, signalled: bool) {
        self.inboxes.iter().for_each(Consumer::awake);
        if signalled {
            self.wakeup.clear();
        }
        self.queue.awake(signalled);
    }

    fn next_deadline(&self) -> Instant {
        self.queue.next_deadline()
    }
}

#[cfg(test)]
mod tests;

//! Queues of one link, a host's shard on each: what a queue brings for another shard is handed on.
//!
//! A network card that spreads flows over its queues knows nothing of our shards, and a kernel that sends a
//! flow to the queue on which it last saw it sends the first segment of a new one anywhere. So each shard
//! looks whose a frame is ([`Steering`]); a strange one is copied into a ring from which its owner takes it.
//! Where the link steers as the host does, or has learnt to, nothing is copied.

use crate::bell::Bell;
use crate::sys::ring::{Consumer, Producer, ring};
use crate::wait::{Readiness, WaitError};
use linerate_stack::{
    Capabilities, FrameSource, Link, LinkError, Medium, PartialChecksum, RxChecksum, RxFrame,
    Shard, Steered, Steering, TxFrame,
};
use linerate_units::Instant;
use std::num::NonZeroU16;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// Bytes of frames on their way from one shard to another: enough for what a window holds.
const RING_BYTES: usize = 1 << 20;
/// Frames on their way, at least and at most.
const RING_FRAMES: (usize, usize) = (16, 512);
/// Bytes in front of a frame in a ring: what the link said of it.
const NOTE: usize = 8;
/// Bytes that a frame may be longer than the link's largest: a tag of 802.1Q.
const TAG: usize = 4;

/// What shards have to do with frames of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handovers {
    /// Frames that came in here and were handed to another shard; one for all shards counts for each.
    pub given: u64,
    /// Frames that came in elsewhere.
    pub taken: u64,
    /// Frames that were lost because the shard that they were for was too far behind.
    pub dropped: u64,
}

/// A look from another thread at what a shard has counted, as of the end of its last batch.
#[derive(Clone, Debug, Default)]
pub struct HandoverWatch {
    given: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
    dropped: Arc<AtomicU64>,
}

impl HandoverWatch {
    /// What the shard has counted.
    #[must_use]
    pub fn look(&self) -> Handovers {
        let [given, taken, dropped] = [&self.given, &self.taken, &self.dropped]
            .map(|counter| counter.load(Ordering::Relaxed));
        Handovers { given, taken, dropped }
    }

    fn show(&self, Handovers { given, taken, dropped }: Handovers) {
        for (counter, value) in
            [(&self.given, given), (&self.taken, taken), (&self.dropped, dropped)]
        {
            counter.store(value, Ordering::Relaxed);
        }
    }
}

/// One queue of a link for one shard of a host.
#[derive(Debug)]
pub struct ShardLink<L> {
    queue: L,
    shard: Shard,
    steering: Steering,
    medium: Medium,
    /// By shard; `None` at this one's place.
    outboxes: Vec<Option<Outbox>>,
    /// From every other shard.
    inboxes: Vec<Consumer>,
    /// Which of them is looked into next.
    turn: usize,
    /// Of an odd number of frames, does the queue get the larger half this time?
    queue_is_first: bool,
    /// Rung by the others when they have put something into an inbox while this shard sleeps.
    bell: Arc<Bell>,
    counted: Handovers,
    watch: HandoverWatch,
}

/// The way to another shard.
#[derive(Debug)]
struct Outbox {
    ring: Producer,
    bell: Arc<Bell>,
}

/// Why queues cannot be shared out among shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ShardError {
    /// The caller has given no queue, or more than there are numbers for.
    #[error("a link of {0} queues cannot carry a host: give 1 to 65535, one for each shard")]
    Queues(usize),
    /// The machine grants no eventfd.
    #[error(transparent)]
    Descriptor(#[from] WaitError),
}

/// The queues of one link, each with the ways to all others, for the shards of a host with this `seed`.
///
/// # Errors
/// [`ShardError`] for no queue at all, or a system that has no descriptor left.
pub fn share<L: Link>(queues: Vec<L>, seed: [u8; 32]) -> Result<Vec<ShardLink<L>>, ShardError> {
    let none = ShardError::Queues(queues.len());
    let count = u16::try_from(queues.len()).ok().and_then(NonZeroU16::new).ok_or(none)?;
    let mut links = Vec::new();
    for (number, queue) in (0..).zip(queues) {
        let bell = Bell::new().map_err(|errno| WaitError { errno: errno.raw_os_error() })?;
        links.push(ShardLink {
            medium: queue.capabilities().medium,
            queue,
            shard: Shard { number, count },
            steering: Steering::new(seed, count),
            outboxes: Vec::new(),
            inboxes: Vec::new(),
            turn: 0,
            queue_is_first: false,
            bell: Arc::new(bell),
            counted: Handovers::default(),
            watch: HandoverWatch::default(),
        });
    }
    for from in 0..links.len() {
        for to in 0..links.len() {
            let outbox = (from != to).then(|| {
                let room = NOTE + links[from].queue.capabilities().room() + TAG;
                let frames = (RING_BYTES / room).clamp(RING_FRAMES.0, RING_FRAMES.1);
                let (ring, inbox) = ring(frames, room);
                links[to].inboxes.push(inbox);
                Outbox { ring, bell: Arc::clone(&links[to].bell) }
            });
            links[from].outboxes.push(outbox);
        }
    }
    Ok(links)
}

impl<L> ShardLink<L> {
    /// Which shard this is.
    #[must_use]
    pub const fn shard(&self) -> Shard {
        self.shard
    }

    /// What it has had to do with frames of other shards.
    #[must_use]
    pub const fn handovers(&self) -> Handovers {
        self.counted
    }

    /// The same to be looked at while another thread turns the shard.
    #[must_use]
    pub fn watch(&self) -> HandoverWatch {
        self.watch.clone()
    }

    /// The queue.
    #[must_use]
    pub const fn queue(&self) -> &L {
        &self.queue
    }

    /// Gives the queue back.
    #[must_use]
    pub fn into_queue(self) -> L {
        self.queue
    }

    /// Hands up to `budget` frames of other queues to `on_frame`.
    fn take_in(&mut self, budget: usize, on_frame: &mut impl FnMut(RxFrame<'_>)) -> usize {
        let mut taken = 0;
        for _ in 0..self.inboxes.len() {
            if taken == budget {
                break;
            }
            let inbox = &mut self.inboxes[self.turn];
            while taken < budget
                && let Some((noted, stamp)) = inbox.next()
            {
                on_frame(read_note(noted, Instant::from_nanos(stamp)));
                taken += 1;
            }
            // The other end does not sleep for want of room: it drops.
            let _ = inbox.release();
            // Whoever hands over more than the budget has its turn again behind all others.
            self.turn = (self.turn + 1) % self.inboxes.len();
        }
        self.counted.taken += taken as u64;
        taken
    }
}

impl<L: Link> Link for ShardLink<L> {
    /// Frames that are handed to other shards are counted among those received: they were work.
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        // Neither side may keep the other from its turn, which for a budget of one is every second time.
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
                outbox.bell.ring();
            }
        }
        let received = outcome.map(|count| received + count);
        let taken = self.take_in(received.map_or(0, |received| budget - received), &mut on_frame);
        self.watch.show(self.counted);
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

    fn capabilities(&self) -> Capabilities {
        self.queue.capabilities()
    }
}

/// There is no way to the shard itself.
fn hand_over(outbox: &mut Option<Outbox>, frame: &RxFrame<'_>, counted: &mut Handovers) {
    let Some(outbox) = outbox else { return };
    match put(&mut outbox.ring, frame) {
        Some(()) => counted.given += 1,
        None => counted.dropped += 1,
    }
}

/// Puts the frame into the ring, if that has room.
fn put(ring: &mut Producer, frame: &RxFrame<'_>) -> Option<()> {
    let length = NOTE + frame.bytes.len();
    let mut slot = ring.offer()?;
    write_note(frame, slot.frame().get_mut(..length)?);
    slot.commit(length, frame.arrived.as_nanos());
    Some(())
}

const VERIFIED: u16 = 1;
const PARTIAL: u16 = 2;

/// What the link said of a frame in four numbers, and the frame.
fn write_note(frame: &RxFrame<'_>, into: &mut [u8]) {
    let (kind, place) = match frame.checksum {
        RxChecksum::Unverified => (0, PartialChecksum { start: 0, offset: 0 }),
        RxChecksum::Verified => (VERIFIED, PartialChecksum { start: 0, offset: 0 }),
        RxChecksum::Partial(place) => (PARTIAL, place),
    };
    let segment = frame.segment.map_or(0, NonZeroU16::get);
    let (note, bytes) = into.split_at_mut(NOTE);
    let (fields, _) = note.as_chunks_mut();
    for (field, value) in fields.iter_mut().zip([kind, place.start, place.offset, segment]) {
        *field = value.to_ne_bytes();
    }
    bytes.copy_from_slice(frame.bytes);
}

fn read_note(noted: &[u8], arrived: Instant) -> RxFrame<'_> {
    let (note, bytes) = noted.split_at_checked(NOTE).unwrap_or_default();
    let field = |at: usize| {
        note.get(at..at + 2).map_or(0, |field| u16::from_ne_bytes([field[0], field[1]]))
    };
    let checksum = match field(0) {
        VERIFIED => RxChecksum::Verified,
        PARTIAL => RxChecksum::Partial(PartialChecksum { start: field(2), offset: field(4) }),
        _ => RxChecksum::Unverified,
    };
    RxFrame { checksum, segment: NonZeroU16::new(field(6)), ..RxFrame::plain(bytes, arrived) }
}

impl<L: Readiness> Readiness for ShardLink<L> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.queue.fd()
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
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
            self.bell.silence();
        }
        self.queue.awake(signalled);
    }

    fn next_deadline(&self) -> Instant {
        self.queue.next_deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waiter;
    use crate::memory::{MemoryConfig, MemoryLink, queues};
    use crate::testing::{Brings, Sayer};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::net::SocketAddrV4;
    use std::thread;

    const SEED: [u8; 32] = [3; 32];

    /// A cable of `count` queues each way: the far end as it is, and the near one with shards.
    fn cable(config: MemoryConfig, count: usize) -> (Vec<MemoryLink>, Vec<ShardLink<MemoryLink>>) {
        let (far, near) = queues(config, count).unwrap();
        (far, share(near, SEED).unwrap())
    }

    fn bare() -> MemoryConfig {
        MemoryConfig { medium: Medium::Ip, ..MemoryConfig::default() }
    }

    /// A packet of the flow with this port at the peer, and its owner among `count` shards.
    fn segment(port: u16, count: u16) -> (Vec<u8>, usize) {
        let mut packet = vec![0; 60];
        (packet[0], packet[9]) = (0x45, 6);
        packet[12..20].copy_from_slice(&[192, 0, 2, 2, 192, 0, 2, 1]);
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        packet[22..24].copy_from_slice(&80_u16.to_be_bytes());
        let ends = ["192.0.2.2", "192.0.2.1"].map(|address| address.parse().unwrap());
        let [peer, local] = [SocketAddrV4::new(ends[0], port), SocketAddrV4::new(ends[1], 80)];
        let owner = Steering::new(SEED, NonZeroU16::new(count).unwrap()).of_connection(local, peer);
        (packet, usize::from(owner))
    }

    fn send(link: &mut impl Link, frame: &[u8]) {
        let sent = link.transmit(1, |bytes| {
            bytes[..frame.len()].copy_from_slice(frame);
            Some(TxFrame::whole(frame.len()))
        });
        assert_eq!(sent, Ok(1));
    }

    fn take(link: &mut impl Link) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        link.receive(64, |frame| frames.push(frame.bytes.to_vec())).unwrap();
        frames
    }

    #[test]
    fn whatever_queue_a_segment_comes_in_by_its_shard_gets_it() {
        let (mut far, mut near) = cable(bare(), 3);
        for port in 0..40 {
            let (packet, owner) = segment(port, 3);
            for queue in 0..3 {
                send(&mut far[queue], &packet);
                let arrived = take(&mut near[queue]);
                assert_eq!(arrived.len(), usize::from(queue == owner));
                if queue != owner {
                    assert_eq!(take(&mut near[owner]), std::slice::from_ref(&packet));
                }
            }
        }
        let given: u64 = near.iter().map(|shard| shard.handovers().given).sum();
        let taken: u64 = near.iter().map(|shard| shard.handovers().taken).sum();
        assert_eq!((given, taken), (80, 80));
    }

    #[test]
    fn what_the_link_said_of_a_frame_goes_with_it() {
        let (packet, _) = segment(1, 2);
        let partial = RxChecksum::Partial(PartialChecksum { start: 34, offset: 16 });
        for checksum in [RxChecksum::Unverified, RxChecksum::Verified, partial] {
            for segment in [None, NonZeroU16::new(1_448)] {
                let frame = RxFrame {
                    checksum,
                    segment,
                    ..RxFrame::plain(&packet, Instant::from_nanos(5))
                };
                let mut noted = vec![0; NOTE + packet.len()];
                write_note(&frame, &mut noted);
                let read = read_note(&noted, frame.arrived);
                assert_eq!(
                    (read.bytes, read.checksum, read.segment),
                    (&packet[..], checksum, segment)
                );
            }
        }
    }

    #[test]
    fn arp_reaches_every_shard() {
        let (mut far, mut near) = cable(MemoryConfig::default(), 3);
        let mut question = vec![0; 60];
        question[12..14].copy_from_slice(&[8, 6]);
        send(&mut far[1], &question);
        for shard in [1, 0, 2] {
            assert_eq!(take(&mut near[shard]), std::slice::from_ref(&question));
        }
    }

    #[test]
    fn a_shard_that_is_far_behind_loses_frames_and_they_are_counted() {
        let (mut far, mut near) = cable(bare(), 2);
        let (packet, owner) =
            (0..).map(|port| segment(port, 2)).find(|(_, owner)| *owner == 1).unwrap();
        for _ in 0..2_000 {
            send(&mut far[0], &packet);
            assert!(take(&mut near[0]).is_empty());
        }
        let Handovers { given, dropped, .. } = near[0].handovers();
        assert_eq!((given + dropped, dropped > 0), (2_000, true));
        let mut taken = 0;
        while let count @ 1.. = take(&mut near[owner]).len() {
            taken += count as u64;
        }
        assert_eq!(taken, given);
    }

    #[test]
    fn a_flood_of_strange_frames_does_not_keep_a_queue_from_its_turn() {
        let (mut far, mut near) = cable(bare(), 2);
        let of = |wanted| {
            (0..).map(|port| segment(port, 2)).find(|&(_, owner)| owner == wanted).unwrap().0
        };
        for _ in 0..64 {
            send(&mut far[1], &of(0));
        }
        take(&mut near[1]);
        send(&mut far[0], &of(0));
        let before = near[0].handovers().taken;
        assert_eq!(near[0].receive(2, |_| ()), Ok(2));
        assert_eq!(near[0].handovers().taken - before, 1, "one of each side");
    }

    /// The packet of a flow that is the shard's, of two.
    fn packet_of(shard: usize) -> Vec<u8> {
        (0..).map(|port| segment(port, 2)).find(|&(_, owner)| owner == shard).unwrap().0
    }

    #[test]
    fn a_flood_of_frames_of_its_own_does_not_keep_a_shard_from_what_others_hand_it() {
        let (mut far, mut near) = cable(bare(), 2);
        send(&mut far[1], &packet_of(0));
        take(&mut near[1]);
        for _ in 0..64 {
            send(&mut far[0], &packet_of(0));
        }
        assert_eq!(near[0].receive(2, |_| ()), Ok(2));
        assert_eq!(near[0].handovers().taken, 1, "one of each side");
    }

    #[test]
    fn whoever_takes_one_frame_at_a_time_takes_it_from_its_queue_and_from_others_by_turns() {
        let (mut far, mut near) = cable(bare(), 2);
        for _ in 0..8 {
            send(&mut far[0], &packet_of(0));
            send(&mut far[1], &packet_of(0));
        }
        take(&mut near[1]);
        for turns in 1..=4 {
            assert_eq!([(); 2].map(|()| near[0].receive(1, |_| ())), [Ok(1); 2]);
            assert_eq!(near[0].handovers().taken, turns);
        }
    }

    #[test]
    fn fewer_frames_than_are_wanted_come_only_if_there_are_no_more() {
        let (mut far, mut near) = cable(bare(), 2);
        for _ in 0..5 {
            send(&mut far[1], &packet_of(0));
        }
        take(&mut near[1]);
        send(&mut far[0], &packet_of(0));
        assert_eq!(near[0].receive(8, |_| ()), Ok(6));
        assert_eq!(near[0].receive(8, |_| ()), Ok(0));
    }

    #[test]
    fn shards_that_hand_over_much_are_looked_after_by_turns() {
        let (mut far, mut near) = cable(bare(), 3);
        let (packet, owner) = segment(1, 3);
        let others: Vec<_> = (0..3).filter(|&other| other != owner).collect();
        for &other in &others {
            for _ in 0..8 {
                send(&mut far[other], &[&packet[..], &[u8::try_from(other).unwrap()]].concat());
            }
            take(&mut near[other]);
        }
        let mut from = Vec::new();
        for _ in 0..4 {
            near[owner].receive(1, |frame| from.push(usize::from(frame.bytes[60]))).unwrap();
        }
        from.sort_unstable();
        assert_eq!(from, [others[0], others[0], others[1], others[1]]);
    }

    #[test]
    fn the_longest_frame_of_a_link_is_handed_over_with_a_tag_in_it_and_the_time_of_its_arrival() {
        let clock = crate::ManualClock::new(Instant::from_nanos(11));
        let pairs =
            [(); 2].map(|()| crate::memory::pair_with_clock(bare(), clock.clone()).unwrap());
        let (mut far, near): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let mut near = share(near, SEED).unwrap();
        let mut packet = packet_of(1);
        packet.resize(1_504, 7);
        send(&mut far[0], &packet);
        take(&mut near[0]);
        clock.advance(linerate_units::Duration::from_nanos(5));
        let mut seen = Vec::new();
        near[1].receive(9, |frame| seen.push((frame.bytes.to_vec(), frame.arrived))).unwrap();
        assert_eq!(seen, [(packet, Instant::from_nanos(11))]);
    }

    #[test]
    fn a_frame_that_is_longer_than_the_link_says_is_not_handed_over_and_is_counted() {
        let mut packet = packet_of(1);
        packet.resize(1_505, 7);
        let mut near = share(
            [(); 2].map(|()| Brings { frames: vec![packet.clone()], segment: None }).into(),
            SEED,
        )
        .unwrap();
        assert_eq!(near[0].receive(1, |_| ()), Ok(1));
        assert_eq!(near[0].handovers(), Handovers { dropped: 1, ..Handovers::default() });
    }

    #[test]
    fn another_thread_sees_what_a_shard_has_counted() {
        let (mut far, mut near) = cable(bare(), 2);
        let watches = [near[0].watch(), near[1].watch()];
        send(&mut far[0], &packet_of(1));
        take(&mut near[0]);
        take(&mut near[1]);
        for (watch, shard) in watches.iter().zip(&near) {
            assert_eq!(watch.look(), shard.handovers());
        }
        assert_eq!((watches[0].look().given, watches[1].look().taken), (1, 1));
    }

    #[test]
    fn a_shard_wants_room_and_has_something_due_when_its_queue_has() {
        for answer in [false, true] {
            let shards = share(vec![Sayer::new(answer), Sayer::new(answer)], SEED).unwrap();
            assert_eq!(shards[0].wants_room(), answer);
            assert_eq!(shards[0].next_deadline(), shards[0].queue().next_deadline());
        }
    }

    #[test]
    fn a_shard_is_ready_for_what_comes_by_its_queue_and_for_what_it_is_handed() {
        let (mut far, mut near) = cable(bare(), 2);
        assert!(!near[0].is_ready());
        send(&mut far[0], &packet_of(0));
        assert!(near[0].is_ready());
        take(&mut near[0]);
        send(&mut far[1], &packet_of(0));
        take(&mut near[1]);
        assert!(near[0].is_ready());
        take(&mut near[0]);
        assert!(!near[0].is_ready());
    }

    /// Is whoever sleeps there woken by another shard?
    fn rings(link: &ShardLink<MemoryLink>) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(link.bell.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }

    #[test]
    fn a_shard_that_sleeps_is_woken_by_another_and_can_sleep_again_when_it_was_handed_all() {
        let (mut far, mut near) = cable(bare(), 2);
        assert!(near[0].prepare_to_sleep() && !rings(&near[0]));
        send(&mut far[1], &packet_of(0));
        take(&mut near[1]);
        assert!(rings(&near[0]));
        near[0].awake(true);
        take(&mut near[0]);
        assert!(near[0].prepare_to_sleep() && !rings(&near[0]));
    }

    #[test]
    fn a_shard_that_is_awake_is_not_rung_for() {
        let (mut far, mut near) = cable(bare(), 2);
        assert!(near[0].prepare_to_sleep());
        near[0].awake(false);
        send(&mut far[1], &packet_of(0));
        take(&mut near[1]);
        assert!(!rings(&near[0]));
        take(&mut near[0]);
        send(&mut far[0], &packet_of(0));
        assert!(!near[0].prepare_to_sleep(), "its queue has something");
        send(&mut far[1], &packet_of(0));
        take(&mut near[1]);
        assert!(!rings(&near[0]));
    }

    #[test]
    fn a_shard_does_not_sleep_over_what_any_other_has_handed_it() {
        let (packet, owner) = segment(1, 3);
        for other in (0..3).filter(|&other| other != owner) {
            let (mut far, mut near) = cable(bare(), 3);
            send(&mut far[other], &packet);
            take(&mut near[other]);
            assert!(!near[owner].prepare_to_sleep());
        }
    }

    #[test]
    fn a_shard_that_its_queue_has_woken_can_sleep_again() {
        let (mut far, mut near) = cable(bare(), 2);
        let mut waiter = Waiter::new().unwrap();
        assert!(near[0].prepare_to_sleep());
        send(&mut far[0], &packet_of(0));
        near[0].awake(true);
        take(&mut near[0]);
        assert!(!waiter.wait(&mut near[0], Instant::ZERO).unwrap().link);
    }

    #[test]
    fn no_queue_is_no_link() {
        assert_eq!(share(Vec::<MemoryLink>::new(), SEED).unwrap_err(), ShardError::Queues(0));
    }

    #[test]
    fn a_sleeping_shard_wakes_for_what_others_hand_it_however_the_threads_interleave() {
        const FRAMES: usize = 4_000;
        let (mut far, mut near) = cable(bare(), 2);
        let (packet, _) =
            (0..).map(|port| segment(port, 2)).find(|(_, owner)| *owner == 1).unwrap();
        let (mut sleeper, mut giver) = (near.remove(1), near.remove(0));
        let taking = thread::spawn(move || {
            let (mut waiter, mut taken) = (Waiter::new().unwrap(), 0);
            while taken < FRAMES {
                let count = sleeper.receive(64, |_| ()).unwrap();
                taken += count;
                if count == 0 {
                    waiter.wait(&mut sleeper, Instant::NEVER).unwrap();
                }
            }
        });
        let mut given = 0;
        while given < FRAMES {
            send(&mut far[0], &packet);
            giver.receive(64, |_| ()).unwrap();
            // One that was dropped is sent again.
            given = usize::try_from(giver.handovers().given).unwrap();
        }
        taking.join().unwrap();
    }
}

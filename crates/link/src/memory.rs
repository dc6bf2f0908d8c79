//! A link inside of the process: two ends, each of which may live in a thread of its own.
//!
//! A frame is written once, into the memory from which the other end reads it. There is no line and
//! no rate; what there is when the ring is full is a link without room.
//!
//! Of the system it asks for event descriptors, and for `membarrier`, without which each batch of frames costs some
//! ten nanoseconds more: a sandbox that ends whoever calls what it does not know has to know both.

use crate::MonotonicClock;
use crate::bell::Bell;
use crate::filler::Filler;
use crate::sys::ring::{Consumer, Producer, ring};
use crate::wait::Readiness;
use linerate_stack::{
    Capabilities, FrameSink, FrameSlots, FrameSource, Link, LinkError, Medium, PlainFrame,
    RxChecksum, RxFrame, SMALLEST_MTU, TxFrame,
};
use linerate_units::{Clock, Instant, Rate};
use std::hint::cold_path;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use thiserror::Error;

/// Room for one 802.1Q tag in front of a packet of the full MTU.
const TAG: usize = 4;
/// After so many frames of one batch the other end is shown what is there, so that it can begin.
const SHOWN_AT_ONCE: usize = 16;

/// How the two ends of a memory link are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Bytes of the largest IP packet; [`SMALLEST_MTU`] to 65,535.
    pub mtu: usize,
    /// Frames that fit into each direction, rounded up to a power of two; 1 to 65,536.
    pub capacity: usize,
    /// What the frames begin with.
    pub medium: Medium,
    /// What the receiving host is told of the checksums. They are always there; a host that sums them
    /// all the same does the work that it would do on a wire.
    pub checksum: RxChecksum,
    /// The bit rate to claim. Nothing slows the frames down to it.
    pub rate: Option<Rate>,
}

/// An Ethernet of 1,500 bytes, 256 frames each way, checksums to be verified.
impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            mtu: 1_500,
            capacity: 256,
            medium: Medium::Ethernet,
            checksum: RxChecksum::Unverified,
            rate: None,
        }
    }
}

/// Why there is no memory link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MemoryError {
    /// The caller asked for packets that IPv4 does not know, or that are too small for a host.
    #[error("a link cannot have an MTU of {0} bytes: choose {SMALLEST_MTU} to 65535")]
    Mtu(usize),
    /// The caller asked for no frames at all, or for too many.
    #[error("a link cannot hold {0} frames each way: choose 1 to 65536")]
    Capacity(usize),
    /// The machine grants no eventfd.
    #[error(
        "the system grants no wake-up descriptor (error {errno}): close files, or raise the limit `ulimit -n`"
    )]
    Descriptor {
        /// The error number of the system.
        errno: i32,
    },
}

/// Two ends, connected to each other.
///
/// # Errors
/// [`MemoryError`] for a configuration that cannot be, or a system that has no descriptor left.
pub fn pair(config: MemoryConfig) -> Result<(MemoryLink, MemoryLink), MemoryError> {
    pair_with_clock(config, MonotonicClock)
}

/// The queues of two ends that have `count` each: what one end sends on a queue comes out of the same queue of
/// the other.
///
/// # Errors
/// As for [`pair`].
pub fn queues(
    config: MemoryConfig,
    count: usize,
) -> Result<(Vec<MemoryLink>, Vec<MemoryLink>), MemoryError> {
    (0..count).map(|_| pair(config)).collect()
}

/// Two ends, connected to each other, that stamp arriving frames by `clock`.
///
/// # Errors
/// As for [`pair`].
pub fn pair_with_clock<C: Clock + Clone>(
    config: MemoryConfig,
    clock: C,
) -> Result<(MemoryLink<C>, MemoryLink<C>), MemoryError> {
    if !(SMALLEST_MTU..=65_535).contains(&config.mtu) {
        return Err(MemoryError::Mtu(config.mtu));
    }
    if !(1..=65_536).contains(&config.capacity) {
        return Err(MemoryError::Capacity(config.capacity));
    }
    let room = config.mtu + config.medium.header_length() + TAG;
    let (to_right, from_left) = ring(config.capacity, room);
    let (to_left, from_right) = ring(config.capacity, room);
    let (left, right) = (new_bell()?, new_bell()?);
    let end = |sender, receiver, bell: &Arc<Bell>, other: &Arc<Bell>, clock| MemoryLink {
        sender,
        receiver,
        starved: false,
        config,
        clock,
        bell: Arc::clone(bell),
        other: OtherEnd(Arc::clone(other)),
    };
    let left_end = end(to_right, from_right, &left, &right, clock.clone());
    Ok((left_end, end(to_left, from_left, &right, &left, clock)))
}

fn new_bell() -> Result<Arc<Bell>, MemoryError> {
    let bell =
        Bell::new().map_err(|errno| MemoryError::Descriptor { errno: errno.raw_os_error() })?;
    Ok(Arc::new(bell))
}

/// One end of a link inside of the process. When the other end is dropped, the frames on their way
/// still arrive, and then the link is down.
#[derive(Debug)]
pub struct MemoryLink<C = MonotonicClock> {
    sender: Producer,
    receiver: Consumer,
    /// Whether the last transmission ended because the ring was full.
    starved: bool,
    config: MemoryConfig,
    clock: C,
    bell: Arc<Bell>,
    // Last, because fields are dropped in order: the other end is woken when it can see why.
    other: OtherEnd,
}

impl<C: Clock> Link for MemoryLink<C> {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        self.receive_into(budget, &mut on_frame)
    }

    #[inline(always)]
    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        if budget == 0 {
            return Ok(0);
        }
        if !self.receiver.has_frame() {
            // Asked in this order: what was sent before the other end went is seen by then.
            let is_down = self.receiver.is_abandoned() && !self.receiver.has_frame();
            return if is_down { Err(LinkError::Down) } else { Ok(0) };
        }
        let arrived = Instant::from_nanos;
        let frames = self.receiver.frames(budget);
        match self.config.checksum {
            RxChecksum::Unverified => {
                sink.take_plain(
                    frames.map(|(bytes, stamp)| PlainFrame { bytes, arrived: arrived(stamp) }),
                );
            }
            checksum => frames.for_each(|(bytes, stamp)| {
                sink.take(RxFrame { checksum, ..RxFrame::plain(bytes, arrived(stamp)) });
            }),
        }
        let received = self.receiver.taken();
        if self.receiver.release() {
            self.other.wake();
        }
        Ok(received)
    }

    #[inline]
    fn foresee(&mut self, budget: usize, look: impl FnMut(&[u8])) {
        if self.receiver.has_frame() {
            (0..budget).map_while(|ahead| self.receiver.peek(ahead)).for_each(look);
        }
    }

    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let now = self.clock.now();
        self.transmit_from(budget, &mut Filler { now, fill })
    }

    /// The frames of a host bear the time of its turn.
    #[inline(always)]
    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.starved = false;
        // A host that only hears has nothing to send in most of its turns, and learns that the other end is gone when it
        // looks for frames.
        if !source.has_frames() {
            return Ok(0);
        }
        if self.sender.is_abandoned() {
            cold_path();
            return Err(LinkError::Down);
        }
        self.sender.start_over();
        let mut slots = Slots { stamp: source.now().as_nanos(), left: budget, link: self };
        source.fill_all(&mut slots);
        let sent = budget - slots.left;
        self.show();
        Ok(sent)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            rate: self.config.rate,
            ..Capabilities::new(self.config.medium, self.config.mtu)
        }
    }
}

impl<C> MemoryLink<C> {
    /// Shows the other end what there is.
    fn show(&mut self) {
        if self.sender.publish() {
            self.other.wake();
        }
    }
}

/// The empty frames of one transmission.
struct Slots<'a, C> {
    link: &'a mut MemoryLink<C>,
    /// When all of them leave.
    stamp: u64,
    /// How many may still.
    left: usize,
}

impl<C> FrameSlots for Slots<'_, C> {
    #[inline(always)]
    fn offer(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<TxFrame>) -> bool {
        if self.left == 0 {
            return false;
        }
        let Some(mut slot) = self.link.sender.offer() else {
            self.link.starved = true;
            return false;
        };
        let Some(frame) = fill(slot.frame()) else { return false };
        slot.commit(frame.length, self.stamp);
        self.left -= 1;
        if self.left.is_multiple_of(SHOWN_AT_ONCE) {
            self.link.show();
        }
        true
    }
}

impl<C: Clock> Readiness for MemoryLink<C> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn is_ready(&mut self) -> bool {
        self.receiver.has_frame()
            || self.receiver.is_abandoned()
            || (self.starved && self.sender.has_room())
    }

    /// The bell tells of room, too, so there is no need to poll for it.
    fn prepare_to_sleep(&mut self) -> bool {
        let sleeps = self.receiver.fall_asleep()
            && !self.receiver.is_abandoned()
            && (!self.starved || self.sender.fall_asleep());
        if !sleeps {
            self.awake(false);
        }
        sleeps
    }

    fn awake(&mut self, signalled: bool) {
        self.receiver.awake();
        self.sender.awake();
        if signalled {
            self.bell.silence();
        }
    }
}

/// The bell of the other end, which also rings when this end is gone.
#[derive(Debug)]
struct OtherEnd(Arc<Bell>);

impl OtherEnd {
    fn wake(&self) {
        self.0.ring();
    }
}

impl Drop for OtherEnd {
    fn drop(&mut self) {
        self.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Speaker, send};
    use crate::{ManualClock, Waiter};
    use linerate_units::Duration;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::thread;

    fn take<C: Clock>(link: &mut MemoryLink<C>) -> Vec<(Vec<u8>, Instant)> {
        let mut frames = Vec::new();
        link.receive(usize::MAX, |frame| frames.push((frame.bytes.to_vec(), frame.arrived)))
            .unwrap();
        frames
    }

    /// A link of one frame each way.
    fn narrow() -> (MemoryLink, MemoryLink) {
        pair(MemoryConfig { capacity: 1, ..MemoryConfig::default() }).unwrap()
    }

    /// Is whoever sleeps there woken?
    fn rings(link: &MemoryLink) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(link.fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }

    #[test]
    fn what_one_end_sends_the_other_receives_with_the_time_at_which_it_was_sent() {
        let clock = ManualClock::new(Instant::from_nanos(100));
        let (mut left, mut right) =
            pair_with_clock(MemoryConfig::default(), clock.clone()).unwrap();
        assert_eq!(send(&mut left, [b"to the right"]), Ok(1));
        assert_eq!(send(&mut right, [&b"to the left"[..], b"again"]), Ok(2));
        clock.advance(Duration::from_nanos(11));
        assert_eq!(take(&mut right), [(b"to the right".to_vec(), Instant::from_nanos(100))]);
        assert_eq!(take(&mut left).len(), 2);
        assert!(take(&mut left).is_empty());
    }

    #[test]
    fn what_a_host_sends_bears_the_time_of_its_turn() {
        let clock = ManualClock::new(Instant::from_nanos(100));
        let (mut left, mut right) = pair_with_clock(MemoryConfig::default(), clock).unwrap();
        assert_eq!(
            left.transmit_from(9, &mut Speaker(Instant::from_nanos(70), Some(b"now"))),
            Ok(1)
        );
        assert_eq!(take(&mut right), [(b"now".to_vec(), Instant::from_nanos(70))]);
    }

    #[test]
    fn a_full_link_offers_nothing_and_a_budget_is_kept_on_both_sides() {
        let config = MemoryConfig { capacity: 4, ..MemoryConfig::default() };
        let (mut left, mut right) = pair(config).unwrap();
        assert_eq!(left.transmit(3, |_| Some(TxFrame::whole(60))), Ok(3));
        assert_eq!(left.transmit(3, |_| Some(TxFrame::whole(60))), Ok(1));
        assert_eq!(left.transmit(3, |_| panic!("there is no room")), Ok(0));
        assert_eq!(right.receive(3, |_| ()), Ok(3));
        assert_eq!(right.receive(3, |_| ()), Ok(1));
    }

    #[test]
    fn an_offered_frame_has_room_for_the_largest_packet_behind_a_tagged_header() {
        for medium in [Medium::Ethernet, Medium::Ip] {
            let (mut left, _right) =
                pair(MemoryConfig { medium, ..MemoryConfig::default() }).unwrap();
            let capabilities = left.capabilities();
            let mut room = 0;
            left.transmit(1, |bytes| {
                room = bytes.len();
                None
            })
            .unwrap();
            assert_eq!(room, capabilities.frame_length() + 4);
        }
    }

    #[test]
    fn the_link_is_down_once_the_other_end_is_gone_and_its_last_frame_was_read() {
        let (mut left, mut right) = pair(MemoryConfig::default()).unwrap();
        send(&mut left, [b"last words"]).unwrap();
        drop(left);
        let mut waiter = Waiter::new().unwrap();
        assert!(waiter.wait(&mut right, Instant::NEVER).unwrap().link);
        assert_eq!(take(&mut right).len(), 1);
        assert!(waiter.wait(&mut right, Instant::NEVER).unwrap().link);
        assert!(right.is_ready(), "to say so");
        assert_eq!(right.receive(1, |_| ()), Err(LinkError::Down));
        assert_eq!(right.transmit(1, |_| None), Err(LinkError::Down));
    }

    #[test]
    fn what_cannot_be_configured_is_refused_with_the_range_that_can() {
        let mtu = MemoryConfig { mtu: 87, ..MemoryConfig::default() };
        let error = pair(mtu).unwrap_err();
        assert!(
            error == MemoryError::Mtu(87) && error.to_string().contains("88 to 65535"),
            "{error}"
        );
        let capacity = MemoryConfig { capacity: 0, ..MemoryConfig::default() };
        assert!(pair(capacity).unwrap_err().to_string().contains("1 to 65536"));
    }

    #[test]
    fn the_smallest_and_the_largest_of_what_can_be_configured_are_links() {
        for (mtu, capacity) in [(88, 1), (65_535, 1), (88, 65_536)] {
            pair(MemoryConfig { mtu, capacity, ..MemoryConfig::default() }).unwrap();
        }
        for (mtu, capacity) in [(65_536, 1), (88, 65_537)] {
            pair(MemoryConfig { mtu, capacity, ..MemoryConfig::default() }).unwrap_err();
        }
    }

    #[test]
    fn a_frame_comes_with_what_the_receiver_is_to_be_told_of_its_checksum() {
        for checksum in [RxChecksum::Unverified, RxChecksum::Verified] {
            let config = MemoryConfig { checksum, ..MemoryConfig::default() };
            let clock = ManualClock::new(Instant::from_nanos(3));
            let (mut left, mut right) = pair_with_clock(config, clock).unwrap();
            send(&mut left, [b"summed"]).unwrap();
            let mut told = None;
            right.receive(1, |frame| told = Some((frame.checksum, frame.arrived))).unwrap();
            assert_eq!(told, Some((checksum, Instant::from_nanos(3))));
        }
    }

    #[test]
    fn the_next_frames_are_foreseen_in_their_order_and_arrive_all_the_same() {
        let (mut left, mut right) = pair(MemoryConfig::default()).unwrap();
        let foreseen = |link: &mut MemoryLink, budget| {
            let mut frames = Vec::new();
            link.foresee(budget, |bytes| frames.push(bytes.to_vec()));
            frames
        };
        assert!(foreseen(&mut right, 9).is_empty());
        send(&mut left, [b"1", b"2", b"3"]).unwrap();
        assert_eq!(foreseen(&mut right, 2), [b"1", b"2"]);
        assert_eq!(right.receive(1, |frame| assert_eq!(frame.bytes, b"1")), Ok(1));
        assert_eq!(foreseen(&mut right, 9), [b"2", b"3"]);
        assert_eq!(take(&mut right).len(), 2);
        assert!(foreseen(&mut right, 9).is_empty());
    }

    #[test]
    fn the_first_frames_of_a_long_batch_are_seen_while_the_rest_is_written() {
        let (mut left, mut right) = pair(MemoryConfig::default()).unwrap();
        let (mut written, mut seen) = (0, 0);
        let sent = left.transmit(2 * SHOWN_AT_ONCE, |_| {
            seen += take(&mut right).len();
            written += 1;
            Some(TxFrame::whole(60))
        });
        assert_eq!(
            (sent, written, seen),
            (Ok(2 * SHOWN_AT_ONCE), 2 * SHOWN_AT_ONCE, SHOWN_AT_ONCE)
        );
    }

    #[test]
    fn who_had_no_room_is_ready_when_there_is_some_and_no_longer_when_it_was_used() {
        let (mut left, mut right) = narrow();
        assert_eq!(send(&mut left, [b"1", b"2"]), Ok(1));
        assert!(!left.is_ready());
        take(&mut right);
        assert!(left.is_ready());
        assert_eq!(left.transmit(1, |_| Some(TxFrame::whole(60))), Ok(1));
        take(&mut right);
        assert!(!left.is_ready(), "nobody wants the room");
    }

    #[test]
    fn who_sleeps_is_woken_by_a_frame_and_can_sleep_again_when_it_was_taken() {
        let (mut left, mut right) = pair(MemoryConfig::default()).unwrap();
        assert!(right.prepare_to_sleep() && !rings(&right));
        send(&mut left, [b"wake up"]).unwrap();
        assert!(rings(&right));
        right.awake(true);
        take(&mut right);
        assert!(right.prepare_to_sleep() && !rings(&right));
    }

    #[test]
    fn who_sleeps_for_want_of_room_is_woken_when_there_is_some() {
        let (mut left, mut right) = narrow();
        assert_eq!(send(&mut left, [b"1", b"2"]), Ok(1));
        assert!(left.prepare_to_sleep() && !rings(&left));
        take(&mut right);
        assert!(rings(&left));
    }

    #[test]
    fn who_sleeps_is_woken_when_the_other_end_goes() {
        let (left, mut right) = pair(MemoryConfig::default()).unwrap();
        assert!(right.prepare_to_sleep() && !rings(&right));
        drop(left);
        assert!(rings(&right));
    }

    #[test]
    fn nobody_rings_for_one_who_woke_by_itself() {
        let (mut left, mut right) = narrow();
        assert_eq!(send(&mut left, [b"1", b"2"]), Ok(1));
        assert!(left.prepare_to_sleep());
        left.awake(false);
        take(&mut right);
        send(&mut right, [b"3"]).unwrap();
        assert!(!rings(&left));
    }

    #[test]
    fn nobody_rings_for_one_who_found_room_before_it_slept() {
        let (mut left, mut right) = narrow();
        assert_eq!(send(&mut left, [b"1", b"2"]), Ok(1));
        take(&mut right);
        assert!(!left.prepare_to_sleep());
        send(&mut right, [b"3"]).unwrap();
        assert!(!rings(&left));
    }

    #[test]
    fn a_sleeper_wakes_for_a_frame_and_for_room_however_the_threads_interleave() {
        const FRAMES: u64 = 8_000;
        // So small that each end sleeps for want of room about as often as for want of frames.
        let config = MemoryConfig { capacity: 2, ..MemoryConfig::default() };
        let (mut left, mut right) = pair(config).unwrap();
        let sender = thread::spawn(move || {
            let mut waiter = Waiter::new().unwrap();
            let mut next = 0_u64;
            while next < FRAMES {
                left.transmit(3, |bytes| {
                    bytes[..8].copy_from_slice(&next.to_be_bytes());
                    next += 1;
                    (next <= FRAMES).then_some(TxFrame::whole(60))
                })
                .unwrap();
                if next < FRAMES {
                    waiter.wait(&mut left, Instant::NEVER).unwrap();
                }
            }
        });
        let mut waiter = Waiter::new().unwrap().with_spins(2);
        let mut next = 0;
        while next < FRAMES {
            let outcome = right.receive(64, |frame| {
                assert_eq!(frame.bytes[..8], next.to_be_bytes());
                next += 1;
            });
            if outcome == Ok(0) {
                waiter.wait(&mut right, Instant::NEVER).unwrap();
            }
        }
        sender.join().unwrap();
    }
}

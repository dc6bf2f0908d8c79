//! A link inside the process. Each of its two endpoints can be used by a different thread.
//!
//! Each direction is a ring of frame buffers. The sender writes a frame into a buffer of the ring,
//! and the receiver reads it there, so nothing is copied or delayed. While the ring is full, the
//! link accepts no more frames.
//!
//! The link uses the system calls `eventfd2` and `membarrier`. If the system refuses `membarrier`,
//! the link works without it, and each batch of frames takes some ten nanoseconds more. A sandbox
//! that kills the process for a system call that it does not list must list both.

use crate::MonotonicClock;
use crate::closure_source::ClosureSource;
use crate::eventfd::Eventfd;
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

/// The length of an 802.1Q tag in bytes. A slot has room for a tag and a packet of the full MTU.
const TAG: usize = 4;
/// The maximum number of frames that are written before the link publishes them. In a long batch,
/// the peer can thus read the first frames while the link still writes the last ones.
const PUBLISH_INTERVAL: usize = 16;

/// The configuration of a memory link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// The largest IP packet in bytes: [`SMALLEST_MTU`] to 65,535.
    pub mtu: usize,
    /// The number of frames that each direction can hold: 1 to 65,536, rounded up to a power of
    /// two.
    pub capacity: usize,
    /// Whether frames begin with an Ethernet header or with an IP header.
    pub medium: Medium,
    /// The checksum status that the link reports to the receiving host. Frames always contain valid
    /// checksums, whatever the status. With [`RxChecksum::Unverified`], the host therefore verifies
    /// checksums with as much work as for frames from a wire.
    pub checksum: RxChecksum,
    /// The bit rate that the link reports to the host. The link itself does not slow frames down.
    pub rate: Option<Rate>,
}

/// The default: an Ethernet link with an MTU of 1,500 bytes, 256 frames in each direction, and
/// checksums that the receiver must verify.
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

/// The reason why a memory link cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The MTU exceeds the largest IPv4 packet, or is too small for a host.
    #[error("a link cannot have an MTU of {0} bytes: choose {SMALLEST_MTU} to 65535")]
    Mtu(usize),
    /// The capacity is zero, or exceeds 65,536 frames.
    #[error("a link cannot hold {0} frames each way: choose 1 to 65536")]
    Capacity(usize),
    /// The system cannot create an eventfd.
    #[error(
        "the system has no wake-up descriptor left (error {errno}): close files, or raise the \
         limit `ulimit -n`"
    )]
    Descriptor {
        /// The error number of the system.
        errno: i32,
    },
}

/// Creates a link, and returns its two endpoints.
///
/// # Errors
/// [`MemoryError`] if the configuration is invalid, or the system has no descriptor left.
pub fn pair(config: MemoryConfig) -> Result<(MemoryLink, MemoryLink), MemoryError> {
    pair_with_clock(config, MonotonicClock)
}

/// Creates a link of `count` queues. Returns all queues of one endpoint, and all queues of the
/// other. A frame that is sent on a queue arrives on the other endpoint's queue with an equal
/// index.
///
/// # Errors
/// [`MemoryError`] if the configuration is invalid, or the system has no descriptor left.
pub fn queues(
    config: MemoryConfig,
    count: usize,
) -> Result<(Vec<MemoryLink>, Vec<MemoryLink>), MemoryError> {
    (0..count).map(|_| pair(config)).collect()
}

/// Creates a link with the given clock, which determines the arrival times of the frames.
///
/// # Errors
/// [`MemoryError`] if the configuration is invalid, or the system has no descriptor left.
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
    let (left, right) = (new_eventfd()?, new_eventfd()?);
    let end = |sender, receiver, wakeup: &Arc<Eventfd>, other: &Arc<Eventfd>, clock| MemoryLink {
        sender,
        receiver,
        starved: false,
        config,
        clock,
        wakeup: Arc::clone(wakeup),
        other: OtherWakeup(Arc::clone(other)),
    };
    let left_end = end(to_right, from_right, &left, &right, clock.clone());
    Ok((left_end, end(to_left, from_left, &right, &left, clock)))
}

fn new_eventfd() -> Result<Arc<Eventfd>, MemoryError> {
    let event =
        Eventfd::new().map_err(|errno| MemoryError::Descriptor { errno: errno.raw_os_error() })?;
    Ok(Arc::new(event))
}

/// One endpoint of a link inside the process. After the peer has been dropped, this endpoint still
/// receives the frames that the peer has sent. Once they are received, the link is down.
#[derive(Debug)]
pub struct MemoryLink<C = MonotonicClock> {
    sender: Producer,
    receiver: Consumer,
    /// Whether the most recent transmission ended because the ring was full.
    starved: bool,
    config: MemoryConfig,
    clock: C,
    wakeup: Arc<Eventfd>,
    // This field must be declared last, because fields are dropped in the order of declaration.
    // Dropping it wakes the peer. By then, the rings must have been dropped, so that the peer finds
    // them abandoned.
    other: OtherWakeup,
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
            // The ring was empty a moment ago. Since then, the peer may have sent a frame and
            // dropped its endpoint. So if the endpoint was dropped, the ring is checked once more:
            // the link is down only if the ring is still empty.
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
    fn peek(&mut self, budget: usize, look: impl FnMut(&[u8])) {
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
        self.transmit_from(budget, &mut ClosureSource { now, fill })
    }

    /// Sends frames of a host. Each frame is stamped with `source.now()`, the time of the host's
    /// current turn.
    #[inline(always)]
    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.starved = false;
        // A host that only receives data has nothing to send in most turns. It then need not check
        // whether the peer has been dropped, because `receive` reports that as well.
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
        self.publish();
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
    /// Publishes the written frames, and wakes the peer if it sleeps until frames arrive.
    fn publish(&mut self) {
        if self.sender.publish() {
            self.other.wake();
        }
    }
}

/// The free slots of the ring, as frames for a host to fill.
struct Slots<'a, C> {
    link: &'a mut MemoryLink<C>,
    /// Time stamp of the frames, in nanoseconds.
    stamp: u64,
    /// Number of frames that may still be sent in this transmission.
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
        if self.left.is_multiple_of(PUBLISH_INTERVAL) {
            self.link.publish();
        }
        true
    }
}

impl<C: Clock> Readiness for MemoryLink<C> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    fn is_ready(&mut self) -> bool {
        self.receiver.has_frame()
            || self.receiver.is_abandoned()
            || (self.starved && self.sender.has_room())
    }

    /// Prepares a sleep that ends when a frame arrives. If the most recent transmission found the
    /// ring full, the sleep ends also when the peer has read frames. In both cases the peer sets
    /// the event of this endpoint. So the caller polls [`fd`](Readiness::fd) only for reading, and
    /// not for writing.
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
            self.wakeup.clear();
        }
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn wants_room(&self) -> bool {
        false
    }

    fn next_deadline(&self) -> Instant {
        Instant::NEVER
    }
}

/// The event that wakes the peer. Dropping this value sets the event, so that a sleeping peer wakes
/// and finds that the link is down.
#[derive(Debug)]
struct OtherWakeup(Arc<Eventfd>);

impl OtherWakeup {
    fn wake(&self) {
        self.0.set();
    }
}

impl Drop for OtherWakeup {
    fn drop(&mut self) {
        self.wake();
    }
}

#[cfg(test)]
mod tests;

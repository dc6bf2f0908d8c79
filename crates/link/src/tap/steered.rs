//! A TUN or TAP device whose queues form one link. The flows to which this endpoint has replied
//! arrive on the first queue, and the link reads this queue first.
//!
//! A device with a single queue has a single FIFO for all flows. A flood of packets from the kernel
//! fills it, and the kernel then drops packets of all flows. With several queues, the kernel sends
//! a flow to the queue on which it last received a packet of that flow. For a flow of which it has
//! received none, a hash selects the queue. This link sends on the first queue only, so that queue
//! carries all flows to which this endpoint has replied. Of a flood of new flows, it gets only one
//! flow in [`QUEUES`], so it rarely overflows.

use super::{Tap, TapConfig, TapError, explain};
use crate::wait::Readiness;
use linerate_stack::{Capabilities, FrameSink, FrameSource, Link, LinkError, RxFrame, TxFrame};
use linerate_units::Instant;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The number of queues. Each queue takes about 10 KB in the kernel and 140 KB in this process.
pub const QUEUES: usize = 16;
/// The divisor of a receive budget: one frame in eight is reserved for the queues other than the
/// first. Otherwise a busy first queue could starve new flows, most of which are on other queues.
const SHARE_OF_OTHERS: usize = 8;
/// A timeout of zero, with which epoll does not wait.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A TUN or TAP device whose queues form one link.
#[derive(Debug)]
pub struct SteeredTap {
    first: Tap,
    others: Vec<Tap>,
    /// An epoll descriptor that is readable while one of `others` is. The data of its events is the
    /// index of the queue in `others`.
    any_other: OwnedFd,
    /// Are the queues in `others` left unread, because the host accepts no new flows at present?
    is_holding: bool,
}

impl SteeredTap {
    /// Opens the interface with [`QUEUES`] queues, and creates it if it does not exist.
    ///
    /// # Errors
    /// An error of [`Tap::open_queues`].
    pub fn open(config: &TapConfig) -> Result<Self, TapError> {
        Self::over(Tap::open_queues(config, QUEUES)?)
    }

    /// Creates a link over a device that another process has opened. `queues` contains the
    /// descriptors of all its queues. These descriptors and `mtu` must be as [`Tap::from_fd`]
    /// requires.
    ///
    /// # Errors
    /// An error of [`Tap::from_fd`], or [`TapError::Queues`] if `queues` is empty.
    pub fn from_fds(queues: Vec<OwnedFd>, mtu: usize) -> Result<Self, TapError> {
        let queues = queues.into_iter().map(|queue| Tap::from_fd(queue, mtu));
        Self::over(queues.collect::<Result<_, _>>()?)
    }

    pub(super) fn over(mut queues: Vec<Tap>) -> Result<Self, TapError> {
        if queues.is_empty() {
            return Err(TapError::Queues(0));
        }
        let refused = |errno: Errno| TapError::Open { errno: errno.raw_os_error() };
        let others = queues.split_off(1);
        let any_other = epoll::create(CreateFlags::CLOEXEC).map_err(refused)?;
        for (index, queue) in (0..).zip(&others) {
            epoll::add(&any_other, queue.fd(), EventData::new_u64(index), EventFlags::IN)
                .map_err(refused)?;
        }
        let first = queues.pop().ok_or(TapError::Queues(0))?;
        Ok(Self { first, others, any_other, is_holding: false })
    }

    /// Returns the first queue, which carries the flows to which this endpoint has replied.
    #[must_use]
    pub const fn first(&self) -> &Tap {
        &self.first
    }

    #[cfg(test)]
    pub(super) const fn first_mut(&mut self) -> &mut Tap {
        &mut self.first
    }

    /// Returns the descriptors of the queues, so that they can be passed to another process.
    #[must_use]
    pub fn into_fds(self) -> Vec<OwnedFd> {
        std::iter::once(self.first).chain(self.others).map(Tap::into_fd).collect()
    }

    /// Receives at most `budget` frames from the queues other than the first. Only the queues that
    /// have frames are read. To read each queue in each turn was 33 system calls without a frame
    /// for one short connection through a gateway.
    fn receive_others(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        let mut received = 0;
        for _ in 0..self.others.len() {
            if received == budget {
                break;
            }
            let Some(queue) = self.next_other()? else { break };
            received += self.others[queue].receive_into(budget - received, sink)?;
        }
        Ok(received)
    }

    /// Returns the index in `others` of a queue that has frames, or `None` if no queue has any.
    /// After the kernel has reported a queue, it first reports the other queues that have frames.
    /// So successive calls return the queues in turn.
    fn next_other(&self) -> Result<Option<usize>, LinkError> {
        let mut event = [const { MaybeUninit::uninit() }];
        match epoll::wait(&self.any_other, &mut event[..], Some(&NOW)) {
            Ok((events, _)) => {
                Ok(events.first().and_then(|event| usize::try_from(event.data.u64()).ok()))
            }
            Err(errno) => Err(explain("look for frames", errno)),
        }
    }
}

impl Link for SteeredTap {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        self.receive_into(budget, &mut on_frame)
    }

    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        if self.is_holding {
            return self.first.receive_into(budget, sink);
        }
        let of_others = budget / SHARE_OF_OTHERS;
        let received = self.first.receive_into(budget - of_others, sink)?;
        Ok(received + self.receive_others(budget - received, sink)?)
    }

    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        self.first.transmit(budget, fill)
    }

    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.first.transmit_from(budget, source)
    }

    /// Sets whether the link stops reading the queues other than the first. While it does not read
    /// them, [`Readiness::wakeup_fd`] does not signal their frames. Once they are full, the kernel
    /// drops packets of new flows.
    fn hold_new_flows(&mut self, hold: bool) {
        if hold == self.is_holding {
            return;
        }
        self.is_holding = hold;
        let events = if hold { EventFlags::empty() } else { EventFlags::IN };
        for (index, queue) in (0..).zip(&self.others) {
            // `modify` fails only for a descriptor that is not in the epoll set. `over` has added
            // the descriptors of all these queues.
            let _ = epoll::modify(&self.any_other, queue.fd(), EventData::new_u64(index), events);
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.first.capabilities()
    }
}

impl Readiness for SteeredTap {
    fn fd(&self) -> BorrowedFd<'_> {
        self.first.fd()
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.any_other.as_fd())
    }

    fn wants_room(&self) -> bool {
        self.first.wants_room()
    }

    fn is_ready(&mut self) -> bool {
        self.first.is_ready()
    }

    fn prepare_to_sleep(&mut self) -> bool {
        self.first.prepare_to_sleep()
    }

    fn awake(&mut self, signalled: bool) {
        self.first.awake(signalled);
    }

    fn next_deadline(&self) -> Instant {
        self.first.next_deadline()
    }
}

//! A turn of a host on its link: the stack receives frames, runs timers and sends frames.

use crate::link::{
    FrameSink, FrameSlots, FrameSource, Link, LinkError, PlainFrame, RxFrame, TxFrame,
    ZeroCopyFrame,
};
use crate::stack::Stack;
use core::hint::cold_path;
use linerate_units::Instant;

/// The limits of the work in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Maximum number of frames to receive from the link. Packets from the host to itself do not
    /// count, but a turn handles at most as many of them as this number.
    pub receive: usize,
    /// Maximum number of timers to run.
    pub timers: usize,
    /// Maximum number of frames to send to the link.
    pub transmit: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { receive: 64, timers: 64, transmit: 64 }
    }
}

/// The result of one turn of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// Number of received frames.
    pub received: usize,
    /// Number of sent frames.
    pub transmitted: usize,
    /// Number of timers that expired.
    pub timers: usize,
    /// Deadline of the next turn, unless a frame or a call of an application needs an earlier turn;
    /// [`Instant::NEVER`] if no timer is armed.
    pub next: Instant,
    /// Must the next turn begin immediately, because there is more work? This is the case, for
    /// example, if the turn has exhausted one of its budgets.
    pub more: bool,
    /// Do frames wait to be sent because the link had no room for them? If so, the next turn is due
    /// when the link has room.
    pub blocked: bool,
}

impl Default for Turn {
    /// Returns the result of a turn that did nothing and left nothing to do.
    fn default() -> Self {
        Self {
            received: 0,
            transmitted: 0,
            timers: 0,
            next: Instant::NEVER,
            more: false,
            blocked: false,
        }
    }
}

impl Turn {
    /// Returns the combined result of turns on two links: the sums of the counts, the earlier
    /// deadline, and each flag if either turn has set it.
    fn plus(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            transmitted: self.transmitted + other.transmitted,
            timers: self.timers + other.timers,
            next: self.next.min(other.next),
            more: self.more || other.more,
            blocked: self.blocked || other.blocked,
        }
    }
}

/// A link with the number of its interface ([`Stack::add_interface`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceLink<L> {
    /// The number of the interface that sends and receives over the link.
    pub interface: u32,
    /// The link of the interface.
    pub link: L,
}

/// A host during a turn: the sink of the frames that its link receives, and the source of the
/// frames that its link sends.
pub(crate) struct HostTurn<'a> {
    pub(crate) stack: &'a mut Stack,
    pub(crate) now: Instant,
}

impl FrameSink for HostTurn<'_> {
    fn take(&mut self, frame: RxFrame<'_>) {
        self.stack.handle_frame_of_batch(self.now, &frame);
    }

    #[inline(always)]
    fn take_plain<'a>(&mut self, frames: impl Iterator<Item = PlainFrame<'a>>) {
        self.stack.handle_batch(self.now, frames);
    }
}

impl FrameSource for HostTurn<'_> {
    #[inline]
    fn now(&self) -> Instant {
        self.now
    }

    #[inline]
    fn has_frames(&self) -> bool {
        self.stack.wants_transmit()
    }

    #[inline]
    fn fill(&mut self, frame: &mut [u8]) -> Option<TxFrame> {
        self.stack.transmit_next(self.now, frame)
    }

    fn fill_zero_copy(&mut self, frame: &mut [u8]) -> Option<ZeroCopyFrame<'_>> {
        self.stack.poll_transmit_zero_copy(self.now, frame)
    }

    #[inline(always)]
    fn fill_all(&mut self, slots: &mut impl FrameSlots) {
        let HostTurn { stack, now } = self;
        while stack.wants_transmit() {
            let is_filled = if stack.batch.has_next() {
                stack.fill_from_batch(slots)
            } else {
                slots.offer(|frame| stack.transmit_next_sender(*now, frame))
            };
            if !is_filled {
                return;
            }
        }
    }
}

/// # Host driver: the turn
impl Stack {
    /// Performs one turn on `link`, like [`Host::turn`](crate::Host::turn), for a caller that keeps
    /// the link apart from the host. Threads that share such a host under a lock can wait for the
    /// link without holding the lock.
    ///
    /// # Errors
    /// The errors of [`Host::turn`](crate::Host::turn).
    #[inline]
    pub fn turn(
        &mut self,
        link: &mut impl Link,
        budget: Budget,
        now: Instant,
    ) -> Result<Turn, LinkError> {
        if self.capabilities().offloads.gso_max_size > 0 || self.prefetches_lookups() {
            // The budget is passed as three integers, which stay in registers. A struct would be
            // passed through memory.
            return self.turn_with_offload_or_prefetch(
                link,
                (budget.receive, budget.timers, budget.transmit),
                now,
            );
        }
        let received = self.receive_without_prefetch(link, budget.receive, now);
        self.run_timers_and_transmit(received, link, budget, now)
    }

    /// Performs a turn on the link of each interface. Each turn has the whole `budget`.
    ///
    /// # Errors
    /// The errors of [`Host::turn`](crate::Host::turn). If several links fail, returns the error of
    /// the last of these links. A failed link does not prevent the turns on the other links.
    pub fn turn_on_links<'a, L: Link + 'a>(
        &mut self,
        links: impl IntoIterator<Item = &'a mut InterfaceLink<L>>,
        budget: Budget,
        now: Instant,
    ) -> Result<Turn, LinkError> {
        let mut all = Ok(Turn::default());
        for InterfaceLink { interface, link } in links {
            let turn = self.on(*interface, |stack| {
                let turn = stack.turn(link, budget, now);
                stack.interface.is_blocked = turn.is_ok_and(|turn| turn.blocked);
                turn
            });
            // An unknown interface is no error, because the application may have removed the
            // interface and still pass its link here.
            let Ok(turn) = turn else { continue };
            all = match (all, turn) {
                (Ok(all), Ok(turn)) => Ok(all.plus(turn)),
                (_, Err(error)) | (Err(error), Ok(_)) => Err(error),
            };
        }
        let all = all?;
        let more = all.more || self.can_transmit();
        let next = if more { now } else { self.poll_timeout() };
        Ok(Turn { more, next, ..all })
    }

    /// Performs a turn on a link with segmentation offload, or with lookup prefetch. With
    /// segmentation offload, the turn sends frames before it receives (see
    /// [`Host::turn`](crate::Host::turn)).
    #[inline(never)]
    fn turn_with_offload_or_prefetch(
        &mut self,
        link: &mut impl Link,
        (receive, timers, transmit): (usize, usize, usize),
        now: Instant,
    ) -> Result<Turn, LinkError> {
        let budget = Budget { receive, timers, transmit };
        if self.capabilities().offloads.gso_max_size == 0 {
            let received = self.receive(link, receive, now);
            return self.run_timers_and_transmit(received, link, budget, now);
        }
        let unreceived = self.receive(link, 0, now);
        let sent = self.run_timers_and_transmit(
            unreceived,
            link,
            Budget { receive: 0, timers: 0, transmit },
            now,
        );
        let received = self.receive(link, receive, now);
        let turn =
            self.run_timers_and_transmit(received, link, Budget { transmit: 0, ..budget }, now)?;
        let Turn { transmitted, blocked, .. } = sent?;
        let Turn { received, timers, .. } = turn;
        let is_exhausted =
            received == budget.receive || timers == budget.timers || transmitted == budget.transmit;
        let more = is_exhausted || self.has_local() || (self.wants_transmit() && !blocked);
        let next = if more { now } else { self.poll_timeout() };
        Ok(Turn { transmitted, blocked, next, more, ..turn })
    }

    /// Receives up to `budget` frames, with lookup prefetch if the host has many connections, and
    /// returns the number of received frames.
    fn receive(
        &mut self,
        link: &mut impl Link,
        budget: usize,
        now: Instant,
    ) -> Result<usize, LinkError> {
        if self.prefetches_lookups() {
            self.receive_with_prefetch(link, budget, now)
        } else {
            self.receive_without_prefetch(link, budget, now)
        }
    }

    /// Receives up to `budget` frames without lookup prefetch, and returns the number of received
    /// frames.
    #[inline(always)]
    fn receive_without_prefetch(
        &mut self,
        link: &mut impl Link,
        budget: usize,
        now: Instant,
    ) -> Result<usize, LinkError> {
        self.buffer_pool.disable();
        link.receive_into(budget, &mut HostTurn { stack: self, now })
    }

    /// Completes a turn after frames were received: runs timers and sends frames. `received` is the
    /// number of received frames, or the error with which the link failed to receive.
    #[inline(always)]
    fn run_timers_and_transmit(
        &mut self,
        received: Result<usize, LinkError>,
        link: &mut impl Link,
        budget: Budget,
        now: Instant,
    ) -> Result<Turn, LinkError> {
        // If the error were handled at the end of the method, it would occupy registers until then,
        // even in the common case without an error. So this branch returns at once.
        let received = match received {
            Ok(received) => received,
            Err(error) => {
                return Err(self.run_timers_without_link(
                    budget.receive,
                    budget.timers,
                    now,
                    error,
                ));
            }
        };
        let (local, timers) = self.run_local_and_timers(budget.receive, budget.timers, now);
        if !self.handovers.is_empty() {
            self.hand_over(link);
        }
        let transmitted =
            match link.transmit_from(budget.transmit, &mut HostTurn { stack: self, now }) {
                Ok(transmitted) => transmitted,
                Err(error) => {
                    self.commit_batch();
                    return Err(error);
                }
            };
        self.commit_batch();
        let is_exhausted =
            received == budget.receive || timers == budget.timers || transmitted == budget.transmit;
        let more = is_exhausted || local > 0 || self.has_local();
        let blocked = transmitted < budget.transmit && self.wants_transmit();
        let next = if more { now } else { self.poll_timeout() };
        Ok(Turn { received, transmitted, timers, next, more, blocked })
    }

    /// Handles packets from the host to itself, and runs timers. Returns the number of handled
    /// packets and the number of timers that ran.
    #[inline(always)]
    fn run_local_and_timers(
        &mut self,
        receive: usize,
        timers: usize,
        now: Instant,
    ) -> (usize, usize) {
        self.flush_coalesced();
        let mut local = 0;
        if self.has_local() {
            cold_path();
            local = self.handle_local(now, receive);
        }
        (local, self.handle_timeout(now, timers))
    }

    /// Runs timers although the link has failed, so that connections still time out. Returns
    /// `error`, the error of the link.
    #[cold]
    fn run_timers_without_link(
        &mut self,
        receive: usize,
        timers: usize,
        now: Instant,
        error: LinkError,
    ) -> LinkError {
        self.run_local_and_timers(receive, timers, now);
        error
    }

    /// Has a turn become due before the time that `last`, the result of the previous turn, has
    /// announced? This is the case if an application call has queued frames or armed an earlier
    /// timer. Frames for which the link had no room do not count, because they have to wait for the
    /// link.
    #[must_use]
    pub fn wants_turn_since(&self, last: &Turn) -> bool {
        let can_send = if self.others.is_empty() {
            self.wants_transmit() && !last.blocked
        } else {
            self.can_transmit()
        };
        !last.more && (can_send || self.has_local() || self.poll_timeout() < last.next)
    }
}

//! One turn of a host on its link: frames in, timers, frames out.

use crate::link::{
    FrameSink, FrameSlots, FrameSource, Link, LinkError, PlainFrame, RxFrame, TxFrame,
    ZeroCopyFrame,
};
use crate::stack::Stack;
use core::hint::cold_path;
use linerate_units::Instant;

/// How much one turn does of each kind before it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Frames taken in from the link, and as many from the host to itself.
    pub receive: usize,
    /// Timers.
    pub timers: usize,
    /// Frames given to the link.
    pub transmit: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { receive: 64, timers: 64, transmit: 64 }
    }
}

/// What a turn has done, and when the next one is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Frames taken in.
    pub received: usize,
    /// Frames given to the link.
    pub transmitted: usize,
    /// Timers that expired.
    pub timers: usize,
    /// When to turn again at the latest, if nothing arrives and no application wants anything before;
    /// [`Instant::NEVER`] if never.
    pub next: Instant,
    /// A budget ran out: turn again at once.
    pub more: bool,
    /// There may be frames to be sent, and the link had no room: turn again when it has.
    pub blocked: bool,
}

/// A host at a time at which its link brings it frames, or asks it for some.
pub(crate) struct Turning<'a> {
    pub(crate) stack: &'a mut Stack,
    pub(crate) now: Instant,
}

impl FrameSink for Turning<'_> {
    fn take(&mut self, frame: RxFrame<'_>) {
        self.stack.handle_frame_of_batch(self.now, &frame);
    }

    #[inline(always)]
    fn take_plain<'a>(&mut self, frames: impl Iterator<Item = PlainFrame<'a>>) {
        self.stack.handle_batch(self.now, frames);
    }
}

impl FrameSource for Turning<'_> {
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
        self.stack.poll_transmit_to_gather(self.now, frame)
    }

    #[inline(always)]
    fn fill_all(&mut self, slots: &mut impl FrameSlots) {
        let Turning { stack, now } = self;
        while stack.wants_transmit() {
            let is_filled = if stack.burst.goes_on() {
                stack.fill_with_burst(slots)
            } else {
                slots.offer(|frame| stack.transmit_chosen(*now, frame))
            };
            if !is_filled {
                return;
            }
        }
    }
}

impl Stack {
    /// Does what [`Host::turn`](crate::Host::turn) does, for a host that is kept apart from its link.
    /// Threads that share a host under a lock wait for the link without holding that lock.
    ///
    /// # Errors
    /// As for [`Host::turn`](crate::Host::turn).
    #[inline]
    pub fn turn(
        &mut self,
        link: &mut impl Link,
        budget: Budget,
        now: Instant,
    ) -> Result<Turn, LinkError> {
        if self.capabilities().offloads.gso_max_size > 0 || self.looks_ahead() {
            // Part by part: a whole budget would go through memory in every turn.
            return self.turn_otherwise(
                link,
                (budget.receive, budget.timers, budget.transmit),
                now,
            );
        }
        let received = self.receive_unforeseen(link, budget.receive, now);
        self.pass(received, link, budget, now)
    }

    /// The same on a link with super-frames: frames out, and only then frames in, and timers. Or of a host with so many
    /// connections that it looks ahead.
    #[inline(never)]
    fn turn_otherwise(
        &mut self,
        link: &mut impl Link,
        (receive, timers, transmit): (usize, usize, usize),
        now: Instant,
    ) -> Result<Turn, LinkError> {
        let budget = Budget { receive, timers, transmit };
        if self.capabilities().offloads.gso_max_size == 0 {
            let received = self.receive(link, receive, now);
            return self.pass(received, link, budget, now);
        }
        let nothing = self.receive(link, 0, now);
        let out = self.pass(nothing, link, Budget { receive: 0, timers: 0, transmit }, now);
        let received = self.receive(link, receive, now);
        let turn = self.pass(received, link, Budget { transmit: 0, ..budget }, now)?;
        let Turn { transmitted, blocked, .. } = out?;
        let Turn { received, timers, .. } = turn;
        let spent =
            received == budget.receive || timers == budget.timers || transmitted == budget.transmit;
        let more = spent || self.has_local() || (self.wants_transmit() && !blocked);
        let next = if more { now } else { self.poll_timeout() };
        Ok(Turn { transmitted, blocked, next, more, ..turn })
    }

    /// Frames in, of which something may be known before they are taken in.
    fn receive(
        &mut self,
        link: &mut impl Link,
        budget: usize,
        now: Instant,
    ) -> Result<usize, LinkError> {
        if self.looks_ahead() {
            self.receive_foreseen(link, budget, now)
        } else {
            self.receive_unforeseen(link, budget, now)
        }
    }

    /// Frames in, each of which is looked at when it has its turn.
    #[inline(always)]
    fn receive_unforeseen(
        &mut self,
        link: &mut impl Link,
        budget: usize,
        now: Instant,
    ) -> Result<usize, LinkError> {
        self.warm_memory.end();
        link.receive_into(budget, &mut Turning { stack: self, now })
    }

    /// Frames were taken in: timers, and frames out.
    #[inline(always)]
    fn pass(
        &mut self,
        received: Result<usize, LinkError>,
        link: &mut impl Link,
        budget: Budget,
        now: Instant,
    ) -> Result<Turn, LinkError> {
        // Asked at once, so that nothing has to be kept of an error that there hardly ever is.
        let received = match received {
            Ok(received) => received,
            Err(error) => {
                return Err(self.serve_without_link(budget.receive, budget.timers, now, error));
            }
        };
        let (local, timers) = self.serve(budget.receive, budget.timers, now);
        let transmitted =
            match link.transmit_from(budget.transmit, &mut Turning { stack: self, now }) {
                Ok(transmitted) => transmitted,
                Err(error) => {
                    self.tell_of_burst();
                    return Err(error);
                }
            };
        self.tell_of_burst();
        let spent =
            received == budget.receive || timers == budget.timers || transmitted == budget.transmit;
        let more = spent || local > 0 || self.has_local();
        let blocked = transmitted < budget.transmit && self.wants_transmit();
        let next = if more { now } else { self.poll_timeout() };
        Ok(Turn { received, transmitted, timers, next, more, blocked })
    }

    /// What there is to do between frames in and frames out: how many packets the host had for itself, and how many
    /// timers expired.
    #[inline(always)]
    fn serve(&mut self, receive: usize, timers: usize, now: Instant) -> (usize, usize) {
        self.flush_coalesced();
        let mut local = 0;
        if self.has_local() {
            cold_path();
            local = self.handle_local(now, receive);
        }
        (local, self.handle_timeout(now, timers))
    }

    /// The same in a turn without frames: the link cannot carry any, for this reason.
    #[cold]
    fn serve_without_link(
        &mut self,
        receive: usize,
        timers: usize,
        now: Instant,
        error: LinkError,
    ) -> LinkError {
        self.serve(receive, timers, now);
        error
    }

    /// Has anything come up since the turn `last` that should not wait for the one it announces?
    /// Frames for which the link had no room can only wait for that.
    #[must_use]
    pub fn wants_turn_since(&self, last: &Turn) -> bool {
        let can_send = self.wants_transmit() && !last.blocked;
        !last.more && (can_send || self.has_local() || self.poll_timeout() < last.next)
    }
}

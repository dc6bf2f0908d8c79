//! A link that loses, delays and damages frames. A seed determines which frames are affected.

mod lane;
mod mark;
mod parameters;

pub use lane::{Held, ImpairCounters, Lane};
pub use parameters::{Impairment, ImpairmentError, Impairments, Probability};

use crate::clock::MonotonicClock;
use crate::wait::Readiness;
use lane::next_seed;
use linerate_stack::{
    Capabilities, Link, LinkError, Offloads, RxFrame, TxFrame, segment_gso_frame,
};
use linerate_units::{Clock, Instant};
use std::os::fd::BorrowedFd;

/// The link `L`, whose frames are lost, marked, duplicated, corrupted, delayed and reordered as
/// specified by [`Impairments`].
///
/// Two values determine how a frame is impaired: the seed, and the number of frames sent before it
/// in its direction. The time at which a delayed frame arrives depends also on the clock. The link
/// passes on delayed frames only when it is called, for receiving or for sending;
/// [`Readiness::next_deadline`] returns the time at which the next frame is due.
///
/// Impairments apply to single frames, as on a wire. A GRO frame of the inner link is therefore
/// split into its segments first, each with its own checksum. The link reports no offloads, so that
/// the host sends no GSO frames.
#[derive(Debug)]
pub struct Impair<L, C = MonotonicClock> {
    link: L,
    clock: C,
    receive: Lane,
    transmit: Lane,
}

impl<L> Impair<L> {
    /// Creates a link that impairs the frames of `link`. Both use [`MonotonicClock`].
    pub fn new(link: L, impairments: Impairments, seed: u64) -> Self {
        Self::with_clock(link, impairments, seed, MonotonicClock)
    }
}

impl<L, C> Impair<L, C> {
    /// Creates a link that impairs the frames of `link`. Both use `clock`.
    #[allow(clippy::large_types_passed_by_value, reason = "called once for a link")]
    pub fn with_clock(link: L, impairments: Impairments, seed: u64, clock: C) -> Self {
        let mut state = seed;
        Self {
            link,
            clock,
            receive: Lane::new(impairments.receive, next_seed(&mut state)),
            transmit: Lane::new(impairments.transmit, next_seed(&mut state)),
        }
    }

    /// Returns the counters of received frames.
    pub const fn received(&self) -> &ImpairCounters {
        self.receive.counters()
    }

    /// Returns the counters of sent frames.
    pub const fn transmitted(&self) -> &ImpairCounters {
        self.transmit.counters()
    }

    /// Returns the inner link, which has no impairments.
    pub const fn link(&self) -> &L {
        &self.link
    }

    /// Returns the inner link. Frames that this link still holds are lost.
    pub fn into_link(self) -> L {
        self.link
    }
}

impl<L: Link, C: Clock> Link for Impair<L, C> {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let now = self.clock.now();
        let medium = self.link.capabilities().medium;
        // An error of sending is ignored here, so that frames can still be received. If the error
        // lasts, the next call of `transmit` reports it.
        let _ = self.send_due(now);
        self.receive.release(now);
        let mut received = self.hand_over_ready(budget, &mut on_frame);
        while received < budget {
            let wanted = budget - received;
            let lane = &mut self.receive;
            let outcome = self.link.receive(wanted, |frame| {
                segment_gso_frame(frame, medium, |frame| {
                    if !lane.offer(frame, medium, now) {
                        return;
                    }
                    if received < budget {
                        on_frame(frame);
                        received += 1;
                    } else {
                        lane.keep(frame);
                    }
                });
            });
            received += self.hand_over_ready(budget - received, &mut on_frame);
            match outcome {
                Ok(arrived) if arrived == wanted => {}
                // Frames that wait in `receive` arrived before the inner link failed, so they are
                // passed on before the error is reported. The error is reported by a call that has
                // passed on no frame and finds none waiting.
                Err(error) if received == 0 && self.receive.is_empty() => return Err(error),
                _ => break,
            }
        }
        Ok(received)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let now = self.clock.now();
        let medium = self.link.capabilities().medium;
        self.transmit.release(now);
        let mut taken = 0;
        let mut more = true;
        let lane = &mut self.transmit;
        self.link.transmit(usize::MAX, |bytes| {
            loop {
                if lane.has_ready() {
                    return fill_with_ready(lane, bytes);
                }
                if !more || taken == budget {
                    return None;
                }
                let Some(frame) = fill(bytes) else {
                    more = false;
                    return None;
                };
                taken += 1;
                let length = frame.length.min(bytes.len());
                let offered = RxFrame::plain(&bytes[..length], now);
                if lane.offer(offered, medium, now) {
                    return Some(frame);
                }
            }
        })?;
        Ok(taken)
    }

    fn hold_new_flows(&mut self, hold: bool) {
        self.link.hold_new_flows(hold);
    }

    fn hand_over(&mut self, shard: u16, frame: RxFrame<'_>) {
        self.link.hand_over(shard, frame);
    }

    /// Returns the capabilities of the inner link without its offloads. Frames are impaired one by
    /// one and each must contain its checksum, so the host must not send GSO frames or partial
    /// checksums.
    fn capabilities(&self) -> Capabilities {
        Capabilities { offloads: Offloads::NONE, tag_room: 0, ..self.link.capabilities() }
    }
}

impl<L: Link, C: Clock> Impair<L, C> {
    fn hand_over_ready(&mut self, budget: usize, on_frame: &mut impl FnMut(RxFrame<'_>)) -> usize {
        let mut handed_over = 0;
        while handed_over < budget {
            let Some(frame) = self.receive.pop() else { break };
            on_frame(frame.frame());
            self.receive.recycle(frame);
            handed_over += 1;
        }
        handed_over
    }

    fn send_due(&mut self, now: Instant) -> Result<(), LinkError> {
        self.transmit.release(now);
        if self.transmit.has_ready() {
            self.link.transmit(usize::MAX, |bytes| fill_with_ready(&mut self.transmit, bytes))?;
        }
        Ok(())
    }
}

/// Writes the next frame of `lane` that is ready to be sent into `bytes`, the buffer that the inner
/// link offers. Returns `None` if `lane` has no such frame.
fn fill_with_ready(lane: &mut Lane, bytes: &mut [u8]) -> Option<TxFrame> {
    let ready = lane.pop()?;
    let frame = ready.frame().bytes;
    let length = frame.len().min(bytes.len());
    bytes[..length].copy_from_slice(&frame[..length]);
    lane.recycle(ready);
    Some(TxFrame::whole(length))
}

impl<L: Readiness, C: Clock> Readiness for Impair<L, C> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.link.fd()
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.wakeup_fd()
    }

    fn wants_room(&self) -> bool {
        self.link.wants_room()
    }

    fn is_ready(&mut self) -> bool {
        self.receive.has_ready() || self.link.is_ready()
    }

    fn prepare_to_sleep(&mut self) -> bool {
        !self.receive.has_ready() && self.link.prepare_to_sleep()
    }

    fn awake(&mut self, signalled: bool) {
        self.link.awake(signalled);
    }

    /// Returns the time at which the next held frame of either direction is due, or the deadline of
    /// the inner link if that is earlier. Frames that are due already, but wait because the inner
    /// link is full, do not count. The inner link wakes the caller when it has room for them.
    fn next_deadline(&self) -> Instant {
        let ours = self.receive.next_release().min(self.transmit.next_release());
        ours.min(self.link.next_deadline())
    }
}

#[cfg(test)]
mod tests;

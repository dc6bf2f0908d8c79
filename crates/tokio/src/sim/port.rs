//! The link between a host and all paths of the network.

use super::world::{Arrived, Paths};
use linerate_stack::{
    Capabilities, FrameSink, FrameSlots, FrameSource, Link, LinkError, Medium, RxFrame, TxFrame,
};
use linerate_units::Instant;
use std::collections::VecDeque;

/// The MTU of every host's link, in bytes.
pub(super) const MTU: usize = 1_500;

/// The link of one host, borrowed from the network for a turn.
#[derive(Debug)]
pub(super) struct Port<'a> {
    pub(super) host: usize,
    pub(super) inbox: &'a mut VecDeque<Arrived>,
    pub(super) paths: &'a mut Paths,
    pub(super) now: Instant,
}

impl Link for Port<'_> {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        self.receive_into(budget, &mut on_frame)
    }

    /// Passes all received packets in one call, so that the host can process them as a batch.
    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        let received = budget.min(self.inbox.len());
        if received > 0 {
            sink.take_plain(self.inbox.iter().take(received).map(Arrived::frame));
            self.inbox.drain(..received).for_each(|arrived| self.paths.recycle(arrived));
        }
        Ok(received)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let mut slots = Slots { left: budget, buffer: [0; MTU], port: self };
        while slots.offer(&mut fill) {}
        Ok(budget - slots.left)
    }

    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        // In many turns a host has nothing to send. Returning early then avoids clearing the buffer
        // that is created next.
        if !source.has_frames() {
            return Ok(0);
        }
        let mut slots = Slots { left: budget, buffer: [0; MTU], port: self };
        source.fill_all(&mut slots);
        Ok(budget - slots.left)
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }
}

/// The transmit slots of a turn: the host may send `left` more packets.
#[derive(Debug)]
struct Slots<'a, 'b> {
    port: &'a mut Port<'b>,
    left: usize,
    buffer: [u8; MTU],
}

impl FrameSlots for Slots<'_, '_> {
    fn offer(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<TxFrame>) -> bool {
        if self.left == 0 {
            return false;
        }
        let Some(frame) = fill(&mut self.buffer) else { return false };
        let Port { host, paths, now, .. } = &mut *self.port;
        paths.carry(*now, *host, &self.buffer[..frame.length]);
        self.left -= 1;
        true
    }
}

/// Returns the capabilities of all hosts' links.
pub(super) const fn capabilities() -> Capabilities {
    Capabilities::new(Medium::Ip, MTU)
}

//! The link of a host to all paths of the network.

use super::world::{Arrived, Paths};
use linerate_stack::{Capabilities, Link, LinkError, Medium, RxFrame, TxFrame};
use linerate_units::Instant;
use std::collections::VecDeque;

/// The size of the largest packet.
pub(super) const MTU: usize = 1_500;

/// The link of one host during a turn.
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
        let mut received = 0;
        while received < budget
            && let Some(arrived) = self.inbox.pop_front()
        {
            on_frame(arrived.frame.frame());
            self.paths.recycle(arrived);
            received += 1;
        }
        Ok(received)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let mut buffer = [0; MTU];
        let mut sent = 0;
        while sent < budget
            && let Some(frame) = fill(&mut buffer)
        {
            self.paths.carry(self.now, self.host, &buffer[..frame.length]);
            sent += 1;
        }
        Ok(sent)
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }
}

/// Returns the capabilities of all hosts' links.
pub(super) const fn capabilities() -> Capabilities {
    Capabilities::new(Medium::Ip, MTU)
}

//! The link between linerate's host and the script: a queue of IP packets without delay.

use linerate_stack::{Capabilities, Link, LinkError, Medium, RxFrame, TxFrame};
use linerate_units::Instant;
use std::collections::VecDeque;

/// Maximum number of packets in the queue. The script takes them after every turn.
const ROOM: usize = 4_096;

/// A link that carries IP packets without a link-layer header.
#[derive(Debug)]
pub(super) struct ScriptLink {
    mtu: usize,
    arrived: VecDeque<(Instant, Vec<u8>)>,
    sent: VecDeque<Vec<u8>>,
}

impl ScriptLink {
    pub(super) const fn new(mtu: usize) -> Self {
        Self { mtu, arrived: VecDeque::new(), sent: VecDeque::new() }
    }

    /// Delivers a packet to the host.
    pub(super) fn put(&mut self, now: Instant, packet: &[u8]) {
        self.arrived.push_back((now, packet.to_vec()));
    }

    /// Takes the next packet that the host sent.
    pub(super) fn fetch(&mut self) -> Option<Vec<u8>> {
        self.sent.pop_front()
    }
}

impl Link for ScriptLink {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let count = self.arrived.len().min(budget);
        for (arrived, bytes) in self.arrived.drain(..count) {
            on_frame(RxFrame::plain(&bytes, arrived));
        }
        Ok(count)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let room = budget.min(ROOM.saturating_sub(self.sent.len()));
        for count in 0..room {
            let mut packet = vec![0; self.mtu];
            let Some(TxFrame { length, .. }) = fill(&mut packet) else { return Ok(count) };
            packet.truncate(length);
            self.sent.push_back(packet);
        }
        Ok(room)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Medium::Ip, self.mtu)
    }
}

//! The link between the host and the script: packets in memory, which take no time.

use linerate_stack::{Capabilities, Link, LinkError, Medium, RxFrame, TxFrame};
use linerate_units::Instant;
use std::collections::VecDeque;

/// Packets that the host may send before the script looks; it looks after every turn.
const ROOM: usize = 4_096;

/// A link of bare IP packets.
#[derive(Debug)]
pub(super) struct Cable {
    mtu: usize,
    arrived: VecDeque<(Instant, Vec<u8>)>,
    sent: VecDeque<Vec<u8>>,
}

impl Cable {
    pub(super) const fn new(mtu: usize) -> Self {
        Self { mtu, arrived: VecDeque::new(), sent: VecDeque::new() }
    }

    /// Has a packet arrive.
    pub(super) fn put(&mut self, now: Instant, packet: &[u8]) {
        self.arrived.push_back((now, packet.to_vec()));
    }

    /// The next packet that the host has sent.
    pub(super) fn fetch(&mut self) -> Option<Vec<u8>> {
        self.sent.pop_front()
    }
}

impl Link for Cable {
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

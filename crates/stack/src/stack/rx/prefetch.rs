//! Receiving with lookup prefetch: the flows of all frames of a batch are looked up before the
//! first frame is handled. The module `demux::prefetch` gives the reason.

use crate::demux::prefetch::MANY;
use crate::demux::prefetch::flow_of;
use crate::link::{Link, LinkError, RxFrame};
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::stack::turn::HostTurn;
use linerate_units::Instant;

impl Stack {
    /// Is lookup prefetch used at present? It is worthwhile only if the host has many connections
    /// that are not in TIME-WAIT.
    #[inline]
    pub(crate) fn prefetches_lookups(&self) -> bool {
        let flows = self.flows.len();
        // The second condition implies the first. The first is tested nevertheless, because it is
        // cheap, and false on most hosts, which have few connections.
        flows >= MANY
            && flows - self.time_wait.len() >= MANY
            && self.interface.flow_cache.is_enabled
    }

    /// Looks up the flows of up to `budget` frames that wait in `link`, then receives these frames.
    /// Returns the number of received frames.
    #[inline(never)]
    pub(crate) fn receive_with_prefetch(
        &mut self,
        link: &mut impl Link,
        budget: usize,
        now: Instant,
    ) -> Result<usize, LinkError> {
        let (flows, medium) = (&mut self.flows, self.interface.capabilities.medium);
        link.peek(budget, |frame| flows.announce(flow_of(medium, frame)));
        if !self.look_up_announced() {
            return link.receive_into(budget, &mut HostTurn { stack: self, now });
        }
        self.buffer_pool.enable();
        let received = link.receive(budget, |frame| self.handle_prefetched(now, frame));
        self.flows.end_batch();
        received
    }

    /// Handles a frame of the batch. If the prefetch has found its connection, the fast path of the
    /// flow cache handles the frame, even if the previous frame belonged to another flow.
    #[inline(never)]
    fn handle_prefetched(&mut self, now: Instant, frame: RxFrame<'_>) {
        let flow = flow_of(self.interface.capabilities.medium, frame.bytes);
        let before = self.flows.step_to_announced(flow);
        if let (Some(flow), Some(_)) = (flow, before) {
            // The host trusts addresses in the flow cache without checking them. These addresses
            // need no check: the prefetch has found a connection with them, and they were checked
            // when it was opened. The prefetch does not find connections of the host with itself,
            // whose addresses are invalid in a frame from the link.
            self.interface.flow_cache.learn(&flow.hosts);
        }
        let socket = before.and_then(|_| self.flows.last(&flow?));
        if let Some(index) = socket {
            self.pool_receive_buffer(index);
        }
        let repeats = self.flow_repeats();
        self.handle_frame_of_batch(now, &frame);
        if let Some(before) = before {
            // The prefetch has put the flow of this frame into the one-entry cache, which normally
            // contains the flow of the previous frame. So a hit does not mean that a flow was
            // repeated. It was counted as a repeat, and `prefetched` corrects this count. Without a
            // hit, the cache gets its previous entry back.
            if self.flow_repeats() > repeats {
                self.interface.flow_cache.prefetched += 1;
            } else {
                self.flows.restore(before);
            }
        }
        if self.flows.is_last_of_run() {
            // The next frame belongs to another flow, so it cannot continue a pending ACK batch.
            self.flush_coalesced();
            if let Some(index) = socket {
                self.reclaim_send_buffer(index);
            }
        }
    }

    /// Looks up the flows of all frames that the link has shown in advance, and prefetches the
    /// memory of their connections. Returns false, without any lookup, if all frames belong to one
    /// flow.
    #[inline(never)]
    fn look_up_announced(&mut self) -> bool {
        let sockets = &self.sockets;
        self.flows.look_up_announced(|index| match sockets.get(index) {
            Some(Socket::Tcp(socket)) => socket.prefetch(),
            _ => false,
        })
    }
}

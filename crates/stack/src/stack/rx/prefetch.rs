//! Frames that have come together, seen before the first of them is handled: whose they are.
//!
//! A host with very many connections has hardly any of them in the processor's caches. If it comes to a
//! connection when its frame has its turn, it waits for the table of flows, then for what that leads to, then for
//! the connection, and all of that again for the next. So the flows of all frames of a batch are looked up
//! together, and their connections are touched: the processor waits for all of them at once. And each frame is
//! one of a known flow when it has its turn, as the frames of a train are.
//!
//! Nothing that is foreseen has to come true: it is a guess about who is asked for next, which is compared
//! with who is.

use crate::demux::prefetch::MANY;
use crate::demux::prefetch::flow_of;
use crate::link::{Link, LinkError, RxFrame};
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::stack::turn::HostTurn;
use linerate_units::Instant;

impl Stack {
    /// Are there so many connections, those in TIME-WAIT not counted, that it is worth to look ahead?
    #[inline]
    pub(crate) fn prefetches_lookups(&self) -> bool {
        let flows = self.flows.len();
        // Most hosts have so few that nothing else need be asked.
        flows >= MANY && flows - self.time_wait.len() >= MANY && self.flow_cache.is_enabled
    }

    /// Takes in what `link` has, and looks at it before that.
    #[inline(never)]
    pub(crate) fn receive_with_prefetch(
        &mut self,
        link: &mut impl Link,
        budget: usize,
        now: Instant,
    ) -> Result<usize, LinkError> {
        let (flows, medium) = (&mut self.flows, self.interface.capabilities.medium);
        link.peek(budget, |frame| flows.note_coming(flow_of(medium, frame)));
        if !self.look_up_coming() {
            return link.receive_into(budget, &mut HostTurn { stack: self, now });
        }
        self.warm_memory.begin();
        let received = link.receive(budget, |frame| self.handle_foreseen(now, frame));
        self.flows.forget_coming();
        received
    }

    /// Takes in a frame as [`Stack::handle_frame_of_batch`], which may be one of a known flow.
    #[inline(never)]
    fn handle_foreseen(&mut self, now: Instant, frame: RxFrame<'_>) {
        let flow = flow_of(self.interface.capabilities.medium, frame.bytes);
        let before = self.flows.turn_to_foreseen(flow);
        if let (Some(flow), Some(_)) = (flow, before) {
            // A connection with another host: the addresses were good when it was opened.
            self.flow_cache.hosts = Some(flow.addresses());
        }
        let socket = before.and_then(|_| self.flows.last(flow?));
        if let Some(index) = socket {
            self.lend_memory(index);
        }
        let repeats = self.flow_repeats();
        self.handle_frame_of_batch(now, &frame);
        if let Some(before) = before {
            // It has been counted as one like the frame before, unless nobody asked whose it was.
            if self.flow_repeats() > repeats {
                self.flow_cache.prefetched += 1;
            } else {
                self.flows.turn_back(before);
            }
        }
        if self.flows.turns_away() {
            // No acknowledgement that could stand for this one comes next.
            self.flush_coalesced();
            if let Some(index) = socket {
                self.take_memory_back(index);
            }
        }
    }

    /// Fetches the connections of what was noted.
    #[inline(never)]
    fn look_up_coming(&mut self) -> bool {
        let sockets = &self.sockets;
        self.flows.look_up_coming(|index| match sockets.get(index) {
            Some(Socket::Tcp(socket)) => socket.prefetch(),
            _ => false,
        })
    }
}

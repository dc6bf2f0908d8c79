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

use super::flow::{Flow, FlowHash};
use crate::link::Medium;
use alloc::vec::Vec;
use linerate_wire::PlainPacket;

/// With fewer connections than these nothing is looked ahead for: they are at hand.
pub(crate) const MANY: usize = 16;

/// Frames of one flow, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    /// `None` for what does not belong to any connection.
    pub(crate) flow: Option<Flow>,
    /// Under what the table of flows would have it.
    pub(crate) hash: FlowHash,
    /// The connection, once it was found.
    pub(crate) socket: Option<u32>,
    frames: usize,
}

/// The frames of a batch.
#[derive(Debug)]
pub(crate) struct LookupPrefetch {
    trains: Vec<Train>,
    /// The train whose frames come next but those of the present one.
    next: usize,
    /// Frames of the present train that are still to come.
    left: usize,
}

impl LookupPrefetch {
    /// Nothing is foreseen.
    pub(crate) const fn new() -> Self {
        Self { trains: Vec::new(), next: 0, left: 0 }
    }

    /// A frame follows those that were noted, perhaps of this flow.
    #[inline]
    pub(crate) fn note(&mut self, flow: Option<Flow>) {
        match self.trains.last_mut() {
            Some(train) if train.flow == flow => train.frames += 1,
            _ => self.trains.push(Train { flow, hash: FlowHash::NONE, socket: None, frames: 1 }),
        }
    }

    /// Every train, to be looked up.
    pub(crate) fn trains(&mut self) -> &mut [Train] {
        &mut self.trains
    }

    /// A frame has its turn: its train, if it is the first of one.
    pub(crate) fn step(&mut self) -> Option<Train> {
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        let train = *self.trains.get(self.next)?;
        self.next += 1;
        self.left = train.frames - 1;
        Some(train)
    }

    /// Is the frame that has its turn the last of its train, and another one follows?
    pub(crate) fn changes(&self) -> bool {
        self.left == 0 && self.next < self.trains.len()
    }

    /// The connection of this flow is gone.
    pub(crate) fn forget_flow(&mut self, flow: Flow) {
        for train in &mut self.trains[self.next..] {
            if train.flow == Some(flow) {
                train.socket = None;
            }
        }
    }

    /// Is nothing foreseen?
    pub(crate) const fn is_empty(&self) -> bool {
        self.trains.is_empty()
    }

    /// All that was foreseen has come, or nobody wants to know any more.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if !self.trains.is_empty() {
            *self = Self { trains: core::mem::take(&mut self.trains), ..Self::new() };
            self.trains.clear();
        }
    }
}

/// Where the flow of a TCP segment stands in a frame like nearly all. Nothing is verified.
#[inline(always)]
pub(crate) fn flow_of(medium: Medium, frame: &[u8]) -> Option<Flow> {
    let packet = frame.get(medium.header_length()..)?;
    Some(Flow::of_packet(&PlainPacket::glance(packet)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, SocketAddrV4};

    #[test]
    fn trains_are_stepped_through_frame_by_frame() {
        let at = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let flow = |port| Some(Flow::new(at(80), at(port)));
        let mut prefetch = LookupPrefetch::new();
        for port in [1, 1, 2] {
            prefetch.note(flow(port));
        }
        prefetch.note(None);
        prefetch.trains()[0].socket = Some(10);
        prefetch.trains()[1].socket = Some(20);
        assert_eq!(prefetch.step().map(|train| train.socket), Some(Some(10)));
        assert!(!prefetch.changes());
        assert!(prefetch.step().is_none() && prefetch.changes());
        prefetch.forget_flow(Flow::new(at(80), at(2)));
        assert_eq!(prefetch.step().map(|train| train.socket), Some(None));
        assert_eq!(prefetch.step().map(|train| train.flow), Some(None));
        assert!(prefetch.step().is_none() && !prefetch.changes());
        prefetch.forget();
        assert!(prefetch.trains().is_empty());
    }
}

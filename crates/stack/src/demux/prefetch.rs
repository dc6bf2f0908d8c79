//! Lookup prefetch: looks up the flows of all frames of a batch before the first frame is handled.
//!
//! With very many connections, hardly any connection is in the processor's caches. Each frame then
//! waits for three cache misses, one after the other: on the flow table, on the socket and on the
//! connection. If the flows of all frames are looked up first, and their connections are
//! prefetched, these cache misses overlap. The result of each lookup is then put into the one-entry
//! cache of the flow table just before its frame is handled. Each frame thus hits this cache, as if
//! all frames belonged to a single flow.
//!
//! A prefetched lookup is only a prediction: it is used only if its flow equals the flow of the
//! frame that is handled.

use super::flow::{Flow, FlowHash};
use crate::link::Medium;
use alloc::vec::Vec;
use linerate_wire::{PlainPacket, V4, V6};

/// Minimum number of connections for prefetching. With fewer connections, their memory stays in the
/// processor's caches anyway.
pub(crate) const MANY: usize = 16;

/// A run: consecutive frames of a batch that belong to one flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowRun {
    /// The flow of the frames; `None` for frames without a TCP segment.
    pub(crate) flow: Option<Flow>,
    /// The hash of the flow.
    pub(crate) hash: FlowHash,
    /// The socket of the flow, if the lookup has found one.
    pub(crate) socket: Option<u32>,
    frames: usize,
}

/// The runs of the current batch, and the position in the batch.
#[derive(Debug)]
pub(crate) struct LookupPrefetch {
    runs: Vec<FlowRun>,
    /// Index of the run that follows the current one.
    next: usize,
    /// Number of frames that follow the current frame in its run.
    remaining: usize,
}

impl LookupPrefetch {
    /// Creates an empty batch.
    pub(crate) const fn new() -> Self {
        Self { runs: Vec::new(), next: 0, remaining: 0 }
    }

    /// Adds a frame to the batch. `flow` is the flow of the frame, or `None` if the frame contains
    /// no TCP segment.
    #[inline]
    pub(crate) fn note(&mut self, flow: Option<Flow>) {
        match self.runs.last_mut() {
            Some(run) if run.flow == flow => run.frames += 1,
            _ => self.runs.push(FlowRun { flow, hash: FlowHash::NONE, socket: None, frames: 1 }),
        }
    }

    /// Returns all runs of the batch, so that their sockets can be looked up.
    pub(crate) fn runs(&mut self) -> &mut [FlowRun] {
        &mut self.runs
    }

    /// Advances to the next frame. If it is the first frame of a run, returns this run; otherwise
    /// returns `None`.
    pub(crate) fn step(&mut self) -> Option<FlowRun> {
        if self.remaining > 0 {
            self.remaining -= 1;
            return None;
        }
        let run = *self.runs.get(self.next)?;
        self.next += 1;
        self.remaining = run.frames - 1;
        Some(run)
    }

    /// Returns whether the batch has a next frame, and that frame belongs to another run than the
    /// current frame.
    pub(crate) fn changes(&self) -> bool {
        self.remaining == 0 && self.next < self.runs.len()
    }

    /// Discards the sockets that were looked up for `flow`, because the flow was removed from the
    /// table.
    pub(crate) fn forget_flow(&mut self, flow: &Flow) {
        for run in &mut self.runs[self.next..] {
            if run.flow.as_ref() == Some(flow) {
                run.socket = None;
            }
        }
    }

    /// Returns whether no batch is in progress.
    pub(crate) const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Forgets the batch.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if !self.runs.is_empty() {
            *self = Self { runs: core::mem::take(&mut self.runs), ..Self::new() };
            self.runs.clear();
        }
    }
}

/// Reads the flow from a frame, without verifying the frame. Returns `None` unless the frame has
/// the usual layout of a TCP segment.
#[inline(always)]
pub(crate) fn flow_of(medium: Medium, frame: &[u8]) -> Option<Flow> {
    let packet = frame.get(medium.header_length()..)?;
    if let Some(ends) = PlainPacket::<V4>::glance(packet) {
        return Some(Flow::of_packet(&ends));
    }
    Some(Flow::of_ipv6_packet(&PlainPacket::<V6>::glance(packet)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, SocketAddrV4};

    #[test]
    fn steps_return_each_run_at_its_first_frame() {
        let at = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let flow = |port| Some(Flow::new(at(80), at(port)));
        let mut prefetch = LookupPrefetch::new();
        for port in [1, 1, 2] {
            prefetch.note(flow(port));
        }
        prefetch.note(None);
        prefetch.runs()[0].socket = Some(10);
        prefetch.runs()[1].socket = Some(20);
        assert_eq!(prefetch.step().map(|run| run.socket), Some(Some(10)));
        assert!(!prefetch.changes());
        assert!(prefetch.step().is_none() && prefetch.changes());
        prefetch.forget_flow(&Flow::new(at(80), at(2)));
        assert_eq!(prefetch.step().map(|run| run.socket), Some(None));
        assert_eq!(prefetch.step().map(|run| run.flow), Some(None));
        assert!(prefetch.step().is_none() && !prefetch.changes());
        prefetch.forget();
        assert!(prefetch.runs().is_empty());
    }
}

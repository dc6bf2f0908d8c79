//! Records of deferred handshakes. Each record stores a SYN whose answer the application has
//! postponed.

use crate::collections::list::{Links, List};
use crate::collections::slab::Slab;
use crate::demux::{Demux, Flow};
use crate::handle::DeferredHandle;
use crate::keys::Keys;
use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// The record of a deferred handshake: a SYN whose answer the application has postponed.
#[derive(Debug)]
pub(crate) struct Deferred {
    pub(crate) flow: Flow,
    /// Index of the listener of the forwarder that has received the SYN.
    pub(crate) listener: u32,
    /// Number of the interface on which the SYN has arrived.
    pub(crate) interface: u16,
    /// Whether this handshake was reported to the application.
    is_polled: bool,
    /// The IP packet with the SYN, without the data of the SYN.
    pub(crate) packet: Box<[u8]>,
}

/// All deferred handshakes of a host. Invariant: each record can be found by its flow, and is in
/// exactly one of the lists `fresh` and `polled`.
#[derive(Debug)]
pub(crate) struct Records {
    slab: Slab<Deferred>,
    by_flow: Demux,
    links: Links,
    /// Records that were not yet reported to the application, oldest first.
    fresh: List,
    /// Records that were reported to the application, oldest first.
    polled: List,
    /// Handshakes that were reported to the application, but ended before the application decided.
    /// Their end must still be reported. If the application always polls these events before the
    /// events of new handshakes, their number never exceeds the limit of records.
    pub(crate) cancelled: VecDeque<DeferredHandle>,
}

impl Records {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self {
            slab: Slab::new(),
            by_flow: Demux::new(keys.table("deferred handshakes")),
            links: Links::new(),
            fresh: List::EMPTY,
            polled: List::EMPTY,
            cancelled: VecDeque::new(),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.slab.len()
    }

    /// Returns the number of deferred handshakes that were not yet reported to the application.
    pub(crate) const fn fresh(&self) -> usize {
        self.fresh.len()
    }

    /// Returns the index and the record of a flow, or `None` if the flow has no deferred handshake.
    pub(crate) fn of_flow(&self, flow: &Flow) -> Option<(u32, &Deferred)> {
        let index = self.by_flow.get(flow)?;
        Some((index, self.slab.get(index)?))
    }

    /// Adds a record for `flow`, which must not have one.
    pub(crate) fn insert(&mut self, flow: Flow, listener: u32, interface: u16, packet: Box<[u8]>) {
        let record = Deferred { flow, listener, interface, is_polled: false, packet };
        let index = self.slab.insert(record).index();
        self.by_flow.insert(&flow, index);
        self.links.push_back(&mut self.fresh, index);
    }

    /// Replaces the packet of a record by a retransmission of the SYN.
    pub(crate) fn replace(&mut self, index: u32, packet: Box<[u8]>) {
        if let Some(record) = self.slab.get_mut(index) {
            record.packet = packet;
        }
    }

    /// Returns the oldest record that was not yet reported to the application, with its handle, and
    /// marks it as reported.
    pub(crate) fn poll(&mut self) -> Option<(DeferredHandle, &Deferred)> {
        let index = self.links.pop_front(&mut self.fresh)?;
        self.links.push_back(&mut self.polled, index);
        let (key, record) = self.slab.entry_mut(index)?;
        record.is_polled = true;
        Some((DeferredHandle(key), record))
    }

    /// Removes and returns the record of a handle.
    pub(crate) fn take(&mut self, handle: DeferredHandle) -> Option<Deferred> {
        self.slab.find(handle.0)?;
        self.remove(handle.0.index())
    }

    /// Returns the index of the oldest record. Records are reported to the application in the order
    /// of their arrival. So all reported records are older than those not yet reported.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.polled.first().or_else(|| self.fresh.first())
    }

    /// Removes a record without an answer to the SYN. If the handshake was reported to the
    /// application, notes that its end must be reported as well.
    pub(crate) fn cancel(&mut self, index: u32) {
        let Some(key) = self.slab.key(index) else { return };
        if self.remove(index).is_some_and(|record| record.is_polled) {
            self.cancelled.push_back(DeferredHandle(key));
        }
    }

    /// Removes all records of a listener, without reporting this to the application.
    pub(crate) fn remove_of(&mut self, listener: u32) {
        let is_of =
            |(index, record): (u32, &Deferred)| (record.listener == listener).then_some(index);
        let indices: alloc::vec::Vec<_> = self.slab.iter().filter_map(is_of).collect();
        for index in indices {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: u32) -> Option<Deferred> {
        let record = self.slab.remove(index)?;
        self.by_flow.remove(&record.flow, index);
        let list = if record.is_polled { &mut self.polled } else { &mut self.fresh };
        self.links.remove(list, index);
        if let Some(slots) = self.slab.shrink() {
            self.links.shrink(slots);
        }
        Some(record)
    }

    /// Panics if an invariant is violated.
    pub(crate) fn check(&self, limit: usize) {
        assert!(self.len() <= limit.max(1), "deferred handshakes are limited");
        assert_eq!(self.len(), self.by_flow.len(), "each is found by its flow");
        assert_eq!(self.len(), self.fresh.len() + self.polled.len(), "each is in one list");
        for (index, record) in self.slab.iter() {
            assert_eq!(self.by_flow.get(&record.flow), Some(index), "each is found by its flow");
        }
    }
}

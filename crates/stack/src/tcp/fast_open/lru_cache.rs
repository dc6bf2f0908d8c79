//! A cache of limited size that evicts its least recently used entry.

use crate::collections::list::{Links, List};
use crate::demux::{Demux, Flow};
use alloc::vec::Vec;
use siphasher::sip::SipHasher13;

/// A map from flows to values, of limited size.
///
/// Invariant: each entry is in `table` and in `order`.
#[derive(Debug)]
pub(crate) struct LruCache<T> {
    table: Demux,
    entries: Vec<(Flow, T)>,
    links: Links,
    /// The entries in the order of their most recent use. The entry that was not used for the
    /// longest time is at the front, and is evicted first.
    order: List,
    limit: usize,
}

impl<T> LruCache<T> {
    /// Creates an empty cache for `limit` entries, but at least one.
    pub(crate) fn new(limit: usize, hasher: SipHasher13) -> Self {
        Self {
            table: Demux::new(hasher),
            entries: Vec::new(),
            links: Links::new(),
            order: List::EMPTY,
            limit: limit.max(1),
        }
    }

    /// Returns the value of `flow`, and marks its entry as the most recently used.
    pub(crate) fn get(&mut self, flow: Flow) -> Option<&mut T> {
        let place = self.table.get(&flow)?;
        self.links.remove(&mut self.order, place);
        self.links.push_back(&mut self.order, place);
        self.entries.get_mut(place as usize).map(|entry| &mut entry.1)
    }

    /// Inserts or replaces the value of `flow`. Returns true if another entry was evicted to make
    /// room.
    pub(crate) fn put(&mut self, flow: Flow, value: T) -> bool {
        if let Some(known) = self.get(flow) {
            *known = value;
            return false;
        }
        let is_full = self.entries.len() >= self.limit;
        let oldest = if is_full { self.links.pop_front(&mut self.order) } else { None };
        let place = match oldest {
            Some(place) => {
                let evicted = core::mem::replace(&mut self.entries[place as usize], (flow, value));
                self.table.remove(&evicted.0, place);
                place
            }
            None => {
                self.entries.push((flow, value));
                #[allow(clippy::cast_possible_truncation, reason = "the limit is a small number")]
                {
                    (self.entries.len() - 1) as u32
                }
            }
        };
        self.table.insert(&flow, place);
        self.links.push_back(&mut self.order, place);
        is_full
    }

    /// Panics if an invariant is violated.
    pub(crate) fn check(&self) {
        assert!(self.entries.len() <= self.limit, "entries are limited");
        assert_eq!(self.table.len(), self.entries.len(), "each entry is in the table");
        assert_eq!(self.order.len(), self.entries.len(), "each entry is in the order");
        for (place, (flow, _)) in (0..).zip(&self.entries) {
            assert_eq!(self.table.get(flow), Some(place), "each entry is found");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;
    use core::net::{Ipv4Addr, SocketAddrV4};
    use proptest::prelude::*;

    pub(crate) fn flow(number: u16) -> Flow {
        Flow::bound(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), number))
    }

    proptest! {
        #[test]

        fn the_cache_agrees_with_a_list(
            steps in prop::collection::vec((0_u16..8, any::<bool>()), 0..200),
        ) {
            let mut recent = LruCache::new(4, Keys::new([3; 32]).table("recent"));
            let mut list = Vec::<(u16, usize)>::new();
            for (time, (number, puts)) in steps.into_iter().enumerate() {

                let position = list.iter().position(|entry| entry.0 == number);
                let known = position.map(|at| list.remove(at));
                if puts {
                    let evicts = known.is_none() && list.len() == 4;
                    list.drain(..usize::from(evicts));
                    list.push((number, time));
                    prop_assert_eq!(recent.put(flow(number), time), evicts);
                } else {
                    list.extend(known);
                    prop_assert_eq!(recent.get(flow(number)).copied(), known.map(|entry| entry.1));
                }
                recent.check();
            }
        }
    }
}

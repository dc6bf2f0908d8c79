//! A memory of what was used lately: of too much, what was not used for longest is forgotten.

use crate::collections::list::{Links, List};
use crate::demux::{Demux, Flow};
use alloc::vec::Vec;
use siphasher::sip::SipHasher13;

/// What is remembered of flows.
///
/// Invariant: each entry is in the table, and in the order.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    table: Demux,
    entries: Vec<(Flow, T)>,
    links: Links,
    /// The entries, what was used last at the back.
    order: List,
    limit: usize,
}

impl<T> Recent<T> {
    /// Nothing, and room for `limit`.
    pub(crate) fn new(limit: usize, hasher: SipHasher13) -> Self {
        Self {
            table: Demux::new(hasher),
            entries: Vec::new(),
            links: Links::new(),
            order: List::EMPTY,
            limit: limit.max(1),
        }
    }

    /// What is remembered of `flow`, which is used by this.
    pub(crate) fn get(&mut self, flow: Flow) -> Option<&mut T> {
        let place = self.table.get(flow)?;
        self.links.remove(&mut self.order, place);
        self.links.push_back(&mut self.order, place);
        self.entries.get_mut(place as usize).map(|entry| &mut entry.1)
    }

    /// Remembers `thing` of `flow`; true if another flow had to be forgotten for it.
    pub(crate) fn put(&mut self, flow: Flow, thing: T) -> bool {
        if let Some(known) = self.get(flow) {
            *known = thing;
            return false;
        }
        let is_full = self.entries.len() >= self.limit;
        let oldest = if is_full { self.links.pop_front(&mut self.order) } else { None };
        let place = match oldest {
            Some(place) => {
                let forgotten =
                    core::mem::replace(&mut self.entries[place as usize], (flow, thing));
                self.table.remove(forgotten.0, place);
                place
            }
            None => {
                self.entries.push((flow, thing));
                #[allow(clippy::cast_possible_truncation, reason = "the limit is a small number")]
                {
                    (self.entries.len() - 1) as u32
                }
            }
        };
        self.table.insert(flow, place);
        self.links.push_back(&mut self.order, place);
        is_full
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        assert!(self.entries.len() <= self.limit, "what is remembered is limited");
        assert_eq!(self.table.len(), self.entries.len(), "each entry is in the table");
        assert_eq!(self.order.len(), self.entries.len(), "each entry has its place in the order");
        for (place, (flow, _)) in (0..).zip(&self.entries) {
            assert_eq!(self.table.get(*flow), Some(place), "each entry is found");
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
        fn it_agrees_with_a_list(steps in prop::collection::vec((0_u16..8, any::<bool>()), 0..200)) {
            let mut recent = Recent::new(4, Keys::new([3; 32]).table("recent"));
            let mut list = Vec::<(u16, usize)>::new();
            for (time, (number, puts)) in steps.into_iter().enumerate() {
                let known = list.iter().position(|entry| entry.0 == number).map(|at| list.remove(at));
                if puts {
                    let forgets = known.is_none() && list.len() == 4;
                    list.drain(..usize::from(forgets));
                    list.push((number, time));
                    prop_assert_eq!(recent.put(flow(number), time), forgets);
                } else {
                    list.extend(known);
                    prop_assert_eq!(recent.get(flow(number)).copied(), known.map(|entry| entry.1));
                }
                recent.check();
            }
        }
    }
}

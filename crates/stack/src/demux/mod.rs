//! Which socket a packet is for: a table with a secret hash, and one question that is asked before
//! it, "the same flow as the packet before?".
//!
//! Bulk data comes in trains, so the question is answered with yes nearly always and saves the
//! hash. Where it is not, a lookup costs the same for one flow and for a million; a peer who could
//! predict the hash could make them all collide, and does not know the key.
//!
//! A flow that begins is asked for, found missing and entered, and its next packet comes soon: so what was
//! hashed last is remembered, found or not, and who was entered last is who comes next.

pub(crate) mod flow;
pub(crate) mod prefetch;

pub(crate) use flow::{Flow, FlowHash};

use crate::demux::prefetch::LookupPrefetch;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: Flow,
    socket: u32,
}

/// What the last lookup found before a packet was foreseen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before(Option<Entry>);

/// From flows to sockets.
#[derive(Debug)]
pub(crate) struct Demux {
    hasher: SipHasher13,
    table: HashTable<Entry>,
    /// What the last successful lookup found, or what was entered since. Invariant: an entry of the table.
    last: Option<Entry>,
    /// The flow that was hashed last, and its hash.
    hashed: Option<(Flow, FlowHash)>,
    /// The packets that come next.
    prefetch: LookupPrefetch,
    repeats: u64,
    lookups: u64,
}

impl Demux {
    /// A table without a flow.
    pub(crate) const fn new(hasher: SipHasher13) -> Self {
        Self {
            hasher,
            table: HashTable::new(),
            last: None,
            hashed: None,
            prefetch: LookupPrefetch::new(),
            repeats: 0,
            lookups: 0,
        }
    }

    /// The socket of an arrived packet.
    pub(crate) fn lookup(&mut self, flow: Flow) -> Option<u32> {
        if let Some(socket) = self.last(flow) {
            self.lookups += 1;
            self.repeats += 1;
            return Some(socket);
        }
        self.lookups += 1;
        if self.table.is_empty() {
            return None;
        }
        let own = self.hash(flow);
        let found = self.find(own, flow)?;
        self.last = Some(found);
        Some(found.socket)
    }

    /// The socket of an arrived packet, if that of the packet before was of the same flow. Nothing is counted: who
    /// asks this first counts what it answers.
    #[inline]
    pub(crate) fn last(&self, flow: Flow) -> Option<u32> {
        self.last.filter(|last| last.flow == flow).map(|last| last.socket)
    }

    /// The socket of a flow that is not the one of an arrived packet.
    #[inline]
    pub(crate) fn get(&self, flow: Flow) -> Option<u32> {
        if self.table.is_empty() { None } else { self.get_among(flow) }
    }

    #[inline(never)]
    fn get_among(&self, flow: Flow) -> Option<u32> {
        self.last(flow)
            .or_else(|| self.find(hash(&self.hasher, flow), flow).map(|entry| entry.socket))
    }

    /// Does nobody have the flow? It is perhaps about to be entered.
    #[inline]
    pub(crate) fn is_free(&mut self, flow: Flow) -> bool {
        self.table.is_empty() || self.is_free_among(flow)
    }

    #[inline(never)]
    fn is_free_among(&mut self, flow: Flow) -> bool {
        let own = self.hash(flow);
        self.find(own, flow).is_none()
    }

    /// Leads `flow` to `socket`; false if it leads to one already.
    pub(crate) fn insert(&mut self, flow: Flow, socket: u32) -> bool {
        let own = self.hash(flow);
        if self.find(own, flow).is_some() {
            return false;
        }
        self.insert_hashed(own, flow, socket);
        true
    }

    /// The same by whoever has asked already whether the flow [is free](Demux::is_free), or looked it up in vain, and
    /// knows what [`Demux::hash`] says of it.
    pub(crate) fn insert_hashed(&mut self, own: FlowHash, flow: Flow, socket: u32) {
        debug_assert!(self.find(own, flow).is_none(), "a flow leads to one socket");
        let (hasher, entry) = (&self.hasher, Entry { flow, socket });
        self.table.insert_unique(own.wide(), entry, |entry| hash(hasher, entry.flow).wide());
        self.last = Some(entry);
    }

    /// Forgets `flow` if it leads to `socket`.
    pub(crate) fn remove(&mut self, flow: Flow, socket: u32) {
        let own = self.hash(flow);
        self.remove_hashed(own, flow, socket);
    }

    /// The same by whoever has kept what [`Demux::hash`] says of `flow`.
    pub(crate) fn remove_hashed(&mut self, own: FlowHash, flow: Flow, socket: u32) {
        let matches = |entry: &Entry| entry.flow == flow && entry.socket == socket;
        if let Ok(entry) = self.table.find_entry(own.wide(), matches) {
            entry.remove();
        }
        if self.last.is_some_and(|last| last.flow == flow) {
            self.last = None;
        }
        self.prefetch.forget_flow(flow);
    }

    /// A packet has come, perhaps of this flow, behind those that were noted before.
    #[inline]
    pub(crate) fn note_coming(&mut self, flow: Option<Flow>) {
        self.prefetch.note(flow);
    }

    /// Looks up what was noted, if that is of several flows: each socket that is found is shown to `look`, which says
    /// whether its packets may be taken for such of a known flow.
    pub(crate) fn look_up_coming(&mut self, look: impl Fn(u32) -> bool) -> bool {
        let trains = self.prefetch.trains();
        if trains.len() < 2 {
            self.prefetch.forget();
            return false;
        }
        // One question after the other for all of them, so that no answer has to be waited for; and apart from the
        // hashes, which are so long that the processor sees few of the questions at a time.
        for train in &mut *trains {
            train.hash = train.flow.map_or(FlowHash::NONE, |flow| hash(&self.hasher, flow));
        }
        for train in &mut *trains {
            let find = |flow| self.table.find(train.hash.wide(), |entry| entry.flow == flow);
            train.socket = train.flow.and_then(find).map(|entry| entry.socket);
        }
        for train in trains {
            train.socket = train.socket.filter(|&socket| look(socket));
        }
        true
    }

    /// A packet of this flow has its turn: if that was foreseen, and it is not the flow of the packet before, it is
    /// `last` from now on. What was, so that it can be again.
    pub(crate) fn turn_to_foreseen(&mut self, flow: Option<Flow>) -> Option<Before> {
        let train = self.prefetch.step();
        let (flow, socket) = (flow?, train?.socket?);
        if train?.flow != Some(flow) || self.last(flow).is_some() {
            return None;
        }
        Some(Before(self.last.replace(Entry { flow, socket })))
    }

    /// The packet was none for that connection after all.
    pub(crate) fn turn_back(&mut self, before: Before) {
        self.last = before.0;
    }

    /// Is the packet that has its turn the last before one of another flow?
    pub(crate) fn turns_away(&self) -> bool {
        self.prefetch.changes()
    }

    /// Nothing more comes.
    pub(crate) fn forget_coming(&mut self) {
        self.prefetch.forget();
    }

    /// Is nothing more to come?
    pub(crate) const fn foresees_nothing(&self) -> bool {
        self.prefetch.is_empty()
    }

    /// How many flows there are.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Lookups answered by "the same flow as the packet before", of how many.
    pub(crate) const fn repeats(&self) -> (u64, u64) {
        (self.repeats, self.lookups)
    }

    fn find(&self, hash: FlowHash, flow: Flow) -> Option<Entry> {
        self.table.find(hash.wide(), |entry| entry.flow == flow).copied()
    }

    /// Under what the table has `flow`.
    pub(crate) fn hash(&mut self, flow: Flow) -> FlowHash {
        let known = self.hashed.filter(|hashed| hashed.0 == flow);
        let (_, hash) = known.unwrap_or_else(|| (flow, hash(&self.hasher, flow)));
        self.hashed = Some((flow, hash));
        hash
    }
}

#[inline(never)]
fn hash(hasher: &SipHasher13, flow: Flow) -> FlowHash {
    let (one, other) = hasher.keys();
    #[allow(clippy::cast_possible_truncation, reason = "any 32 of the bits do")]
    let half = flow.hash_by(SipHasher13::new_with_keys(one, other)) as u32;
    FlowHash(half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;
    use alloc::vec::Vec;
    use core::net::{Ipv4Addr, SocketAddrV4};
    use proptest::prelude::*;

    fn demux() -> Demux {
        Demux::new(Keys::new([7; 32]).table("flows"))
    }

    pub(crate) fn flow(remote_port: u16) -> Flow {
        let local = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 80);
        Flow::new(local, SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), remote_port))
    }

    #[test]
    fn a_train_is_hashed_once() {
        let mut demux = demux();
        assert!(demux.insert(flow(1), 10) && demux.insert(flow(2), 20));
        for _ in 0..9 {
            assert_eq!(demux.lookup(flow(1)), Some(10));
        }
        assert_eq!(demux.lookup(flow(2)), Some(20));
        assert_eq!(demux.repeats(), (8, 10));
    }

    #[test]
    fn the_first_packet_of_a_flow_that_was_just_entered_is_none_to_be_hashed_for() {
        let mut demux = demux();
        assert!(demux.is_free(flow(1)) && demux.insert(flow(1), 10) && !demux.is_free(flow(1)));
        assert_eq!((demux.lookup(flow(1)), demux.repeats()), (Some(10), (1, 1)));
        assert!(demux.is_free(flow(2)) && demux.insert(flow(2), 20));
        assert_eq!((demux.lookup(flow(1)), demux.repeats()), (Some(10), (1, 2)));
    }

    #[test]
    fn a_flow_that_left_is_not_found_by_the_question_either() {
        let mut demux = demux();
        assert!(demux.insert(flow(1), 10));
        assert_eq!(demux.lookup(flow(1)), Some(10));
        demux.remove(flow(1), 10);
        assert_eq!(demux.lookup(flow(1)), None);
        assert!(demux.insert(flow(1), 11) && !demux.insert(flow(1), 12));
        assert_eq!(demux.lookup(flow(1)), Some(11));
    }

    #[test]
    fn the_four_parts_of_a_flow_all_count() {
        let at = |address: u8, port| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, address), port);
        let flows = [
            Flow::new(at(1, 1), at(2, 2)),
            Flow::new(at(2, 2), at(1, 1)),
            Flow::new(at(1, 2), at(2, 1)),
            Flow::new(at(1, 1), at(2, 1)),
            Flow::bound(at(1, 1)),
        ];
        for (index, one) in flows.iter().enumerate() {
            assert!(flows[..index].iter().all(|other| other != one));
        }
    }

    /// Or a lookup would cost as much as there are flows: the table begins to look where the lower bits say, and compares
    /// the upper seven before it asks for a flow.
    #[test]
    fn hashes_spread_in_the_lower_bits_and_in_the_upper_ones() {
        let mut demux = demux();
        let hashes: Vec<u64> = (0..1_024).map(|port| demux.hash(flow(port)).wide()).collect();
        let distinct = |part: fn(u64) -> u64| {
            let mut parts: Vec<_> = hashes.iter().map(|&hash| part(hash)).collect();
            parts.sort_unstable();
            parts.dedup();
            parts.len()
        };
        // Of 1,024 places that many balls leave about a third empty.
        assert!(distinct(|hash| hash % 1_024) > 512);
        assert!(distinct(|hash| hash >> 57) > 96);
    }

    /// What comes is what was noted: whoever is known is found by the question alone.
    fn come_true(noted: &[Option<u16>]) {
        let mut demux = demux();
        for port in 0..3 {
            assert!(demux.insert(flow(port), port.into()));
        }
        for &port in noted {
            demux.note_coming(port.map(flow));
        }
        let trains = noted.chunk_by(PartialEq::eq).count();
        assert_eq!(demux.look_up_coming(|socket| socket != 2), trains > 1);
        if trains < 2 {
            return assert!(
                demux.turn_to_foreseen(noted.first().copied().flatten().map(flow)).is_none()
            );
        }
        for (at, &port) in noted.iter().enumerate() {
            let Some(port) = port else {
                assert!(demux.turn_to_foreseen(None).is_none());
                continue;
            };
            let before = demux.last.map(|last| last.flow);
            let turned = demux.turn_to_foreseen(Some(flow(port)));
            let is_expected = port < 2 && before != Some(flow(port));
            assert_eq!(
                turned.is_some(),
                is_expected,
                "who is asked for, and is there, unless it is there already"
            );
            if let Some(turned) = turned {
                assert_eq!(demux.last(flow(port)), Some(port.into()));
                demux.turn_back(turned);
                assert_eq!(demux.last.map(|last| last.flow), before);
            }
            let next = noted.get(at + 1);
            assert_eq!(demux.turns_away(), next.is_some_and(|&next| next != Some(port)));
            demux.lookup(flow(port));
        }
        demux.forget_coming();
        assert!(demux.turn_to_foreseen(Some(flow(0))).is_none());
    }

    proptest! {
        #[test]
        fn what_was_foreseen_is_known_when_it_comes(
            noted in prop::collection::vec(prop::option::of(0_u16..4), 0..12),
        ) {
            come_true(&noted);
        }

        /// Whatever comes instead, and whoever leaves or is entered meanwhile: nobody is led to who is gone.
        #[test]
        fn what_was_foreseen_does_not_have_to_come_true(
            noted in prop::collection::vec(prop::option::of(0_u16..4), 2..12),
            come in prop::collection::vec((0_u16..4, any::<bool>()), 1..16),
        ) {
            let mut demux = demux();
            let mut list: [Option<u32>; 4] = [Some(0), Some(1), Some(2), None];
            for port in 0..3 {
                prop_assert!(demux.insert(flow(port), port.into()));
            }
            for port in noted {
                demux.note_coming(port.map(flow));
            }
            demux.look_up_coming(|_| true);
            for (socket, (port, changes)) in (10..).zip(come) {
                demux.turn_to_foreseen(Some(flow(port)));
                for port in 0..4 {
                    let last = demux.last(flow(port));
                    prop_assert!(last.is_none() || last == list[usize::from(port)]);
                }
                let known = &mut list[usize::from(port)];
                match known.filter(|_| changes) {
                    Some(socket) => {
                        demux.remove(flow(port), socket);
                        *known = None;
                    }
                    None => {
                        prop_assert_eq!(demux.insert(flow(port), socket), known.is_none());
                        known.get_or_insert(socket);
                    }
                }
            }
        }

        #[test]
        fn the_table_agrees_with_a_list(steps in prop::collection::vec((0_u16..8, 0_u8..4), 0..100)) {
            let (mut demux, mut list) = (demux(), Vec::<(u16, u32)>::new());
            for (number, (port, step)) in (0..).zip(steps) {
                let known = list.iter().find(|entry| entry.0 == port).map(|entry| entry.1);
                match (step, known) {
                    (0, _) => prop_assert_eq!(demux.lookup(flow(port)), known),
                    (1, _) => {
                        prop_assert_eq!(demux.insert(flow(port), number), known.is_none());
                        list.extend(known.is_none().then_some((port, number)));
                    }
                    (2, Some(socket)) => demux.remove(flow(port), socket + 1_000),
                    (_, Some(socket)) => {
                        demux.remove(flow(port), socket);
                        list.retain(|entry| entry.0 != port);
                    }
                    (_, None) => demux.remove(flow(port), 0),
                }
                prop_assert_eq!(demux.len(), list.len());
            }
        }
    }
}

//! Demultiplexing: finds the socket that receives a packet. A hash table with a secret key maps
//! flows to sockets, and lookups try a one-entry cache before the table.
//!
//! Packets of bulk data mostly follow packets of their own flow, so nearly all of them hit the
//! cache. The cost of a miss does not depend on the number of flows. Peers do not know the secret
//! key, so they cannot choose flows whose hashes collide.
//!
//! The first packet of a flow causes a failed lookup, then an insertion, and soon another lookup.
//! Therefore the insertion reuses the hash of the failed lookup, and puts the flow into the cache
//! for the next lookup.

pub(crate) mod binding;
pub(crate) mod flow;
pub(crate) mod prefetch;

pub(crate) use binding::Binding;
pub(crate) use flow::{Flow, FlowHash};

use crate::collections::KEPT;
use crate::demux::flow::Hosts;
use crate::demux::prefetch::LookupPrefetch;
use core::hint::cold_path;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: Flow,
    socket: u32,
}

/// The former content of the one-entry cache, which prefetch has replaced. [`Demux::restore`] puts
/// it back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replaced(Option<Entry>);

/// A table entry for one IP version, whose addresses take `HOSTS` bytes. It is as small as
/// possible, because it is a large part of the memory of an idle connection.
#[derive(Clone, Copy, Debug)]
struct Packed<const HOSTS: usize> {
    hosts: [u8; HOSTS],
    ports: [u8; 4],
    socket: u32,
}

impl<const HOSTS: usize> Packed<HOSTS> {
    #[inline(always)]
    fn is_of(&self, hosts: &[u8; HOSTS], ports: [u8; 4]) -> bool {
        self.ports == ports && self.hosts == *hosts
    }
}

impl Packed<8> {
    fn hash(&self, hasher: &SipHasher13) -> u64 {
        hash(hasher, &Flow { hosts: Hosts::V4(self.hosts), ports: self.ports }).wide()
    }
}

impl Packed<32> {
    fn hash(&self, hasher: &SipHasher13) -> u64 {
        hash(hasher, &Flow { hosts: Hosts::V6(self.hosts), ports: self.ports }).wide()
    }
}

/// Shrinks a table to twice its length if less than an eighth of its capacity is used. Shrinking
/// moves the remaining entries. Since the capacity last changed, more entries were removed than
/// remain, so the amortised cost of a removal is constant.
#[inline]
fn give_back_table<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    if table.capacity() > 8 * table.len() + KEPT {
        cold_path();
        table.shrink_to(2 * table.len(), hash);
    }
}

/// The hash tables, one for each IP version. If both versions shared a table, each IPv4 entry would
/// take as much memory as an IPv6 entry.
#[derive(Debug)]
struct Tables {
    ipv4: HashTable<Packed<8>>,
    ipv6: HashTable<Packed<32>>,
}

impl Tables {
    #[inline]
    fn is_empty(&self) -> bool {
        self.ipv4.is_empty() && self.ipv6.is_empty()
    }

    fn len(&self) -> usize {
        self.ipv4.len() + self.ipv6.len()
    }

    #[inline(always)]
    fn find(&self, hash: FlowHash, flow: &Flow) -> Option<u32> {
        let (hash, ports) = (hash.wide(), flow.ports);
        match &flow.hosts {
            Hosts::V4(hosts) => {
                self.ipv4.find(hash, |entry| entry.is_of(hosts, ports)).map(|entry| entry.socket)
            }
            Hosts::V6(hosts) => {
                self.ipv6.find(hash, |entry| entry.is_of(hosts, ports)).map(|entry| entry.socket)
            }
        }
    }

    fn insert(&mut self, hasher: &SipHasher13, key: FlowHash, flow: &Flow, socket: u32) {
        let ports = flow.ports;
        match flow.hosts {
            Hosts::V4(hosts) => {
                let entry = Packed { hosts, ports, socket };
                self.ipv4.insert_unique(key.wide(), entry, |entry| entry.hash(hasher));
            }
            Hosts::V6(hosts) => {
                let entry = Packed { hosts, ports, socket };
                self.ipv6.insert_unique(key.wide(), entry, |entry| entry.hash(hasher));
            }
        }
    }

    fn remove(&mut self, hasher: &SipHasher13, key: FlowHash, flow: &Flow, socket: u32) {
        let ports = flow.ports;
        match &flow.hosts {
            Hosts::V4(hosts) => {
                let is_it = |entry: &Packed<8>| entry.is_of(hosts, ports) && entry.socket == socket;
                if let Ok(entry) = self.ipv4.find_entry(key.wide(), is_it) {
                    entry.remove();
                }
                give_back_table(&mut self.ipv4, |entry| entry.hash(hasher));
            }
            Hosts::V6(hosts) => {
                let is_it =
                    |entry: &Packed<32>| entry.is_of(hosts, ports) && entry.socket == socket;
                if let Ok(entry) = self.ipv6.find_entry(key.wide(), is_it) {
                    entry.remove();
                }
                give_back_table(&mut self.ipv6, |entry| entry.hash(hasher));
            }
        }
    }
}

/// The map from flows to sockets.
#[derive(Debug)]
pub(crate) struct Demux {
    hasher: SipHasher13,
    table: Tables,
    /// The one-entry cache: the flow that was most recently found or inserted. Invariant: the entry
    /// is also in the table.
    last: Option<Entry>,
    /// The flow whose hash was computed most recently, and this hash.
    hashed: Option<(Flow, FlowHash)>,
    /// The flows of the frames in the current batch.
    prefetch: LookupPrefetch,
    repeats: u64,
    lookups: u64,
}

impl Demux {
    /// Creates an empty table.
    pub(crate) const fn new(hasher: SipHasher13) -> Self {
        Self {
            hasher,
            table: Tables { ipv4: HashTable::new(), ipv6: HashTable::new() },
            last: None,
            hashed: None,
            prefetch: LookupPrefetch::new(),
            repeats: 0,
            lookups: 0,
        }
    }

    /// Returns the socket that receives a packet of this flow.
    pub(crate) fn lookup(&mut self, flow: &Flow) -> Option<u32> {
        if let Some(socket) = self.last(flow) {
            self.lookups += 1;
            self.repeats += 1;
            return Some(socket);
        }
        self.lookups += 1;
        if self.table.is_empty() {
            return None;
        }
        let key = self.hash(flow);
        let socket = self.table.find(key, flow)?;
        self.last = Some(Entry { flow: *flow, socket });
        Some(socket)
    }

    /// Returns the socket of `flow` if the flow is in the one-entry cache. Does not count this
    /// lookup in the statistics; a caller that then handles the packet must count it.
    #[inline]
    pub(crate) fn last(&self, flow: &Flow) -> Option<u32> {
        match &self.last {
            Some(last) if last.flow == *flow => Some(last.socket),
            _ => None,
        }
    }

    /// Returns the socket of a flow, without changing the one-entry cache.
    #[inline]
    pub(crate) fn get(&self, flow: &Flow) -> Option<u32> {
        if self.table.is_empty() { None } else { self.get_from_table(flow) }
    }

    /// Returns whether a socket is bound to the local address and port of this flow, or to the
    /// local port at all addresses.
    #[inline]
    pub(crate) fn has_bound(&self, flow: &Flow) -> bool {
        !self.table.is_empty() && self.has_bound_in_table(flow)
    }

    #[inline(never)]
    fn has_bound_in_table(&self, flow: &Flow) -> bool {
        self.get(&flow.bound_to_local()).is_some() || self.get(&flow.bound_to_all()).is_some()
    }

    #[inline(never)]
    fn get_from_table(&self, flow: &Flow) -> Option<u32> {
        self.last(flow).or_else(|| self.table.find(hash(&self.hasher, flow), flow))
    }

    /// Returns whether the table does not contain `flow`. If so, an insertion of `flow` is likely
    /// to follow, so the hash of the flow is stored for it.
    #[inline]
    pub(crate) fn is_free(&mut self, flow: &Flow) -> bool {
        self.table.is_empty() || self.is_absent_from_table(flow)
    }

    #[inline(never)]
    fn is_absent_from_table(&mut self, flow: &Flow) -> bool {
        let key = self.hash(flow);
        self.table.find(key, flow).is_none()
    }

    /// Inserts `flow` with its socket. Returns false if the table already contains the flow.
    pub(crate) fn insert(&mut self, flow: &Flow, socket: u32) -> bool {
        let key = self.hash(flow);
        if self.table.find(key, flow).is_some() {
            return false;
        }
        self.insert_hashed(key, flow, socket);
        true
    }

    /// Inserts `flow`, whose hash is `key`. The caller has checked that the flow is
    /// [absent](Demux::is_free).
    pub(crate) fn insert_hashed(&mut self, key: FlowHash, flow: &Flow, socket: u32) {
        debug_assert!(self.table.find(key, flow).is_none(), "a flow leads to one socket");
        self.table.insert(&self.hasher, key, flow, socket);
        self.last = Some(Entry { flow: *flow, socket });
    }

    /// Removes `flow` if it belongs to `socket`.
    pub(crate) fn remove(&mut self, flow: &Flow, socket: u32) {
        let key = self.hash(flow);
        self.remove_hashed(key, flow, socket);
    }

    /// Removes `flow`, whose hash is `key`, if it belongs to `socket`.
    pub(crate) fn remove_hashed(&mut self, key: FlowHash, flow: &Flow, socket: u32) {
        self.table.remove(&self.hasher, key, flow, socket);
        if self.last.as_ref().is_some_and(|last| last.flow == *flow) {
            self.last = None;
        }
        self.prefetch.forget_flow(flow);
    }

    /// Adds a frame to the batch whose flows [`Demux::look_up_announced`] will look up together.
    /// `flow` is the flow of the frame, or `None` if the frame contains no TCP segment.
    #[inline]
    pub(crate) fn announce(&mut self, flow: Option<Flow>) {
        self.prefetch.note(flow);
    }

    /// Looks up the flows of all frames of the batch, and calls `look` for each socket that is
    /// found. `look` prefetches the socket, and returns whether its packets may use the flow cache;
    /// if not, the found socket is discarded. If all frames of the batch belong to one flow,
    /// returns false without any lookup, because the one-entry cache suffices. Otherwise returns
    /// true.
    pub(crate) fn look_up_announced(&mut self, look: impl Fn(u32) -> bool) -> bool {
        let runs = self.prefetch.runs();
        if runs.len() < 2 {
            self.prefetch.forget();
            return false;
        }
        // All hashes are computed before the first lookup. A hash takes so many instructions that
        // only few lookups would fit into the processor's out-of-order window if hashes and lookups
        // alternated. In a loop of lookups only, their cache misses overlap.
        for run in &mut *runs {
            run.hash = run.flow.as_ref().map_or(FlowHash::NONE, |flow| hash(&self.hasher, flow));
        }
        for run in &mut *runs {
            run.socket = run.flow.as_ref().and_then(|flow| self.table.find(run.hash, flow));
        }
        for run in runs {
            run.socket = run.socket.filter(|&socket| look(socket));
        }
        true
    }

    /// Advances to the next frame of the announced batch, whose flow is `flow`. Puts the flow into
    /// the one-entry cache, if the prefetch has found its socket and the cache contains another
    /// flow. Returns the former content of the cache, or `None` if the cache was not changed.
    pub(crate) fn step_to_announced(&mut self, flow: Option<Flow>) -> Option<Replaced> {
        let run = self.prefetch.step();
        let (flow, socket) = (flow?, run?.socket?);
        if run?.flow != Some(flow) || self.last(&flow).is_some() {
            return None;
        }
        Some(Replaced(self.last.replace(Entry { flow, socket })))
    }

    /// Puts the entry `before`, which [`Demux::step_to_announced`] has replaced, back into the
    /// one-entry cache. Called after a frame that did not use the prefetched entry.
    pub(crate) fn restore(&mut self, before: Replaced) {
        self.last = before.0;
    }

    /// Returns whether the batch has a next frame, and that frame belongs to another flow than the
    /// current frame.
    pub(crate) fn is_last_of_run(&self) -> bool {
        self.prefetch.changes()
    }

    /// Forgets the current batch.
    pub(crate) fn end_batch(&mut self) {
        self.prefetch.forget();
    }

    /// Returns whether no batch is in progress.
    pub(crate) const fn has_no_batch(&self) -> bool {
        self.prefetch.is_empty()
    }

    /// Returns the number of flows in the table.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of hits of the one-entry cache, and the number of all lookups.
    pub(crate) const fn repeats(&self) -> (u64, u64) {
        (self.repeats, self.lookups)
    }

    /// Returns the hash of `flow`. Reuses the stored hash if `flow` is the flow that was hashed
    /// most recently.
    pub(crate) fn hash(&mut self, flow: &Flow) -> FlowHash {
        if let Some((known, hash)) = &self.hashed
            && known == flow
        {
            return *hash;
        }
        let hash = hash(&self.hasher, flow);
        self.hashed = Some((*flow, hash));
        hash
    }
}

#[inline(never)]
fn hash(hasher: &SipHasher13, flow: &Flow) -> FlowHash {
    let (one, other) = hasher.keys();
    #[allow(clippy::cast_possible_truncation, reason = "any 32 of the bits do")]
    let half = flow.hash_by(SipHasher13::new_with_keys(one, other)) as u32;
    FlowHash(half)
}

#[cfg(test)]
mod tests;

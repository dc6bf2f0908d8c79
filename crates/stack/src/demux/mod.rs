//! Demultiplexing: finds the socket of a packet. A hash table with a secret key maps flows to
//! sockets, and a one-entry cache precedes it.
//!
//! Bulk data arrive in runs of one flow, so nearly all of their packets hit the cache. A miss costs
//! the same with one flow as with a million. Peers do not know the secret key, so they cannot
//! choose flows whose hashes collide.
//!
//! The first packet of a flow causes a failed lookup, then an insertion, and soon another lookup.
//! Therefore the last hash is kept even if its lookup failed, and an inserted flow enters the
//! cache.

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

/// A previous entry of the one-entry cache, by which it can be restored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replaced(Option<Entry>);

/// A table entry for one IP version, of the smallest possible size. Most connections are idle, and
/// this entry is then a large part of their memory.
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

/// Gives back memory of a table of which less than an eighth is used. The cost is in proportion to
/// the entries that were removed before.
#[inline]
fn give_back_table<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    if table.capacity() > 8 * table.len() + KEPT {
        cold_path();
        table.shrink_to(2 * table.len(), hash);
    }
}

/// A table for each IP version. In a common table, IPv4 entries would be as long as IPv6 entries.
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

/// The table that finds the socket of a flow.
#[derive(Debug)]
pub(crate) struct Demux {
    hasher: SipHasher13,
    table: Tables,
    /// The one-entry cache: the last flow that was found or inserted. Invariant: the entry is in
    /// the table.
    last: Option<Entry>,
    /// The flow that was hashed last, and its hash.
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

    /// Returns the socket of `flow` if it is in the one-entry cache. The packet is not counted
    /// here, but by the caller if it handles it.
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

    /// Returns whether a socket is bound to the local end of this flow, or to its local port at all
    /// addresses.
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

    /// Returns whether the table does not contain a flow. Keeps its hash, because an insertion is
    /// likely to follow.
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

    /// Inserts `flow`, whose hash is `key` and which is known to be [absent](Demux::is_free).
    pub(crate) fn insert_hashed(&mut self, key: FlowHash, flow: &Flow, socket: u32) {
        debug_assert!(self.table.find(key, flow).is_none(), "a flow leads to one socket");
        self.table.insert(&self.hasher, key, flow, socket);
        self.last = Some(Entry { flow: *flow, socket });
    }

    /// Removes `flow`, unless it belongs to another socket than `socket`.
    pub(crate) fn remove(&mut self, flow: &Flow, socket: u32) {
        let key = self.hash(flow);
        self.remove_hashed(key, flow, socket);
    }

    /// Removes `flow`, whose hash is `key`, unless it belongs to another socket than `socket`.
    pub(crate) fn remove_hashed(&mut self, key: FlowHash, flow: &Flow, socket: u32) {
        self.table.remove(&self.hasher, key, flow, socket);
        if self.last.as_ref().is_some_and(|last| last.flow == *flow) {
            self.last = None;
        }
        self.prefetch.forget_flow(flow);
    }

    /// Adds a frame to the next batch. `flow` is its flow, if it is a TCP segment.
    #[inline]
    pub(crate) fn announce(&mut self, flow: Option<Flow>) {
        self.prefetch.note(flow);
    }

    /// Looks up all frames of the batch if they belong to several flows, and prefetches the sockets
    /// that are found. `look` touches a socket, and returns whether its packets may use the flow
    /// cache.
    pub(crate) fn look_up_announced(&mut self, look: impl Fn(u32) -> bool) -> bool {
        let runs = self.prefetch.runs();
        if runs.len() < 2 {
            self.prefetch.forget();
            return false;
        }
        // One loop issues all lookups, so that their cache misses overlap. Hashing is done in a
        // loop before it: a hash takes so many instructions that few lookups would fit the
        // processor's out-of-order window at a time.
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

    /// Advances to the next frame of the batch. If the lookup of the batch has found the socket of
    /// the frame, and the one-entry cache holds another socket, the found socket replaces the
    /// entry. Returns the replaced entry.
    pub(crate) fn step_to_announced(&mut self, flow: Option<Flow>) -> Option<Replaced> {
        let run = self.prefetch.step();
        let (flow, socket) = (flow?, run?.socket?);
        if run?.flow != Some(flow) || self.last(&flow).is_some() {
            return None;
        }
        Some(Replaced(self.last.replace(Entry { flow, socket })))
    }

    /// Restores the one-entry cache, after a frame that could not be handled as the batch
    /// predicted.
    pub(crate) fn restore(&mut self, before: Replaced) {
        self.last = before.0;
    }

    /// Returns whether the next frame of the batch belongs to another flow than the current one.
    pub(crate) fn is_last_of_run(&self) -> bool {
        self.prefetch.changes()
    }

    /// Forgets the current batch.
    pub(crate) fn end_batch(&mut self) {
        self.prefetch.forget();
    }

    /// Returns whether there is no batch at present.
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

    /// Returns the hash of `flow`, which is computed unless it was the last one.
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

//! The neighbour cache: the MAC address of each IP address on the link, by ARP (RFC 826, RFC 1122
//! §2.3.2) or Neighbour Discovery (RFC 4861).
//!
//! A neighbour is *unresolved* until it answers, *reachable* for 30 seconds after each packet that
//! confirms it, and then *stale*. A stale neighbour remains in use, but its first use starts
//! *probing* it, and a neighbour that does not answer is removed. At most one request a second is
//! sent for each neighbour, as long as the cache has room for all that are requested. Unsolicited
//! packets update existing entries and create none. A host that requests our address gets an
//! entry, because we are about to answer it.
//!
//! A caller that caches the result of a lookup stores [`Neighbors::generation`] with it, and
//! repeats the lookup when the generation has changed.

use crate::collections::address_table::AddressTable;
use crate::collections::list::{Links, List};
use crate::collections::packet_queue::PacketQueue;
use crate::collections::slab::Slab;
use crate::collections::timer_wheel::TimerWheel;
use crate::counters::NeighborCounters;
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_units::{Duration, Instant};
use linerate_wire::MacAddress;
use siphasher::sip::SipHasher13;

/// Interval between requests for a neighbour (RFC 1122 §2.3.2.1: at most one a second).
const INTERVAL: Duration = Duration::from_secs(1);
/// Unanswered requests after which a neighbour is considered gone.
const MAX_REQUESTS: u8 = 3;
/// Time for which a confirmed neighbour counts as reachable.
const REACHABLE: Duration = Duration::from_secs(30);
/// Time for which an unused stale neighbour is kept.
const STALE: Duration = Duration::from_secs(60);

/// The limits of the neighbour cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborLimits {
    /// Entries of the cache. A new neighbour beyond this limit replaces one that was never used, or
    /// the least recently used one.
    pub entries: usize,
    /// Entries that have not answered yet. No request is sent for a neighbour beyond this limit,
    /// and packets to it are dropped. Otherwise packets with forged sources could provoke requests
    /// without limit.
    pub unresolved: usize,
    /// Bytes of packets queued for the answer of one neighbour.
    pub waiting_bytes: usize,
}

impl Default for NeighborLimits {
    fn default() -> Self {
        Self { entries: 1_024, unresolved: 128, waiting_bytes: 16 << 10 }
    }
}

/// An ARP request or a Neighbour Solicitation to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeighborRequest {
    /// The requested address.
    pub(crate) address: IpAddr,
    /// The last known MAC address, for a unicast request; `None` to broadcast.
    pub(crate) mac: Option<MacAddress>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unresolved,
    Reachable,
    Stale,
    Probed,
}

#[derive(Debug)]
struct Neighbor {
    address: IpAddr,
    state: State,
    /// Invariant: zero exactly while the state is unresolved.
    mac: MacAddress,
    /// Was it ever looked up?
    used: bool,
    /// Requests sent since the neighbour was last confirmed.
    requests_sent: u8,
    /// The time at which the state ends.
    expires: Instant,
    queued: PacketQueue<()>,
}

/// The neighbour cache of an interface.
#[derive(Debug)]
pub(crate) struct Neighbors {
    table: AddressTable,
    entries: Slab<Neighbor>,
    /// The index of the entry found by the last lookup. The slot may be empty or reused by now.
    last: u32,
    timers: TimerWheel,
    /// Links of `unresolved`, `unused` and `used`. Each entry is in one of them, ordered by its
    /// creation or last lookup.
    order: Links,
    unresolved: List,
    unused: List,
    used: List,
    request_links: Links,
    /// Entries with a request to send.
    requests: List,
    release_links: Links,
    /// Entries with a MAC address and queued packets.
    released: List,
    generation: u64,
    limits: NeighborLimits,
    counters: NeighborCounters,
}

impl Neighbors {
    /// Creates an empty cache.
    pub(crate) fn new(limits: NeighborLimits, hasher: SipHasher13) -> Self {
        Self {
            table: AddressTable::new(hasher),
            entries: Slab::new(),
            last: 0,
            timers: TimerWheel::new(),
            order: Links::new(),
            unresolved: List::EMPTY,
            unused: List::EMPTY,
            used: List::EMPTY,
            request_links: Links::new(),
            requests: List::EMPTY,
            release_links: Links::new(),
            released: List::EMPTY,
            generation: 0,
            limits,
            counters: NeighborCounters::default(),
        }
    }

    /// Returns the MAC address of `address`. An unknown or stale neighbour is requested.
    pub(crate) fn lookup(&mut self, now: Instant, address: IpAddr) -> Option<MacAddress> {
        let is_last = self.entries.get(self.last).is_some_and(|entry| entry.address == address);
        let found = if is_last { Some(self.last) } else { self.table.get(address) };
        let Some(index) = found else {
            self.resolve(now, address);
            return None;
        };
        self.last = index;
        let entry = self.entries.get_mut(index)?;
        let (state, mac) = (entry.state, entry.mac);
        match state {
            State::Unresolved => return None,
            State::Reachable | State::Probed => {}
            State::Stale => self.next_holder(now, index, State::Probed),
        }
        if self.used.last() != Some(index) {
            self.leave_order(index);
            self.join_order(index, true);
        }
        Some(mac)
    }

    /// Queues a packet until `address`, whose lookup has just failed, is resolved.
    pub(crate) fn enqueue(&mut self, address: IpAddr, packet: &[u8]) {
        let entry = self.table.get(address).and_then(|index| self.entries.get_mut(index));
        let kept = entry.is_some_and(|entry| entry.queued.push((), packet));
        self.counters.queue_drops += u64::from(!kept);
    }

    /// Records that `mac` has `address`. If the packet requested our address, a missing entry is
    /// created.
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        address: IpAddr,
        mac: MacAddress,
        is_request_for_us: bool,
    ) {
        let Some(index) = self.table.get(address) else {
            if is_request_for_us {
                self.add(now, address, State::Reachable, mac);
            }
            return;
        };
        let Some(entry) = self.entries.get_mut(index) else { return };
        let was = core::mem::replace(&mut entry.state, State::Reachable);
        let before = core::mem::replace(&mut entry.mac, mac);
        entry.requests_sent = 0;
        entry.expires = now + REACHABLE;
        let (expires, has_queued) = (entry.expires, !entry.queued.is_empty());
        self.timers.arm(index, expires);
        if was == State::Unresolved {
            self.order.remove(&mut self.unresolved, index);
            self.join_order(index, true);
        } else if before != mac {
            self.counters.changes += 1;
            self.generation += 1;
        }
        if has_queued && !self.release_links.contains(index) {
            self.release_links.push_back(&mut self.released, index);
        }
        if self.request_links.contains(index) {
            self.request_links.remove(&mut self.requests, index);
        }
    }

    /// Is another MAC address than `mac` known for `address`?
    pub(crate) fn knows_other(&self, address: IpAddr, mac: MacAddress) -> bool {
        let entry = self.table.get(address).and_then(|index| self.entries.get(index));
        entry.is_some_and(|entry| entry.state != State::Unresolved && entry.mac != mac)
    }

    /// Reports that a connection through `address` makes no progress. The neighbour is probed at
    /// its next use, even if it is reachable, unless it was confirmed within the last second.
    pub(crate) fn suspect(&mut self, now: Instant, address: IpAddr) {
        let Some(index) = self.table.get(address) else { return };
        let Some(entry) = self.entries.get_mut(index) else { return };
        if entry.state == State::Reachable && entry.expires + INTERVAL <= now + REACHABLE {
            self.become_stale(now, index);
        }
    }

    /// Runs one timer that is due at `now`, and returns the queued packets of a neighbour that did
    /// not answer. Returns `None` if no timer is due.
    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Option<Vec<Vec<u8>>> {
        if now < self.timers.next() {
            return None;
        }
        let index = self.timers.expire(now)?;
        Some(self.end_state(now, index))
    }

    #[inline(never)]
    fn end_state(&mut self, now: Instant, index: u32) -> Vec<Vec<u8>> {
        let Some(entry) = self.entries.get_mut(index) else { return Vec::new() };
        if entry.expires > now {
            self.timers.arm(index, entry.expires);
            return Vec::new();
        }
        match entry.state {
            State::Reachable => self.become_stale(now, index),
            State::Stale => drop(self.forget(index)),
            state @ (State::Unresolved | State::Probed) if entry.requests_sent < MAX_REQUESTS => {
                self.next_holder(now, index, state);
            }
            State::Unresolved | State::Probed => {
                self.counters.failures += 1;
                return self.forget(index);
            }
        }
        Vec::new()
    }

    /// Returns a time before which [`Neighbors::handle_timeout`] has nothing to do.
    #[inline]
    pub(crate) const fn poll_timeout(&self) -> Instant {
        self.timers.next()
    }

    /// Removes and returns the next request to send. The last request to a neighbour is broadcast,
    /// in case its address has moved to another host.
    pub(crate) fn poll_request(&mut self) -> Option<NeighborRequest> {
        let index = self.request_links.pop_front(&mut self.requests)?;
        let entry = self.entries.get(index)?;
        let unicast = entry.state == State::Probed && entry.requests_sent < MAX_REQUESTS;
        self.counters.out_requests += 1;
        Some(NeighborRequest { address: entry.address, mac: unicast.then_some(entry.mac) })
    }

    /// Removes and returns the next packet whose neighbour is resolved.
    pub(crate) fn poll_released(&mut self) -> Option<(MacAddress, Vec<u8>)> {
        let index = self.released.first()?;
        let entry = self.entries.get_mut(index)?;
        let packet = entry.queued.pop();
        let mac = entry.mac;
        if entry.queued.is_empty() {
            self.release_links.remove(&mut self.released, index);
        }
        packet.map(|((), packet)| (mac, packet))
    }

    /// Is there a request or a packet to send?
    #[inline]
    pub(crate) const fn wants_transmit(&self) -> bool {
        !self.requests.is_empty() || !self.released.is_empty()
    }

    /// Is a packet queued for an unresolved neighbour?
    pub(crate) fn has_queued_packets(&self) -> bool {
        let has_queued =
            |index| self.entries.get(index).is_some_and(|entry| !entry.queued.is_empty());
        self.order.iter(&self.unresolved).any(has_queued)
    }

    /// Returns a number that grows whenever a successful lookup may have another result.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the counters, for writing.
    pub(crate) const fn counters_mut(&mut self) -> &mut NeighborCounters {
        &mut self.counters
    }

    /// Returns the counters.
    pub(crate) const fn counters(&self) -> &NeighborCounters {
        &self.counters
    }

    /// Makes a neighbour stale. The new generation forces its users to look it up again, which
    /// probes it.
    fn become_stale(&mut self, now: Instant, index: u32) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.state = State::Stale;
            entry.expires = now + STALE;
            self.timers.arm(index, now + STALE);
            self.generation += 1;
        }
    }

    /// Creates an unresolved entry and requests it, within the limit.
    fn resolve(&mut self, now: Instant, address: IpAddr) {
        if self.unresolved.len() >= self.limits.unresolved {
            self.counters.table_overflows += 1;
            return;
        }
        let index = self.add(now, address, State::Unresolved, MacAddress::ZERO);
        self.next_holder(now, index, State::Unresolved);
    }

    fn add(&mut self, now: Instant, address: IpAddr, state: State, mac: MacAddress) -> u32 {
        if self.entries.len() >= self.limits.entries.max(self.limits.unresolved + 1) {
            self.make_room();
        }
        let expires = now + REACHABLE;
        let queued = PacketQueue::new(self.limits.waiting_bytes);
        let entry =
            Neighbor { address, state, mac, used: false, requests_sent: 0, expires, queued };
        let index = self.entries.insert(entry).index();
        self.table.insert(address, index);
        self.timers.arm(index, expires);
        self.join_order(index, false);
        index
    }

    /// Removes the oldest unused neighbour, or else the least recently used one. There always is
    /// one, because the limit of unresolved neighbours is below that of all.
    fn make_room(&mut self) {
        if let Some(index) = self.unused.first().or_else(|| self.used.first()) {
            self.counters.table_overflows += 1;
            self.counters.queue_drops += self.forget(index).len() as u64;
        }
    }

    /// Schedules a request, and waits a second for the answer.
    fn next_holder(&mut self, now: Instant, index: u32, state: State) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        entry.state = state;
        entry.requests_sent += 1;
        entry.expires = now + INTERVAL;
        self.timers.arm(index, entry.expires);
        if !self.request_links.contains(index) {
            self.request_links.push_back(&mut self.requests, index);
        }
    }

    /// Removes an entry from all lists, and returns its queued packets.
    fn forget(&mut self, index: u32) -> Vec<Vec<u8>> {
        self.timers.disarm(index);
        self.leave_order(index);
        if self.request_links.contains(index) {
            self.request_links.remove(&mut self.requests, index);
        }
        if self.release_links.contains(index) {
            self.release_links.remove(&mut self.released, index);
        }
        let Some(mut entry) = self.entries.remove(index) else { return Vec::new() };
        self.table.remove(entry.address);
        if entry.state != State::Unresolved {
            self.generation += 1;
        }
        core::iter::from_fn(|| entry.queued.pop()).map(|((), packet)| packet).collect()
    }

    fn join_order(&mut self, index: u32, used: bool) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.used |= used;
            let list = match (entry.state, entry.used) {
                (State::Unresolved, _) => &mut self.unresolved,
                (_, false) => &mut self.unused,
                (_, true) => &mut self.used,
            };
            self.order.push_back(list, index);
        }
    }

    fn leave_order(&mut self, index: u32) {
        if let Some(entry) = self.entries.get(index) {
            let list = match (entry.state, entry.used) {
                (State::Unresolved, _) => &mut self.unresolved,
                (_, false) => &mut self.unused,
                (_, true) => &mut self.used,
            };
            self.order.remove(list, index);
        }
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        let all = self.entries.len();
        assert_eq!(self.table.len(), all, "each neighbour is in the table");
        assert_eq!(
            self.unresolved.len() + self.unused.len() + self.used.len(),
            all,
            "each neighbour is in one list"
        );
        assert!(
            self.unresolved.len() <= self.limits.unresolved,
            "unresolved neighbours are limited"
        );
        assert!(
            all <= self.limits.entries.max(self.limits.unresolved + 1),
            "neighbours are limited"
        );
        for (index, entry) in self.entries.iter() {
            entry.queued.check();
            assert_eq!(self.table.get(entry.address), Some(index), "each neighbour is found");
            assert!(self.timers.deadline(index) <= entry.expires, "each neighbour has a timer");
            assert_eq!(
                entry.mac == MacAddress::ZERO,
                entry.state == State::Unresolved,
                "{entry:?}"
            );
            assert!(entry.requests_sent <= MAX_REQUESTS, "{entry:?}");
        }
    }
}

#[cfg(test)]
mod tests;

//! The neighbour cache: the MAC address of each IP address on the link, found by ARP (RFC 826, RFC
//! 1122 §2.3.2) or Neighbour Discovery (RFC 4861).
//!
//! A neighbour is *unresolved* until it answers, *reachable* for about 30 seconds after each packet
//! that confirms it, and then *stale*. The host still sends to a stale neighbour, but the first
//! packet to it starts *probing* the neighbour. A neighbour that does not answer is removed. With
//! Neighbour Discovery, probing begins after a *delay* of five seconds, in which the progress of a
//! connection can confirm the neighbour (RFC 4861 §7.3; module `unreachability`).
//!
//! The host sends at most one request per second to each neighbour, unless a router has set another
//! interval. A neighbour that was evicted from a full cache can be requested anew within the
//! interval. Unsolicited ARP packets and neighbour advertisements update existing entries, but
//! create no entries. A neighbour that requests an address of this host gets an entry, because this
//! host is about to send an answer to it. A valid router advertisement or redirect with a MAC
//! address also creates an entry (RFC 4861 §6.3.4, §8.3).
//!
//! A caller that caches the result of a lookup stores [`Neighbors::generation`] with it, and
//! repeats the lookup when the generation has changed.

mod unreachability;

pub(crate) use unreachability::{Advertised, Witness};

use crate::collections::address_table::AddressTable;
use crate::collections::list::{Links, List};
use crate::collections::packet_queue::PacketQueue;
use crate::collections::slab::Slab;
use crate::collections::timer_wheel::TimerWheel;
use crate::counters::NeighborCounters;
use crate::keys::Draws;
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_units::{Duration, Instant};
use linerate_wire::MacAddress;
use siphasher::sip::SipHasher13;

/// Interval between requests for one neighbour. RFC 1122 §2.3.2.1 recommends at most one request a
/// second.
const INTERVAL: Duration = Duration::from_secs(1);
/// Number of unanswered requests after which a neighbour is removed.
const MAX_REQUESTS: u8 = 3;
/// Time for which a neighbour counts as reachable after it was confirmed.
const REACHABLE: Duration = Duration::from_secs(30);
/// Time after which a stale neighbour that is not used is removed.
const STALE: Duration = Duration::from_secs(60);

/// The limits of the neighbour cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborLimits {
    /// Maximum number of entries. At the limit, a new neighbour replaces the oldest entry that was
    /// never used, or else the least recently used entry.
    pub entries: usize,
    /// Maximum number of neighbours that have not answered yet. At the limit, the host sends no
    /// request for further neighbours, and drops packets to them. Without this limit, packets with
    /// forged source addresses could provoke any number of requests.
    pub unresolved: usize,
    /// Maximum size of all packets that wait for the answer of one neighbour, in bytes. The default
    /// has room for the largest datagram. Such a datagram waits as one packet, because it is
    /// fragmented only when it is sent.
    pub waiting_bytes: usize,
}

impl Default for NeighborLimits {
    fn default() -> Self {
        Self { entries: 1_024, unresolved: 128, waiting_bytes: 68 << 10 }
    }
}

/// An ARP request or a Neighbour Solicitation to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeighborRequest {
    /// IP address of the neighbour to be resolved.
    pub(crate) address: IpAddr,
    /// Last known MAC address, to which the request is sent. With `None`, the request is broadcast
    /// (ARP) or multicast (Neighbour Solicitation).
    pub(crate) mac: Option<MacAddress>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unresolved,
    Reachable,
    Stale,
    /// DELAY (RFC 4861 §7.3.2): the neighbour was stale, a packet was sent to it, and it will be
    /// probed unless it is confirmed before.
    Delayed,
    Probed,
}

#[derive(Debug)]
struct Neighbor {
    address: IpAddr,
    state: State,
    /// MAC address of the neighbour. Invariant: it is zero exactly while `state` is
    /// [`State::Unresolved`].
    mac: MacAddress,
    /// Whether the entry was looked up since it was created. An entry that was never used is
    /// evicted first.
    used: bool,
    /// Number of requests sent since the neighbour was last confirmed.
    requests_sent: u8,
    /// Time when the neighbour was most recently confirmed to be reachable.
    confirmed: Instant,
    /// Time at which the present state ends.
    expires: Instant,
    /// Whether the neighbour has advertised itself as a router (RFC 4861 §5.1).
    is_router: bool,
    /// A connection through the neighbour. While the neighbour is delayed or probed, progress of
    /// this connection confirms that the neighbour is reachable.
    witness: Option<Witness>,
    queued: PacketQueue<()>,
}

/// The neighbour cache of an interface.
#[derive(Debug)]
pub(crate) struct Neighbors {
    table: AddressTable,
    entries: Slab<Neighbor>,
    /// Index of the entry that the most recent successful lookup found. The entry may have been
    /// removed since, and its slot reused.
    last: u32,
    timers: TimerWheel,
    /// Links of the lists `unresolved`, `unused` and `used`. Each entry is in exactly one of these
    /// lists. The lists `unresolved` and `unused` are ordered by the creation of entries, and
    /// `used` by the most recent lookup.
    order: Links,
    unresolved: List,
    unused: List,
    used: List,
    request_links: Links,
    /// Entries for which a request is to be sent.
    requests: List,
    release_links: Links,
    /// Entries whose MAC address is known and whose queued packets can be sent.
    released: List,
    generation: u64,
    limits: NeighborLimits,
    /// The time constants of Neighbour Discovery, which routers can set.
    timing: Timing,
    draws: Draws,
    counters: NeighborCounters,
}

/// Time constants of Neighbour Discovery (RFC 4861 §6.3.2). The time constants of ARP are fixed.
#[derive(Clone, Copy, Debug)]
struct Timing {
    /// Mean time for which a confirmed neighbour counts as reachable.
    reachable: Duration,
    /// Time between two solicitations of a neighbour.
    interval: Duration,
}

/// The result of [`Neighbors::end_state`], which ends the present state of a neighbour.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expired {
    /// Address of the neighbour, if the neighbour was removed because it did not answer.
    pub(crate) lost: Option<IpAddr>,
    /// The packets that were queued for the removed neighbour.
    pub(crate) queued: Vec<Vec<u8>>,
}

impl Neighbors {
    /// Creates an empty cache. Its generation number begins with `first_generation`.
    pub(crate) fn new(
        limits: NeighborLimits,
        hasher: SipHasher13,
        draws: Draws,
        first_generation: u64,
    ) -> Self {
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
            generation: first_generation,
            limits,
            timing: Timing { reachable: REACHABLE, interval: INTERVAL },
            draws,
            counters: NeighborCounters::default(),
        }
    }

    /// Returns the MAC address of `address`, or `None` if it is not resolved. If the neighbour is
    /// unknown, schedules a request; if it is stale, schedules a probe.
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
            State::Reachable | State::Delayed | State::Probed => {}
            State::Stale => self.use_stale(now, index),
        }
        if self.used.last() != Some(index) {
            self.leave_order(index);
            self.join_order(index, true);
        }
        Some(mac)
    }

    /// Queues a packet until the MAC address of `address` is known. The caller has just looked up
    /// `address` without success. So the neighbour has an entry, unless too many neighbours are
    /// unresolved; without an entry, the packet is dropped.
    pub(crate) fn enqueue(&mut self, address: IpAddr, packet: &[u8]) {
        let entry = self.table.get(address).and_then(|index| self.entries.get_mut(index));
        let kept = entry.is_some_and(|entry| entry.queued.push((), packet));
        self.counters.queue_drops += u64::from(!kept);
    }

    /// Notes that the host with the MAC address `mac` has the IP address `address`. Creates a new
    /// entry only if the received packet requested an address of this host (`is_request_for_us`).
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
        self.update(now, index, mac, State::Reachable);
    }

    /// Sets the MAC address and the state of a neighbour. `state` must not be
    /// [`State::Unresolved`].
    fn update(&mut self, now: Instant, index: u32, mac: MacAddress, state: State) {
        let reachable = self.reachable_time(index);
        let Some(entry) = self.entries.get_mut(index) else { return };
        let was = core::mem::replace(&mut entry.state, state);
        let before = core::mem::replace(&mut entry.mac, mac);
        entry.requests_sent = 0;
        entry.witness = None;
        if state == State::Reachable {
            entry.confirmed = now;
        }
        entry.expires = now + if state == State::Reachable { reachable } else { STALE };
        let (expires, has_queued) = (entry.expires, !entry.queued.is_empty());
        self.timers.arm(index, expires);
        if was == State::Unresolved {
            self.order.remove(&mut self.unresolved, index);
            self.join_order(index, true);
        } else if before != mac {
            self.counters.changes += 1;
            self.generation += 1;
        } else if state == State::Stale {
            // Connections cache the neighbour's MAC address, and would not notice that its entry
            // has become stale. The new generation makes them look it up again. This lookup begins
            // to probe the neighbour.
            self.generation += 1;
        }
        if has_queued && !self.release_links.contains(index) {
            self.release_links.push_back(&mut self.released, index);
        }
        if self.request_links.contains(index) {
            self.request_links.remove(&mut self.requests, index);
        }
    }

    /// Notes that a connection through the neighbour `address` makes no progress. If the neighbour
    /// counts as reachable, but was not confirmed within the last second, it becomes stale. The
    /// next packet to it then starts probing.
    pub(crate) fn suspect(&mut self, now: Instant, address: IpAddr) {
        let Some(index) = self.table.get(address) else { return };
        let Some(entry) = self.entries.get_mut(index) else { return };
        if entry.state == State::Reachable && entry.confirmed + INTERVAL <= now {
            self.become_stale(now, index);
        }
    }

    /// Removes and returns the next expired timer: the index of a neighbour to pass to
    /// [`Neighbors::end_state`].
    #[inline]
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<u32> {
        if now < self.timers.next() {
            return None;
        }
        self.timers.expire(now)
    }

    /// Ends the present state of a neighbour that [`Neighbors::take_due`] has returned, and begins
    /// the next state.
    #[inline(never)]
    pub(crate) fn end_state(&mut self, now: Instant, index: u32) -> Expired {
        let Some(entry) = self.entries.get_mut(index) else { return Expired::default() };
        if entry.expires > now {
            self.timers.arm(index, entry.expires);
            return Expired::default();
        }
        let address = entry.address;
        match entry.state {
            State::Reachable => self.become_stale(now, index),
            State::Stale => drop(self.forget(index)),
            State::Delayed => self.send_request(now, index, State::Probed),
            state @ (State::Unresolved | State::Probed) if entry.requests_sent < MAX_REQUESTS => {
                self.send_request(now, index, state);
            }
            State::Unresolved | State::Probed => {
                self.counters.failures += 1;
                return Expired { lost: Some(address), queued: self.forget(index) };
            }
        }
        Expired::default()
    }

    /// Returns the time at which [`Neighbors::take_due`] must be called: the state of no neighbour
    /// ends before.
    #[inline]
    pub(crate) const fn poll_timeout(&self) -> Instant {
        self.timers.next()
    }

    /// Removes and returns the next request to be sent. Requests for an unresolved neighbour are
    /// broadcast or multicast. A probe is sent to the known MAC address, except the final ARP probe
    /// before the neighbour is removed. That probe is broadcast, because the IP address may have
    /// moved to another host.
    pub(crate) fn poll_request(&mut self) -> Option<NeighborRequest> {
        let index = self.request_links.pop_front(&mut self.requests)?;
        let entry = self.entries.get(index)?;
        let is_last = entry.requests_sent == MAX_REQUESTS && entry.address.is_ipv4();
        let unicast = entry.state == State::Probed && !is_last;
        self.counters.out_requests += 1;
        Some(NeighborRequest { address: entry.address, mac: unicast.then_some(entry.mac) })
    }

    /// Removes and returns the next queued packet whose neighbour is resolved, with the MAC address
    /// of the neighbour.
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

    /// Returns whether a request or a queued packet can be sent.
    #[inline]
    pub(crate) const fn wants_transmit(&self) -> bool {
        !self.requests.is_empty() || !self.released.is_empty()
    }

    /// Returns whether a packet waits for an unresolved neighbour.
    pub(crate) fn has_queued_packets(&self) -> bool {
        let has_queued =
            |index| self.entries.get(index).is_some_and(|entry| !entry.queued.is_empty());
        self.order.iter(&self.unresolved).any(has_queued)
    }

    /// Returns the generation: a number that grows whenever the result of an earlier successful
    /// lookup may have changed.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns a mutable reference to the counters.
    pub(crate) const fn counters_mut(&mut self) -> &mut NeighborCounters {
        &mut self.counters
    }

    /// Returns the counters.
    pub(crate) const fn counters(&self) -> &NeighborCounters {
        &self.counters
    }

    /// Makes a reachable neighbour stale. The new generation makes connections look up the
    /// neighbour again, and this lookup starts probing it.
    fn become_stale(&mut self, now: Instant, index: u32) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.state = State::Stale;
            entry.expires = now + STALE;
            self.timers.arm(index, now + STALE);
            self.generation += 1;
        }
    }

    /// Creates an unresolved entry and schedules a request for its MAC address, unless too many
    /// neighbours are unresolved.
    fn resolve(&mut self, now: Instant, address: IpAddr) {
        if self.unresolved.len() >= self.limits.unresolved {
            self.counters.table_overflows += 1;
            return;
        }
        let index = self.add(now, address, State::Unresolved, MacAddress::ZERO);
        self.send_request(now, index, State::Unresolved);
    }

    fn add(&mut self, now: Instant, address: IpAddr, state: State, mac: MacAddress) -> u32 {
        if self.entries.len() >= self.limits.entries.max(self.limits.unresolved + 1) {
            self.make_room();
        }
        let expires = now + REACHABLE;
        let entry = Neighbor {
            address,
            state,
            mac,
            used: false,
            requests_sent: 0,
            confirmed: now,
            expires,
            is_router: false,
            witness: None,
            queued: PacketQueue::new(self.limits.waiting_bytes),
        };
        let index = self.entries.insert(entry).index();
        self.table.insert(address, index);
        self.timers.arm(index, expires);
        self.join_order(index, false);
        index
    }

    /// Removes the oldest entry that was never used, or else the least recently used entry.
    /// Unresolved entries are not removed. A full cache always contains resolved entries, because
    /// the limit of unresolved neighbours is lower than the limit of all neighbours.
    fn make_room(&mut self) {
        if let Some(index) = self.unused.first().or_else(|| self.used.first()) {
            self.counters.table_overflows += 1;
            self.counters.queue_drops += self.forget(index).len() as u64;
        }
    }

    /// Schedules a request for a neighbour, and sets the time until which the answer must arrive.
    fn send_request(&mut self, now: Instant, index: u32, state: State) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        let interval = if entry.address.is_ipv4() { INTERVAL } else { self.timing.interval };
        entry.state = state;
        entry.requests_sent += 1;
        entry.expires = now + interval;
        self.timers.arm(index, entry.expires);
        if !self.request_links.contains(index) {
            self.request_links.push_back(&mut self.requests, index);
        }
    }

    /// Removes an entry from the cache. Returns the packets that were queued for it.
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

    /// Panics if an invariant is violated.
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

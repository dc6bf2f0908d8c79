//! Which station on the link has which IP address: the ARP cache (RFC 826, RFC 1122 §2.3.2).
//!
//! A neighbour is *unresolved* until it answers, *reachable* for half a minute after each sign of
//! it, then *stale*: used as before, but at its first use it is *probed*, and forgotten if it does not
//! answer. Every question is asked at most once a second, as long as there is room to remember the
//! neighbours that were asked for. What a station says unasked changes
//! an entry that exists and makes none; a station that asks for us becomes a neighbour, because we
//! are about to answer it.
//!
//! Whoever remembers the answer of a lookup remembers [`Neighbors::generation`] with it, and looks
//! up again when that has moved.

use crate::collections::address_table::AddressTable;
use crate::collections::list::{Links, List};
use crate::collections::packet_queue::PacketQueue;
use crate::collections::slab::Slab;
use crate::collections::timer_wheel::TimerWheel;
use crate::counters::NeighborCounters;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use linerate_units::{Duration, Instant};
use linerate_wire::MacAddress;
use siphasher::sip::SipHasher13;

/// Between two questions for the same neighbour (RFC 1122 §2.3.2.1: at most one a second).
const INTERVAL: Duration = Duration::from_secs(1);
/// Questions without an answer after which a neighbour counts as gone.
const QUESTIONS: u8 = 3;
/// How long a sign of a neighbour counts.
const REACHABLE: Duration = Duration::from_secs(30);
/// How long a neighbour whom nobody needs is remembered after that.
const STALE: Duration = Duration::from_secs(60);

/// How many neighbours there can be, and how much may wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborLimits {
    /// Neighbours remembered. One more takes the place of one that was never used, or of the one
    /// whose use lies back the longest.
    pub entries: usize,
    /// Among them, neighbours that have not answered yet. One more is not asked, and packets to it
    /// are dropped, so that packets with invented sources cannot make us ask without limit.
    pub unresolved: usize,
    /// Bytes of packets that wait for one neighbour's answer.
    pub waiting_bytes: usize,
}

impl Default for NeighborLimits {
    fn default() -> Self {
        Self { entries: 1_024, unresolved: 128, waiting_bytes: 16 << 10 }
    }
}

/// A question to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// The address in question.
    pub(crate) address: Ipv4Addr,
    /// The station that had it last, to be asked alone; `None` asks all.
    pub(crate) station: Option<MacAddress>,
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
    address: Ipv4Addr,
    state: State,
    /// Invariant: zero, and without meaning, exactly while the state is unresolved.
    station: MacAddress,
    /// Was it ever looked up?
    used: bool,
    /// Questions since the last sign of it.
    asked: u8,
    /// When the state ends.
    expires: Instant,
    waiting: PacketQueue<()>,
}

/// The neighbours of one interface.
#[derive(Debug)]
pub(crate) struct Neighbors {
    table: AddressTable,
    entries: Slab<Neighbor>,
    /// Where the neighbour was that was looked up last; another one, or none, may be there now.
    last: u32,
    timers: TimerWheel,
    /// Each entry is in one of these three, in the order of its coming or its last lookup.
    order: Links,
    unresolved: List,
    unused: List,
    used: List,
    asking: Links,
    /// Entries whose question is to be sent.
    questions: List,
    releasing: Links,
    /// Entries with a station and with packets that waited for it.
    released: List,
    generation: u64,
    limits: NeighborLimits,
    counters: NeighborCounters,
}

impl Neighbors {
    /// No neighbours yet.
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
            asking: Links::new(),
            questions: List::EMPTY,
            releasing: Links::new(),
            released: List::EMPTY,
            generation: 0,
            limits,
            counters: NeighborCounters::default(),
        }
    }

    /// The station that has `address`. If it is not known, or has not been heard of for long, it is
    /// asked for.
    pub(crate) fn lookup(&mut self, now: Instant, address: Ipv4Addr) -> Option<MacAddress> {
        let is_last = self.entries.get(self.last).is_some_and(|entry| entry.address == address);
        let found = if is_last { Some(self.last) } else { self.table.get(address) };
        let Some(index) = found else {
            self.begin(now, address);
            return None;
        };
        self.last = index;
        let entry = self.entries.get_mut(index)?;
        let (state, station) = (entry.state, entry.station);
        match state {
            State::Unresolved => return None,
            State::Reachable | State::Probed => {}
            State::Stale => self.ask(now, index, State::Probed),
        }
        if self.used.last() != Some(index) {
            self.leave_order(index);
            self.join_order(index, true);
        }
        Some(station)
    }

    /// Keeps a packet until `address`, which a lookup has just not found, has answered.
    pub(crate) fn wait(&mut self, address: Ipv4Addr, packet: &[u8]) {
        let entry = self.table.get(address).and_then(|index| self.entries.get_mut(index));
        let kept = entry.is_some_and(|entry| entry.waiting.push((), packet));
        self.counters.queue_drops += u64::from(!kept);
    }

    /// Takes in that `station` says it has `address`. If `asked_for_us`, it becomes a neighbour.
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        station: MacAddress,
        asked_for_us: bool,
    ) {
        let Some(index) = self.table.get(address) else {
            if asked_for_us {
                self.add(now, address, State::Reachable, station);
            }
            return;
        };
        let Some(entry) = self.entries.get_mut(index) else { return };
        let was = core::mem::replace(&mut entry.state, State::Reachable);
        let before = core::mem::replace(&mut entry.station, station);
        entry.asked = 0;
        entry.expires = now + REACHABLE;
        let (expires, waits) = (entry.expires, !entry.waiting.is_empty());
        self.timers.arm(index, expires);
        if was == State::Unresolved {
            self.order.remove(&mut self.unresolved, index);
            self.join_order(index, true);
        } else if before != station {
            self.counters.changes += 1;
            self.generation += 1;
        }
        if waits && !self.releasing.contains(index) {
            self.releasing.push_back(&mut self.released, index);
        }
        if self.asking.contains(index) {
            self.asking.remove(&mut self.questions, index);
        }
    }

    /// Whoever speaks through `address` hears nothing: it is asked at its next use, although it gave a
    /// sign of itself lately, unless that was within the last second.
    pub(crate) fn doubt(&mut self, now: Instant, address: Ipv4Addr) {
        let Some(index) = self.table.get(address) else { return };
        let Some(entry) = self.entries.get_mut(index) else { return };
        if entry.state == State::Reachable && entry.expires + INTERVAL <= now + REACHABLE {
            self.become_stale(now, index);
        }
    }

    /// Lets one timer that is due at `now` expire, and returns what waited for a neighbour that did
    /// not answer. `None` when no timer is due any more.
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
            state @ (State::Unresolved | State::Probed) if entry.asked < QUESTIONS => {
                self.ask(now, index, state);
            }
            State::Unresolved | State::Probed => {
                self.counters.failures += 1;
                return self.forget(index);
            }
        }
        Vec::new()
    }

    /// The time before which [`Neighbors::handle_timeout`] certainly has nothing to do.
    #[inline]
    pub(crate) const fn poll_timeout(&self) -> Instant {
        self.timers.next()
    }

    /// Takes the next question to be sent. The last one goes to all stations, in case the
    /// neighbour has moved to another one.
    pub(crate) fn poll_question(&mut self) -> Option<Question> {
        let index = self.asking.pop_front(&mut self.questions)?;
        let entry = self.entries.get(index)?;
        let alone = entry.state == State::Probed && entry.asked < QUESTIONS;
        self.counters.out_requests += 1;
        Some(Question { address: entry.address, station: alone.then_some(entry.station) })
    }

    /// Takes the next packet whose neighbour has answered.
    pub(crate) fn poll_released(&mut self) -> Option<(MacAddress, Vec<u8>)> {
        let index = self.released.first()?;
        let entry = self.entries.get_mut(index)?;
        let packet = entry.waiting.pop();
        let station = entry.station;
        if entry.waiting.is_empty() {
            self.releasing.remove(&mut self.released, index);
        }
        packet.map(|((), packet)| (station, packet))
    }

    /// Is there a question or a packet to be sent?
    #[inline]
    pub(crate) const fn wants_transmit(&self) -> bool {
        !self.questions.is_empty() || !self.released.is_empty()
    }

    /// Does a packet wait for an answer?
    pub(crate) fn is_waited_for(&self) -> bool {
        let waits = |index| self.entries.get(index).is_some_and(|entry| !entry.waiting.is_empty());
        self.order.iter(&self.unresolved).any(waits)
    }

    /// Grows whenever a lookup that found a station may have a new answer.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// What was counted here.
    pub(crate) const fn counters(&mut self) -> &mut NeighborCounters {
        &mut self.counters
    }

    /// What was counted here, to be read.
    pub(crate) const fn counted(&self) -> &NeighborCounters {
        &self.counters
    }

    /// Whoever uses the neighbour looks it up again, and thereby has it probed.
    fn become_stale(&mut self, now: Instant, index: u32) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.state = State::Stale;
            entry.expires = now + STALE;
            self.timers.arm(index, now + STALE);
            self.generation += 1;
        }
    }

    /// Makes a new entry and asks for it, if there may be one more.
    fn begin(&mut self, now: Instant, address: Ipv4Addr) {
        if self.unresolved.len() >= self.limits.unresolved {
            self.counters.table_overflows += 1;
            return;
        }
        let index = self.add(now, address, State::Unresolved, MacAddress::ZERO);
        self.ask(now, index, State::Unresolved);
    }

    fn add(&mut self, now: Instant, address: Ipv4Addr, state: State, station: MacAddress) -> u32 {
        if self.entries.len() >= self.limits.entries.max(self.limits.unresolved + 1) {
            self.make_room();
        }
        let expires = now + REACHABLE;
        let waiting = PacketQueue::new(self.limits.waiting_bytes);
        let entry = Neighbor { address, state, station, used: false, asked: 0, expires, waiting };
        let index = self.entries.insert(entry).index();
        self.table.insert(address, index);
        self.timers.arm(index, expires);
        self.join_order(index, false);
        index
    }

    /// Forgets a neighbour that nobody has used, or the one whose use lies back the longest. There is
    /// one, because the unresolved ones are limited to fewer than all.
    fn make_room(&mut self) {
        if let Some(index) = self.unused.first().or_else(|| self.used.first()) {
            self.counters.table_overflows += 1;
            self.counters.queue_drops += self.forget(index).len() as u64;
        }
    }

    /// Has the question sent, and waits a second for the answer.
    fn ask(&mut self, now: Instant, index: u32, state: State) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        entry.state = state;
        entry.asked += 1;
        entry.expires = now + INTERVAL;
        self.timers.arm(index, entry.expires);
        if !self.asking.contains(index) {
            self.asking.push_back(&mut self.questions, index);
        }
    }

    /// Removes an entry from everything, and returns the packets that waited for it.
    fn forget(&mut self, index: u32) -> Vec<Vec<u8>> {
        self.timers.disarm(index);
        self.leave_order(index);
        if self.asking.contains(index) {
            self.asking.remove(&mut self.questions, index);
        }
        if self.releasing.contains(index) {
            self.releasing.remove(&mut self.released, index);
        }
        let Some(mut entry) = self.entries.remove(index) else { return Vec::new() };
        self.table.remove(entry.address);
        if entry.state != State::Unresolved {
            self.generation += 1;
        }
        core::iter::from_fn(|| entry.waiting.pop()).map(|((), packet)| packet).collect()
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
            "and in one order"
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
            entry.waiting.check();
            assert_eq!(self.table.get(entry.address), Some(index), "each neighbour is found");
            assert!(self.timers.deadline(index) <= entry.expires, "each neighbour's state ends");
            assert_eq!(
                entry.station == MacAddress::ZERO,
                entry.state == State::Unresolved,
                "{entry:?}"
            );
            assert!(entry.asked <= QUESTIONS, "{entry:?}");
        }
    }
}

#[cfg(test)]
mod tests;

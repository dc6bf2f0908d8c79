//! The reassembly of datagrams from their fragments, for both IP versions (RFC 791 §3.2, RFC 815,
//! RFC 8200 §4.5).
//!
//! Fragments that overlap others discard the whole datagram, including those that arrive later
//! (RFC 5722). Fragments that repeat others exactly are ignored. A new datagram at a limit evicts
//! the oldest.

use crate::demux::flow::Hosts;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, Ipv4Header, Ipv6Header, Protocol};

/// The time after the arrival of the first fragment in which the others must arrive (RFC 8200
/// §4.5; RFC 1122 §3.3.2 asks for 60 to 120 seconds).
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes charged for a datagram beside its fragments.
const DATAGRAM: usize = 512;
/// Bytes charged for a fragment beside its payload.
const FRAGMENT: usize = 64;

/// The limits of reassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Bytes of incomplete datagrams. A fragment counts 64 bytes beside its payload, and a datagram
    /// 512 bytes: at least what they take.
    pub bytes: usize,
    /// Incomplete datagrams.
    pub datagrams: usize,
    /// Fragments of one datagram.
    pub fragments: usize,
}

impl Default for ReassemblyLimits {
    /// Datagrams of 65,535 bytes in packets of 576 bytes have 119 fragments.
    fn default() -> Self {
        Self { bytes: 4 << 20, datagrams: 1_024, fragments: 128 }
    }
}

/// The fields that all fragments of a datagram share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DatagramKey {
    pub(crate) hosts: Hosts,
    pub(crate) identification: u32,
    /// Zero for IPv6, where it does not identify the datagram (RFC 8200 §4.5).
    pub(crate) protocol: Protocol,
}

/// A received fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    pub(crate) key: DatagramKey,
    /// The offset of the payload in the datagram, in bytes.
    pub(crate) offset: usize,
    /// Do further fragments follow?
    pub(crate) more: bool,
    pub(crate) ecn: Ecn,
    /// The packet up to the payload.
    pub(crate) headers: &'a [u8],
    /// For IPv6, the fragment header in `headers`.
    pub(crate) header: Option<FragmentHeader>,
    /// Not empty.
    pub(crate) payload: &'a [u8],
    /// Was it sent to a broadcast address or a multicast group?
    pub(crate) is_broadcast: bool,
}

/// A fragment header of IPv6 in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentHeader {
    /// The offset of the header.
    pub(crate) at: usize,
    /// The offset of the field that names it.
    pub(crate) named_at: usize,
    /// The header after it.
    pub(crate) next: Protocol,
}

/// The result of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    /// Other fragments are still missing, or this fragment has arrived before.
    Incomplete,
    /// The packet is complete.
    Complete(Vec<u8>),
    /// The fragment was dropped at a limit.
    AtLimit,
    /// The fragment overlaps or contradicts an earlier fragment, so the datagram was discarded.
    Overlap,
    /// Its datagram was discarded before.
    Discarded,
    /// All fragments have arrived, but the packet is invalid.
    Invalid,
}

/// A datagram whose fragments did not arrive in time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    /// Were fragments of it lost with it? Otherwise it was discarded before.
    pub(crate) is_incomplete: bool,
    /// The addresses and the packet of the first fragment, if it has arrived, and was sent to this
    /// host alone.
    pub(crate) first: Option<(Hosts, Vec<u8>)>,
}

/// The incomplete datagrams of a host.
#[derive(Debug)]
pub(crate) struct Reassembly {
    datagrams: BTreeMap<DatagramKey, Datagram>,
    /// The datagrams by their number: the oldest first. They expire in this order.
    ages: BTreeMap<u64, DatagramKey>,
    /// The number of the next datagram.
    next: u64,
    /// The charge of all datagrams. Invariant: at most the limit.
    bytes: usize,
    limits: ReassemblyLimits,
}

/// An incomplete datagram.
#[derive(Debug)]
struct Datagram {
    number: u64,
    expires: Instant,
    charge: usize,
    /// `None` if the datagram was discarded.
    parts: Option<Parts>,
}

/// The received parts of a datagram.
#[derive(Debug, Default)]
struct Parts {
    /// The headers of the first fragment.
    first: Option<First>,
    /// Offsets and payloads, sorted. Invariant: they do not overlap.
    fragments: Vec<(usize, Vec<u8>)>,
    /// Bytes of payload.
    received: usize,
    /// The length of the whole payload, once the last fragment has arrived.
    length: Option<usize>,
    /// The congestion marks of the fragments, one bit each.
    marks: u8,
}

#[derive(Debug)]
struct First {
    headers: Vec<u8>,
    header: Option<FragmentHeader>,
    is_broadcast: bool,
}

/// The relation of a fragment to those that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It fills a part of a hole, and becomes the fragment with this index.
    Hole(usize),
    /// The fragment has arrived before.
    Repeated,
    /// The fragment overlaps an earlier fragment, or ends beyond the last fragment.
    Overlap,
}

impl Reassembly {
    pub(crate) const fn new(limits: ReassemblyLimits) -> Self {
        Self { datagrams: BTreeMap::new(), ages: BTreeMap::new(), next: 0, bytes: 0, limits }
    }

    /// Returns the time at which the oldest datagram expires.
    pub(crate) fn poll_timeout(&self) -> Instant {
        let oldest = self.ages.first_key_value().and_then(|(_, key)| self.datagrams.get(key));
        oldest.map_or(Instant::NEVER, |datagram| datagram.expires)
    }

    /// Removes and returns the oldest datagram, if it has expired.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Expired> {
        if now < self.poll_timeout() {
            return None;
        }
        let (_, &key) = self.ages.first_key_value()?;
        let parts = self.remove(&key)?.parts;
        let is_incomplete = parts.is_some();
        let first = parts.and_then(Parts::first_packet).map(|packet| (key.hosts, packet));
        Some(Expired { is_incomplete, first })
    }

    /// Adds a fragment to its datagram. `evicted` is called for each datagram that made room.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        fragment: &Fragment<'_>,
        mut evicted: impl FnMut(),
    ) -> Insertion {
        if !self.datagrams.contains_key(&fragment.key) && !self.open(now, fragment, &mut evicted) {
            return Insertion::AtLimit;
        }
        let Some(datagram) = self.datagrams.get(&fragment.key) else { return Insertion::AtLimit };
        let Some(parts) = &datagram.parts else { return Insertion::Discarded };
        let index = match parts.place(fragment) {
            Place::Repeated => return Insertion::Incomplete,
            Place::Overlap => {
                self.discard(&fragment.key);
                return Insertion::Overlap;
            }
            Place::Hole(index) => index,
        };
        if parts.fragments.len() >= self.limits.fragments {
            self.discard(&fragment.key);
            return Insertion::AtLimit;
        }
        let charge = fragment.charge();
        if !self.make_room(charge, Some(&fragment.key), &mut evicted) {
            return Insertion::AtLimit;
        }
        self.bytes += charge;
        let Some(datagram) = self.datagrams.get_mut(&fragment.key) else {
            return Insertion::AtLimit;
        };
        datagram.charge += charge;
        let Some(parts) = &mut datagram.parts else { return Insertion::Discarded };
        parts.insert(index, fragment);
        if !parts.is_complete() {
            return Insertion::Incomplete;
        }
        let parts = self.remove(&fragment.key).and_then(|datagram| datagram.parts);
        parts.and_then(Parts::into_packet).map_or(Insertion::Invalid, Insertion::Complete)
    }

    /// Begins a datagram. Returns false if the limits do not allow it.
    fn open(&mut self, now: Instant, fragment: &Fragment<'_>, evicted: &mut impl FnMut()) -> bool {
        let least = DATAGRAM + fragment.charge();
        if self.limits.datagrams == 0 || least > self.limits.bytes {
            return false;
        }
        while self.datagrams.len() >= self.limits.datagrams {
            self.evict_oldest(evicted);
        }
        if !self.make_room(DATAGRAM, None, evicted) {
            return false;
        }
        let number = self.next;
        self.next += 1;
        self.bytes += DATAGRAM;
        self.ages.insert(number, fragment.key);
        let parts = Some(Parts::default());
        let datagram = Datagram { number, expires: now + TIMEOUT, charge: DATAGRAM, parts };
        self.datagrams.insert(fragment.key, datagram);
        true
    }

    /// Evicts the oldest datagrams until `charge` fits. Returns false if this evicted `kept`.
    fn make_room(
        &mut self,
        charge: usize,
        kept: Option<&DatagramKey>,
        evicted: &mut impl FnMut(),
    ) -> bool {
        while self.bytes + charge > self.limits.bytes {
            let key = self.evict_oldest(evicted);
            if key.is_none() || key.as_ref() == kept {
                return false;
            }
        }
        true
    }

    fn evict_oldest(&mut self, evicted: &mut impl FnMut()) -> Option<DatagramKey> {
        let (_, &key) = self.ages.first_key_value()?;
        let datagram = self.remove(&key)?;
        if datagram.parts.is_some() {
            evicted();
        }
        Some(key)
    }

    /// Frees the fragments of a datagram, and keeps its key until its time is over, so that
    /// fragments that arrive later are discarded, too.
    fn discard(&mut self, key: &DatagramKey) {
        let Some(datagram) = self.datagrams.get_mut(key) else { return };
        self.bytes -= datagram.charge - DATAGRAM;
        datagram.charge = DATAGRAM;
        datagram.parts = None;
    }

    fn remove(&mut self, key: &DatagramKey) -> Option<Datagram> {
        let datagram = self.datagrams.remove(key)?;
        self.ages.remove(&datagram.number);
        self.bytes -= datagram.charge;
        Some(datagram)
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        let limits = &self.limits;
        assert!(self.bytes <= limits.bytes, "the memory of fragments is limited");
        assert!(self.datagrams.len() <= limits.datagrams, "incomplete datagrams are limited");
        assert_eq!(self.datagrams.len(), self.ages.len(), "each datagram has an age");
        let mut bytes = 0;
        for (number, key) in &self.ages {
            let Some(datagram) = self.datagrams.get(key) else {
                panic!("each age is of a datagram")
            };
            assert_eq!(datagram.number, *number, "ages are those of the datagrams");
            bytes += datagram.charge;
            let Some(parts) = &datagram.parts else { continue };
            assert!(parts.fragments.len() <= limits.fragments, "fragments are limited");
            let ends = parts.fragments.iter().map(|(offset, payload)| offset + payload.len());
            let next = parts.fragments.iter().skip(1).map(|(offset, _)| *offset);
            assert!(ends.zip(next).all(|(end, next)| end <= next), "fragments do not overlap");
        }
        assert_eq!(self.bytes, bytes, "the charge is that of the datagrams");
    }
}

impl Fragment<'_> {
    fn charge(&self) -> usize {
        let headers = if self.offset == 0 { self.headers.len() } else { 0 };
        FRAGMENT + headers + self.payload.len()
    }
}

impl Parts {
    /// Finds the place of a fragment.
    fn place(&self, fragment: &Fragment<'_>) -> Place {
        let (start, end) = (fragment.offset, fragment.offset + fragment.payload.len());
        let index = self.fragments.partition_point(|(offset, _)| *offset < start);
        let next = self.fragments.get(index);
        let is_last = !fragment.more;
        if next.is_some_and(|(offset, payload)| *offset == start && payload == fragment.payload) {
            let is_consistent = is_last == (self.length == Some(end));
            return if is_consistent { Place::Repeated } else { Place::Overlap };
        }
        let previous = index.checked_sub(1).and_then(|before| self.fragments.get(before));
        let overlaps = previous.is_some_and(|(offset, payload)| offset + payload.len() > start)
            || next.is_some_and(|(offset, _)| *offset < end)
            || self.length.is_some_and(|length| is_last || end > length)
            || (is_last && next.is_some());
        if overlaps { Place::Overlap } else { Place::Hole(index) }
    }

    fn insert(&mut self, index: usize, fragment: &Fragment<'_>) {
        self.fragments.insert(index, (fragment.offset, fragment.payload.to_vec()));
        self.received += fragment.payload.len();
        self.marks |= 1 << fragment.ecn as u8;
        if !fragment.more {
            self.length = Some(fragment.offset + fragment.payload.len());
        }
        if fragment.offset == 0 {
            self.first = Some(First {
                headers: fragment.headers.to_vec(),
                header: fragment.header,
                is_broadcast: fragment.is_broadcast,
            });
        }
    }

    fn is_complete(&self) -> bool {
        self.length == Some(self.received)
    }

    /// Returns the packet of the first fragment.
    fn first_packet(self) -> Option<Vec<u8>> {
        let First { mut headers, .. } = self.first.filter(|first| !first.is_broadcast)?;
        let (_, payload) = self.fragments.first()?;
        headers.extend_from_slice(payload);
        Some(headers)
    }

    /// Returns the whole packet, with the header of the first fragment. `None` if the packet is
    /// invalid.
    fn into_packet(self) -> Option<Vec<u8>> {
        let First { headers, header, .. } = self.first?;
        let kept = header.map_or(headers.len(), |header| header.at);
        let mut packet = Vec::with_capacity(kept + self.received);
        packet.extend_from_slice(&headers[..kept]);
        for (_, payload) in &self.fragments {
            packet.extend_from_slice(payload);
        }
        let is_valid = match header {
            Some(FragmentHeader { named_at, next, .. }) => {
                Ipv6Header::complete(&mut packet, named_at, next)
            }
            None => Ipv4Header::complete(&mut packet),
        };
        let has = |ecn: Ecn| self.marks & 1 << ecn as u8 != 0;
        if has(Ecn::Ce) {
            // RFC 3168 §5.3: if any fragment is marked CE, the packet is marked CE. If another
            // fragment is Not-ECT, the packet is dropped instead.
            if has(Ecn::NotEct) {
                return None;
            }
            match header {
                Some(_) => Ipv6Header::mark_congestion(&mut packet),
                None => Ipv4Header::mark_congestion(&mut packet),
            }
        }
        is_valid.then_some(packet)
    }
}

#[cfg(test)]
mod tests;

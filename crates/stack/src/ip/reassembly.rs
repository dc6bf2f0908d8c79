//! The reassembly of datagrams from their fragments, for both IP versions (RFC 791 §3.2, RFC 815,
//! RFC 8200 §4.5).
//!
//! If a fragment overlaps a fragment that has arrived before, the whole datagram is discarded,
//! including its fragments that arrive later (RFC 5722). A fragment that exactly repeats a previous
//! fragment is ignored. When a limit is reached, a new datagram evicts the oldest datagram.

use crate::demux::flow::Hosts;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, Ipv4Header, Ipv6Header, Protocol};

/// The time in which all fragments of a datagram must arrive, counted from the first arrival (RFC
/// 8200 §4.5). RFC 1122 §3.3.2 asks for 60 to 120 seconds.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Number of bytes charged for an incomplete datagram, in addition to its fragments.
const DATAGRAM: usize = 512;
/// Number of bytes charged for a fragment, in addition to its payload. A fragment with offset zero
/// is also charged for its headers.
const FRAGMENT: usize = 64;

/// The limits of the reassembly of fragmented datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Maximum memory of all incomplete datagrams, in bytes. Each fragment counts as its payload
    /// plus 64 bytes. In addition, each datagram counts 512 bytes and the headers of its first
    /// fragment. This sum is an upper bound of the memory that a datagram occupies.
    pub bytes: usize,
    /// Maximum number of incomplete datagrams.
    pub datagrams: usize,
    /// Maximum number of fragments of one datagram.
    pub fragments: usize,
}

impl Default for ReassemblyLimits {
    /// Returns the default limits. The limit of fragments admits the largest datagram in packets of
    /// 576 bytes, which has 119 fragments.
    fn default() -> Self {
        Self { bytes: 4 << 20, datagrams: 1_024, fragments: 128 }
    }
}

/// The header fields that identify a datagram. All fragments of a datagram have equal values in
/// these fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DatagramKey {
    pub(crate) hosts: Hosts,
    pub(crate) identification: u32,
    /// The protocol of the datagram; zero for IPv6, where the protocol does not identify the
    /// datagram (RFC 8200 §4.5).
    pub(crate) protocol: Protocol,
}

/// A received fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    pub(crate) key: DatagramKey,
    /// The offset of the payload in the datagram, in bytes.
    pub(crate) offset: usize,
    /// Whether further fragments follow (the MF flag of IPv4, the M flag of IPv6).
    pub(crate) more: bool,
    pub(crate) ecn: Ecn,
    /// The bytes of the packet before the payload.
    pub(crate) headers: &'a [u8],
    /// The position of the fragment header in `headers`; `None` for IPv4.
    pub(crate) header: Option<FragmentHeader>,
    /// The payload of the fragment, which is not empty.
    pub(crate) payload: &'a [u8],
    /// Whether the fragment was sent to a broadcast address or a multicast group.
    pub(crate) is_broadcast: bool,
}

/// The position of an IPv6 fragment header in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentHeader {
    /// The offset of the fragment header in bytes.
    pub(crate) at: usize,
    /// The offset of the Next Header field that announces the fragment header, in bytes.
    pub(crate) named_at: usize,
    /// The Next Header value of the fragment header: the kind of the header that follows.
    pub(crate) next: Protocol,
}

/// The result of [`Reassembly::insert`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    /// Other fragments are still missing, or the fragment has arrived before.
    Incomplete,
    /// All fragments have arrived; this is the whole packet.
    Complete(Vec<u8>),
    /// The fragment was dropped because a limit of [`ReassemblyLimits`] was reached.
    AtLimit,
    /// The fragment overlaps or contradicts a fragment that has arrived before, so the datagram was
    /// discarded.
    Overlap,
    /// The fragment was dropped because its datagram was discarded before.
    Discarded,
    /// All fragments have arrived, but the reassembled packet is invalid.
    Invalid,
}

/// A datagram whose time for reassembly has ended: an incomplete datagram, or a datagram that was
/// discarded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    /// Whether the datagram was incomplete when its time ended, so that its received fragments are
    /// lost. False if it had already been discarded.
    pub(crate) is_incomplete: bool,
    /// The addresses and the packet of the fragment with offset zero, for an ICMP error. `None` if
    /// this fragment has not arrived, or was sent to a broadcast address or multicast group.
    pub(crate) first: Option<(Hosts, Vec<u8>)>,
}

/// The datagrams of a host that are incomplete, and those that were discarded but have not yet
/// expired.
#[derive(Debug)]
pub(crate) struct Reassembly {
    datagrams: BTreeMap<DatagramKey, Datagram>,
    /// The keys of the datagrams by their numbers, which are assigned in the order of the first
    /// fragment's arrival. Datagrams expire in this order.
    ages: BTreeMap<u64, DatagramKey>,
    /// The number that the next new datagram gets.
    next: u64,
    /// The number of bytes charged for all datagrams. Invariant: it does not exceed the limit.
    bytes: usize,
    limits: ReassemblyLimits,
}

/// An incomplete datagram, or a datagram that was discarded and whose later fragments must be
/// recognised.
#[derive(Debug)]
struct Datagram {
    number: u64,
    expires: Instant,
    charge: usize,
    /// The received parts of the datagram; `None` if the datagram was discarded.
    parts: Option<Parts>,
}

/// The received parts of a datagram.
#[derive(Debug, Default)]
struct Parts {
    /// The headers of the fragment with offset zero, once it has arrived.
    first: Option<First>,
    /// Offsets and payloads of the received fragments, sorted by offset. Invariant: the fragments
    /// do not overlap.
    fragments: Vec<(usize, Vec<u8>)>,
    /// Number of received payload bytes.
    received: usize,
    /// The payload length of the whole datagram in bytes, once the fragment at the end of the
    /// datagram has arrived.
    length: Option<usize>,
    /// The set of ECN codepoints of the received fragments, one bit for each codepoint.
    marks: u8,
}

#[derive(Debug)]
struct First {
    headers: Vec<u8>,
    header: Option<FragmentHeader>,
    is_broadcast: bool,
}

/// The relation of a new fragment to the fragments that have arrived before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The fragment fills missing bytes, and is to be inserted at this index.
    Hole(usize),
    /// The fragment has arrived before.
    Repeated,
    /// The fragment overlaps a fragment that has arrived before. Or it contradicts the length of
    /// the datagram that another fragment implies.
    Overlap,
}

impl Reassembly {
    pub(crate) const fn new(limits: ReassemblyLimits) -> Self {
        Self { datagrams: BTreeMap::new(), ages: BTreeMap::new(), next: 0, bytes: 0, limits }
    }

    /// Returns the time at which the oldest datagram expires, or [`Instant::NEVER`] if there is
    /// none.
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

    /// Adds a fragment to its datagram. Calls `evicted` for each incomplete datagram that is
    /// evicted to make room.
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

    /// Adds a new datagram without fragments, and evicts the oldest datagrams if a limit requires
    /// this. Returns false if the datagram exceeds the limits even then.
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

    /// Evicts the oldest datagrams until `charge` more bytes fit. The bytes are for the datagram
    /// `kept`, or for a new datagram if `kept` is `None`. Returns false if the bytes do not fit:
    /// all datagrams were evicted, or `kept` was the oldest and was itself evicted.
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

    /// Frees the fragments of a datagram, but remembers its key until the datagram expires.
    /// Fragments of the datagram that arrive later are thus recognised and dropped.
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
    /// Determines the relation of a fragment to the fragments that have arrived before.
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

    /// Returns the packet of the fragment with offset zero. Returns `None` if it has not arrived,
    /// or was sent to a broadcast address or multicast group.
    fn first_packet(self) -> Option<Vec<u8>> {
        let First { mut headers, .. } = self.first.filter(|first| !first.is_broadcast)?;
        let (_, payload) = self.fragments.first()?;
        headers.extend_from_slice(payload);
        Some(headers)
    }

    /// Returns the whole packet, with the headers of the fragment with offset zero, or `None` if
    /// the packet is invalid.
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
            // RFC 3168 §5.3: if any fragment is marked CE, the whole packet is marked CE. But if
            // one fragment is CE and another Not-ECT, the packet is dropped.
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

//! The path-MTU cache: path MTUs that connections have found (RFC 4821 §5.2), and path MTUs that
//! routers have reported about datagrams (RFC 1191).
//!
//! A report about a datagram cannot be verified, and an attacker who knows the two ports can forge
//! such a report. Therefore reports apply only to datagrams, and connections do not use them.

use crate::collections::address_table::AddressTable;
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_units::{Duration, Instant};
use linerate_wire::Ipv6Header;
use siphasher::sip::SipHasher13;

/// Lifetime of an entry. Once it has ended, the host tries packets larger than the entry's path MTU
/// again (RFC 1191 §6.3).
const LIFETIME: Duration = Duration::from_secs(600);

/// The smallest path MTU in bytes that a report can set; a smaller reported MTU is raised to this
/// size. Smaller MTUs are attacks on throughput, or belong to paths that are no longer in use (RFC
/// 5927 §7.2). The value is the default of Linux (`min_pmtu`). It is below 576 bytes, the size of
/// datagrams that every host must accept (RFC 791).
pub(crate) const SMALLEST_PATH_MTU: usize = 552;

/// The minimum MTU of an IPv6 link in bytes. A smaller reported MTU is raised to this size (RFC
/// 8200 §5, RFC 8201 §4).
const MIN_MTU_IPV6: usize = Ipv6Header::MIN_MTU;

/// Common MTUs in bytes, for reports of routers that do not contain an MTU (RFC 1191 §7.1).
const PLATEAUS: [usize; 10] =
    [65_535, 32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 576, SMALLEST_PATH_MTU];

/// The path-MTU cache of a host.
#[derive(Debug)]
pub(crate) struct PathMtus {
    found: DestinationMap<FoundMtu>,
    /// The path MTUs that routers have reported. They are not in the map `found`, so that forged
    /// reports cannot evict path MTUs that connections have found.
    reported: DestinationMap<ExpiringMtu>,
}

/// A path MTU that a connection has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundMtu {
    size: ExpiringMtu,
    /// Whether larger packets may pass, because the path MTU search has not ended.
    pub(crate) is_estimated: bool,
}

impl FoundMtu {
    /// Returns the path MTU in bytes.
    pub(crate) const fn mtu(self) -> usize {
        self.size.mtu
    }
}

/// A path MTU with an expiry time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExpiringMtu {
    /// The path MTU in bytes.
    mtu: usize,
    expires: Instant,
}

impl ExpiringMtu {
    fn new(mtu: usize, now: Instant) -> Self {
        Self { mtu, expires: now + LIFETIME }
    }

    fn is_valid(&self, now: Instant) -> bool {
        now < self.expires
    }
}

impl PathMtus {
    /// Creates an empty cache, with room for `limit` destinations whose MTU a connection finds, and
    /// for `limit` destinations whose MTU routers report.
    pub(crate) fn new(limit: usize, hasher: SipHasher13) -> Self {
        let (found, reported) =
            (DestinationMap::new(limit, hasher), DestinationMap::new(limit, hasher));
        Self { found, reported }
    }

    /// Returns the path MTU to `destination` that a connection has found, unless the entry has
    /// expired.
    #[inline]
    pub(crate) fn found(&self, now: Instant, destination: IpAddr) -> Option<FoundMtu> {
        self.found.get(destination).copied().filter(|found| found.size.is_valid(now))
    }

    /// Returns the path MTU to `destination` that routers have reported, in bytes, unless the entry
    /// has expired.
    pub(crate) fn reported(&self, now: Instant, destination: IpAddr) -> Option<usize> {
        let size = self.reported.get(destination).filter(|size| size.is_valid(now))?;
        Some(size.mtu)
    }

    /// Records that a connection has found the path MTU `mtu` to `destination`. `is_estimated` says
    /// whether the search has not ended, so that packets larger than `mtu` may pass.
    pub(crate) fn note_found(
        &mut self,
        now: Instant,
        destination: IpAddr,
        mtu: usize,
        is_estimated: bool,
    ) {
        self.found.set(destination, FoundMtu { size: ExpiringMtu::new(mtu, now), is_estimated });
    }

    /// Records the path MTU `mtu` to `destination` from a plausible report.
    pub(crate) fn note_reported(&mut self, now: Instant, destination: IpAddr, mtu: usize) {
        self.reported.set(destination, ExpiringMtu::new(mtu, now));
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        self.found.check();
        self.reported.check();
    }
}

/// A map of limited size from destinations to values. If the map is full, a new destination evicts
/// the destination that was inserted first.
#[derive(Debug)]
struct DestinationMap<T> {
    table: AddressTable,
    entries: Vec<(IpAddr, T)>,
    limit: usize,
    /// The index of the oldest entry, which a new destination evicts once the map is full. Before
    /// that, the index has no meaning.
    oldest: usize,
}

impl<T> DestinationMap<T> {
    fn new(limit: usize, hasher: SipHasher13) -> Self {
        Self {
            table: AddressTable::new(hasher),
            entries: Vec::new(),
            limit: limit.max(1),
            oldest: 0,
        }
    }

    #[inline]
    fn get(&self, destination: IpAddr) -> Option<&T> {
        let (_, value) = &self.entries[self.table.get(destination)? as usize];
        Some(value)
    }

    fn set(&mut self, destination: IpAddr, value: T) {
        let entry = (destination, value);
        if let Some(place) = self.table.get(destination) {
            self.entries[place as usize] = entry;
            return;
        }
        let place = if self.entries.len() < self.limit {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let place = self.oldest;
            let (evicted, _) = core::mem::replace(&mut self.entries[place], entry);
            self.table.remove(evicted);
            self.oldest = (place + 1) % self.limit;
            place
        };
        #[allow(clippy::cast_possible_truncation, reason = "the limit is a small number")]
        self.table.insert(destination, place as u32);
    }

    fn check(&self) {
        assert!(self.entries.len() <= self.limit, "entries are limited");
        assert_eq!(self.table.len(), self.entries.len(), "each destination is in the table");
        for (index, (destination, _)) in (0..).zip(&self.entries) {
            assert_eq!(self.table.get(*destination), Some(index), "each destination is found");
        }
    }
}

/// Returns the path MTU that follows from an IPv4 report about a packet of `sent` bytes. This is
/// the MTU `reported`, raised to [`SMALLEST_PATH_MTU`]. If `reported` is zero, it is the next
/// common MTU below `sent`. Returns `None` if the result is not smaller than `sent`.
pub(crate) fn plausible(reported: usize, sent: usize) -> Option<usize> {
    let wanted = match reported {
        0 => *PLATEAUS.iter().find(|&&plateau| plateau < sent)?,
        reported => reported.max(SMALLEST_PATH_MTU),
    };
    (wanted < sent).then_some(wanted)
}

/// Returns the path MTU that follows from a Packet Too Big message about a packet of `sent` bytes:
/// the MTU `reported`, raised to [`MIN_MTU_IPV6`]. Returns `None` if the result is not smaller than
/// `sent`.
pub(crate) fn plausible_ipv6(reported: usize, sent: usize) -> Option<usize> {
    let wanted = reported.max(MIN_MTU_IPV6);
    (wanted < sent).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;

    fn address(number: u32) -> IpAddr {
        core::net::Ipv4Addr::from_bits(number).into()
    }

    fn table(limit: usize) -> PathMtus {
        PathMtus::new(limit, Keys::new([0; 32]).table("path"))
    }

    fn found(mtus: &PathMtus, now: Instant, number: u32) -> Option<usize> {
        mtus.found(now, address(number)).map(FoundMtu::mtu)
    }

    #[test]
    fn entries_expire_after_ten_minutes() {
        let (mut mtus, end) = (table(4), Instant::ZERO + LIFETIME);
        mtus.note_found(Instant::ZERO, address(1), 1_400, false);
        mtus.note_reported(Instant::ZERO, address(2), 1_300);
        assert_eq!(found(&mtus, end - Duration::from_nanos(1), 1), Some(1_400));
        assert_eq!(mtus.reported(end - Duration::from_nanos(1), address(2)), Some(1_300));
        assert_eq!(found(&mtus, Instant::ZERO, 3), None);
        assert_eq!(found(&mtus, end, 1), None);
        assert_eq!(mtus.reported(end, address(2)), None);
    }

    #[test]
    fn reports_about_datagrams_do_not_affect_connections() {
        let (mut mtus, now) = (table(4), Instant::ZERO);
        mtus.note_found(now, address(1), 1_400, false);
        for number in 0..100 {
            mtus.note_reported(now, address(number), 1_300);
            mtus.check();
        }
        assert_eq!(found(&mtus, now, 1), Some(1_400));
        assert_eq!((found(&mtus, now, 99), mtus.reported(now, address(99))), (None, Some(1_300)));
    }

    #[test]
    fn the_oldest_destination_is_evicted() {
        let mut mtus = table(4);
        for number in 0..10 {
            mtus.note_found(Instant::ZERO, address(number), 1_000 + number as usize, false);
            mtus.check();
        }
        assert_eq!(found(&mtus, Instant::ZERO, 5), None);
        assert_eq!(found(&mtus, Instant::ZERO, 6), Some(1_006));
    }

    #[test]
    fn a_limit_of_zero_keeps_the_last_destination() {
        let mut mtus = table(0);
        for number in 0..3 {
            mtus.note_found(Instant::ZERO, address(number), 1_000, false);
            assert_eq!(found(&mtus, Instant::ZERO, number), Some(1_000));
        }
    }

    #[test]
    fn implausible_reports_are_adjusted_or_refused() {
        assert_eq!(plausible(1_400, 1_500), Some(1_400));
        assert_eq!(plausible(68, 1_500), Some(SMALLEST_PATH_MTU));
        assert_eq!(plausible(1_500, 1_500), None);
        assert_eq!(plausible(0, 1_500), Some(1_492));
        assert_eq!(plausible(0, 1_492), Some(1_006));
        assert_eq!(plausible(0, SMALLEST_PATH_MTU), None);
        assert_eq!(plausible(68, 300), None);
        assert_eq!(plausible_ipv6(1_400, 1_500), Some(1_400));
        assert_eq!(plausible_ipv6(0, 1_500), Some(1_280));
        assert_eq!(plausible_ipv6(1_500, 1_500), None);
    }
}

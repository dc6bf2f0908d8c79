//! The largest packet to a destination: what connections have found out (RFC 4821 §5.2), and what routers
//! have reported of datagrams (RFC 1191).
//!
//! Nothing confirms a report about a datagram, and whoever knows two ports can forge one. So it is only an
//! estimate for datagrams, and connections do not use it.

use crate::collections::address_table::AddressTable;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use linerate_units::{Duration, Instant};
use siphasher::sip::SipHasher13;

/// What is known counts for so long; then larger packets are tried again (RFC 1191 §6.3).
const LIFETIME: Duration = Duration::from_secs(600);

/// Less than this is not believed: it would be an attack on the throughput, or a path that nobody
/// uses today (RFC 5927 §7.2). Every host can take datagrams of 576 bytes (RFC 791).
const LEAST: usize = 552;

/// The sizes that occur, for routers that say "too big" and not how big would do (RFC 1191 §7.1).
const PLATEAUS: [usize; 10] =
    [65_535, 32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 576, LEAST];

/// What is known of the largest packets to destinations.
#[derive(Debug)]
pub(crate) struct PathMtus {
    found: Destinations<Found>,
    /// Apart from the others, which forged reports cannot evict.
    reported: Destinations<Aging>,
}

/// What a connection has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    size: Aging,
    /// A larger packet may pass, for all that is known.
    pub(crate) is_estimated: bool,
}

impl Found {
    /// Bytes of the largest packet.
    pub(crate) const fn mtu(self) -> usize {
        self.size.mtu
    }
}

/// A size that counts for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Aging {
    /// Bytes of the largest packet.
    mtu: usize,
    expires: Instant,
}

impl Aging {
    fn new(mtu: usize, now: Instant) -> Self {
        Self { mtu, expires: now + LIFETIME }
    }

    fn is_valid(&self, now: Instant) -> bool {
        now < self.expires
    }
}

impl PathMtus {
    /// Room for `limit` destinations of each kind.
    pub(crate) fn new(limit: usize, hasher: SipHasher13) -> Self {
        let (found, reported) =
            (Destinations::new(limit, hasher), Destinations::new(limit, hasher));
        Self { found, reported }
    }

    /// What connections have found out lately of the way to `destination`.
    #[inline]
    pub(crate) fn found(&self, now: Instant, destination: Ipv4Addr) -> Option<Found> {
        self.found.get(destination).copied().filter(|found| found.size.is_valid(now))
    }

    /// Bytes of the largest datagram to `destination`, headers counted, as far as routers have reported it
    /// lately.
    pub(crate) fn reported(&self, now: Instant, destination: Ipv4Addr) -> Option<usize> {
        let size = self.reported.get(destination).filter(|size| size.is_valid(now))?;
        Some(size.mtu)
    }

    /// Packets to `destination` pass with `mtu` bytes, as a connection has found out; larger ones, too,
    /// perhaps, if it `is_estimated`.
    pub(crate) fn note_found(
        &mut self,
        now: Instant,
        destination: Ipv4Addr,
        mtu: usize,
        is_estimated: bool,
    ) {
        self.found.set(destination, Found { size: Aging::new(mtu, now), is_estimated });
    }

    /// A plausible report says that datagrams to `destination` pass with `mtu` bytes.
    pub(crate) fn note_reported(&mut self, now: Instant, destination: Ipv4Addr, mtu: usize) {
        self.reported.set(destination, Aging::new(mtu, now));
    }

    /// Panics if a table and what is known do not agree.
    pub(crate) fn check(&self) {
        self.found.check();
        self.reported.check();
    }
}

/// A value for each of some destinations. When there is no room for one more, the oldest makes it.
#[derive(Debug)]
struct Destinations<T> {
    table: AddressTable,
    known: Vec<(Ipv4Addr, T)>,
    limit: usize,
    /// Where the oldest lies, once there are as many as the limit.
    oldest: usize,
}

impl<T> Destinations<T> {
    fn new(limit: usize, hasher: SipHasher13) -> Self {
        Self { table: AddressTable::new(hasher), known: Vec::new(), limit: limit.max(1), oldest: 0 }
    }

    #[inline]
    fn get(&self, destination: Ipv4Addr) -> Option<&T> {
        let (_, value) = &self.known[self.table.get(destination)? as usize];
        Some(value)
    }

    fn set(&mut self, destination: Ipv4Addr, value: T) {
        let news = (destination, value);
        if let Some(place) = self.table.get(destination) {
            self.known[place as usize] = news;
            return;
        }
        let place = if self.known.len() < self.limit {
            self.known.push(news);
            self.known.len() - 1
        } else {
            let place = self.oldest;
            let (evicted, _) = core::mem::replace(&mut self.known[place], news);
            self.table.remove(evicted);
            self.oldest = (place + 1) % self.limit;
            place
        };
        #[allow(clippy::cast_possible_truncation, reason = "the limit is a small number")]
        self.table.insert(destination, place as u32);
    }

    fn check(&self) {
        assert!(self.known.len() <= self.limit, "what is known is limited");
        assert_eq!(self.table.len(), self.known.len(), "each destination is in the table");
        for (index, (destination, _)) in (0..).zip(&self.known) {
            assert_eq!(self.table.get(*destination), Some(index), "each destination is found");
        }
    }
}

/// What a report means for packets of `sent` bytes: `reported` as far as it can be believed, or the
/// next size that occurs where the router did not say one. `None` if it asks for no less than now.
pub(crate) fn plausible(reported: usize, sent: usize) -> Option<usize> {
    let wanted = match reported {
        0 => *PLATEAUS.iter().find(|&&plateau| plateau < sent)?,
        reported => reported.max(LEAST),
    };
    (wanted < sent).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;

    fn address(number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(number)
    }

    fn table(limit: usize) -> PathMtus {
        PathMtus::new(limit, Keys::new([0; 32]).table("path"))
    }

    fn found(mtus: &PathMtus, now: Instant, number: u32) -> Option<usize> {
        mtus.found(now, address(number)).map(Found::mtu)
    }

    #[test]
    fn what_was_found_and_what_was_reported_are_kept_for_ten_minutes() {
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
    fn reports_about_datagrams_replace_nothing_that_connections_have_found() {
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
    fn the_oldest_destination_makes_room() {
        let mut mtus = table(4);
        for number in 0..10 {
            mtus.note_found(Instant::ZERO, address(number), 1_000 + number as usize, false);
            mtus.check();
        }
        assert_eq!(found(&mtus, Instant::ZERO, 5), None);
        assert_eq!(found(&mtus, Instant::ZERO, 6), Some(1_006));
    }

    #[test]
    fn a_table_without_room_keeps_the_last_destination() {
        let mut mtus = table(0);
        for number in 0..3 {
            mtus.note_found(Instant::ZERO, address(number), 1_000, false);
            assert_eq!(found(&mtus, Instant::ZERO, number), Some(1_000));
        }
    }

    #[test]
    fn a_report_is_believed_within_reason() {
        assert_eq!(plausible(1_400, 1_500), Some(1_400));
        assert_eq!(plausible(68, 1_500), Some(LEAST));
        assert_eq!(plausible(1_500, 1_500), None);
        assert_eq!(plausible(0, 1_500), Some(1_492));
        assert_eq!(plausible(0, 1_492), Some(1_006));
        assert_eq!(plausible(0, LEAST), None);
        assert_eq!(plausible(68, 300), None);
    }
}

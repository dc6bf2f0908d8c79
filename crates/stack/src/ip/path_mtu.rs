//! The largest packet to a destination: what routers have reported (RFC 1191), and what connections have
//! found out by themselves (RFC 4821 §5.2).

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

/// What is known, each for one destination. When there is no room for one more, the oldest makes it.
#[derive(Debug)]
pub(crate) struct PathMtus {
    table: AddressTable,
    known: Vec<Known>,
    limit: usize,
    /// Where the oldest lies, once there are as many as the limit.
    oldest: usize,
}

/// What is known of the way to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    destination: Ipv4Addr,
    /// Bytes of the largest packet.
    pub(crate) mtu: usize,
    /// A larger one may pass, for all that is known.
    pub(crate) is_estimated: bool,
    expires: Instant,
}

impl PathMtus {
    /// Room for `limit` destinations.
    pub(crate) fn new(limit: usize, hasher: SipHasher13) -> Self {
        Self { table: AddressTable::new(hasher), known: Vec::new(), limit: limit.max(1), oldest: 0 }
    }

    /// What has become known lately of the way to `destination`.
    #[inline]
    pub(crate) fn get(&self, now: Instant, destination: Ipv4Addr) -> Option<Known> {
        let known = self.known[self.table.get(destination)? as usize];
        (now < known.expires).then_some(known)
    }

    /// Packets to `destination` pass with `mtu` bytes, as a report says that has been judged plausible, or as
    /// was found out; larger ones, too, perhaps, if it `is_estimated`.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        destination: Ipv4Addr,
        mtu: usize,
        is_estimated: bool,
    ) {
        let news = Known { destination, mtu, is_estimated, expires: now + LIFETIME };
        if let Some(known) = self.table.get(destination) {
            self.known[known as usize] = news;
            return;
        }
        let place = if self.known.len() < self.limit {
            self.known.push(news);
            self.known.len() - 1
        } else {
            let place = self.oldest;
            let evicted = core::mem::replace(&mut self.known[place], news);
            self.table.remove(evicted.destination);
            self.oldest = (place + 1) % self.limit;
            place
        };
        #[allow(clippy::cast_possible_truncation, reason = "the limit is a small number")]
        self.table.insert(destination, place as u32);
    }

    /// Panics if the table and what is known do not agree.
    pub(crate) fn check(&self) {
        assert!(self.known.len() <= self.limit, "what is known is limited");
        assert_eq!(self.table.len(), self.known.len(), "each destination is in the table");
        for (index, known) in (0..).zip(&self.known) {
            assert_eq!(self.table.get(known.destination), Some(index), "each destination is found");
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

    #[test]
    fn a_report_is_kept_for_ten_minutes() {
        let mut mtus = PathMtus::new(4, Keys::new([0; 32]).table("path"));
        mtus.note(Instant::ZERO, address(1), 1_400, false);
        assert_eq!(mtus.get(Instant::ZERO, address(1)).map(|known| known.mtu), Some(1_400));
        assert_eq!(mtus.get(Instant::ZERO, address(2)).map(|known| known.mtu), None);
        assert_eq!(mtus.get(Instant::ZERO + LIFETIME, address(1)).map(|known| known.mtu), None);
    }

    #[test]
    fn the_oldest_report_makes_room() {
        let mut mtus = PathMtus::new(4, Keys::new([0; 32]).table("path"));
        for number in 0..10 {
            mtus.note(Instant::ZERO, address(number), 1_000 + number as usize, false);
            mtus.check();
        }
        assert_eq!(mtus.get(Instant::ZERO, address(5)).map(|known| known.mtu), None);
        assert_eq!(mtus.get(Instant::ZERO, address(6)).map(|known| known.mtu), Some(1_006));
    }

    #[test]
    fn who_has_room_for_none_remembers_the_last() {
        let mut mtus = PathMtus::new(0, Keys::new([0; 32]).table("path"));
        for number in 0..3 {
            mtus.note(Instant::ZERO, address(number), 1_000, false);
            assert_eq!(
                mtus.get(Instant::ZERO, address(number)).map(|known| known.mtu),
                Some(1_000)
            );
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

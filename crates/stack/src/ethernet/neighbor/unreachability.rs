//! Neighbour unreachability detection (RFC 4861 §7.3), and the changes that received Neighbour
//! Discovery messages make to the neighbour cache (RFC 4861 §7.2.3, §7.2.5).

use super::{Neighbors, State};
use crate::handle::TcpHandle;
use core::net::IpAddr;
use linerate_units::{Duration, Instant};
use linerate_wire::MacAddress;

/// Time between the first use of a stale neighbour and its first probe (RFC 4861 §10).
const DELAY_FIRST_PROBE: Duration = Duration::from_secs(5);
/// Minimum and maximum of the reachable time that a router can set. These limits, and those of the
/// interval in `INTERVAL_LIMITS`, protect the host from a rogue router. They bound the number of
/// solicitations that it can cause, and the time for which a vanished neighbour stays in the cache.
const REACHABLE_LIMITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3_600)];
const INTERVAL_LIMITS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(10)];

/// A connection through a neighbour, and the number of bytes that its peer had acknowledged when
/// this value was stored. If the peer acknowledges more bytes later, packets pass the neighbour, so
/// the neighbour is reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    pub(crate) connection: TcpHandle,
    pub(crate) progress: u64,
}

/// The contents of a received neighbour advertisement: the MAC address, if it contains one, and the
/// flags R, S and O (RFC 4861 §4.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advertised {
    pub(crate) mac: Option<MacAddress>,
    pub(crate) is_router: bool,
    pub(crate) is_solicited: bool,
    pub(crate) is_override: bool,
}

impl Neighbors {
    /// Handles a neighbour advertisement of `address` (RFC 4861 §7.2.5). Returns true if the
    /// neighbour has stopped being a router.
    pub(crate) fn advertise(
        &mut self,
        now: Instant,
        address: IpAddr,
        advertised: &Advertised,
    ) -> bool {
        let Some(index) = self.table.get(address) else { return false };
        let Some(entry) = self.entries.get_mut(index) else { return false };
        let was_router = entry.is_router;
        let (state, known) = (entry.state, entry.mac);
        let answered = if advertised.is_solicited { State::Reachable } else { State::Stale };
        if state == State::Unresolved {
            let Some(mac) = advertised.mac else { return false };
            entry.is_router = advertised.is_router;
            self.update(now, index, mac, answered);
            return false;
        }
        let is_other = advertised.mac.is_some_and(|mac| mac != known);
        if is_other && !advertised.is_override {
            if state == State::Reachable {
                self.become_stale(now, index);
            }
            return false;
        }
        entry.is_router = advertised.is_router;
        if advertised.is_solicited || is_other {
            self.update(now, index, advertised.mac.unwrap_or(known), answered);
        }
        was_router && !advertised.is_router
    }

    /// Notes the MAC address of a neighbour that has sent a solicitation, a router advertisement or
    /// a redirect. These messages do not confirm that the neighbour receives our packets, so a new
    /// or changed entry is stale (RFC 4861 §7.2.3).
    pub(crate) fn note_sender(
        &mut self,
        now: Instant,
        address: IpAddr,
        mac: MacAddress,
        is_router: bool,
    ) {
        let index = match self.table.get(address) {
            Some(index) => {
                if self.entries.get(index).is_some_and(|entry| entry.mac != mac) {
                    self.update(now, index, mac, State::Stale);
                }
                index
            }
            None => {
                let index = self.add(now, address, State::Stale, mac);
                if let Some(entry) = self.entries.get_mut(index) {
                    entry.expires = now + super::STALE;
                }
                index
            }
        };
        if let Some(entry) = self.entries.get_mut(index) {
            entry.is_router |= is_router;
        }
    }

    /// Marks a known neighbour as a router, because it has sent a router advertisement (RFC 4861
    /// §6.3.4).
    pub(crate) fn mark_router(&mut self, address: IpAddr) {
        let index = self.table.get(address);
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            entry.is_router = true;
        }
    }

    /// Handles the first packet to a stale neighbour. ARP probes the neighbour at once (RFC 1122
    /// §2.3.2.1), Neighbour Discovery after a delay.
    pub(super) fn use_stale(&mut self, now: Instant, index: u32) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        if entry.address.is_ipv4() {
            return self.send_request(now, index, State::Probed);
        }
        entry.state = State::Delayed;
        entry.expires = now + DELAY_FIRST_PROBE;
        self.timers.arm(index, entry.expires);
    }

    /// Stores a connection through a neighbour as its witness, if the neighbour is delayed or
    /// probed. Progress of this connection then confirms that the neighbour is reachable.
    pub(crate) fn set_witness(&mut self, address: IpAddr, witness: impl FnOnce() -> Witness) {
        let index = self.table.get(address);
        let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) else { return };
        if entry.address.is_ipv6() && matches!(entry.state, State::Delayed | State::Probed) {
            entry.witness = Some(witness());
        }
    }

    /// Returns the connection whose progress can confirm the neighbour at this index, if one is
    /// stored.
    pub(crate) fn witness(&self, index: u32) -> Option<Witness> {
        self.entries.get(index)?.witness
    }

    /// Confirms a neighbour because a connection through it has made progress (RFC 4861 §7.3.1).
    pub(crate) fn confirm(&mut self, now: Instant, index: u32) {
        if let Some(entry) = self.entries.get(index) {
            let mac = entry.mac;
            self.counters.confirmations += 1;
            self.update(now, index, mac, State::Reachable);
        }
    }

    /// Sets the mean reachable time and the interval of solicitations to the values that a router
    /// has advertised, each clamped to the permitted range. `None` leaves a value unchanged.
    /// Returns the interval that now applies.
    pub(crate) fn set_timing(
        &mut self,
        reachable: Option<Duration>,
        interval: Option<Duration>,
    ) -> Duration {
        let within = |time: Duration, [least, most]: [Duration; 2]| time.max(least).min(most);
        if let Some(reachable) = reachable {
            self.timing.reachable = within(reachable, REACHABLE_LIMITS);
        }
        if let Some(interval) = interval {
            self.timing.interval = within(interval, INTERVAL_LIMITS);
        }
        self.timing.interval
    }

    /// Returns the time for which a neighbour counts as reachable after a confirmation. For
    /// Neighbour Discovery, this time is random: between half and one and a half times the mean
    /// (RFC 4861 §6.3.2).
    pub(super) fn reachable_time(&mut self, index: u32) -> Duration {
        if self.entries.get(index).is_none_or(|entry| entry.address.is_ipv4()) {
            return super::REACHABLE;
        }
        self.timing.reachable / 2 + self.draws.below(self.timing.reachable)
    }
}

//! The ICMPv6 redirects in effect (RFC 4861 §8.3). Their number and their lifetime are limited.

use alloc::collections::VecDeque;
use core::net::{IpAddr, Ipv6Addr};
use linerate_units::{Duration, Instant};
use linerate_wire::IpCidr;

/// The time for which a redirect is in effect. RFC 4861 does not specify this time.
const LIFETIME: Duration = Duration::from_secs(600);

/// A redirect: packets to `destination` go to the next hop `target`, until the time `until`.
#[derive(Clone, Copy, Debug)]
struct Redirected {
    destination: IpCidr,
    target: Ipv6Addr,
    until: Instant,
}

/// The redirects in effect, the oldest first.
#[derive(Debug)]
pub(crate) struct Redirects {
    entries: VecDeque<Redirected>,
    limit: usize,
}

impl Redirects {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { entries: VecDeque::new(), limit }
    }

    /// Records a redirect. If the number of redirects then exceeds the limit, removes the oldest
    /// redirect and returns its destination; otherwise returns `None`.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        destination: IpCidr,
        target: Ipv6Addr,
    ) -> Option<IpCidr> {
        self.entries.retain(|known| known.destination != destination);
        self.entries.push_back(Redirected { destination, target, until: now + LIFETIME });
        let is_over = self.entries.len() > self.limit;
        self.entries.pop_front_if(|_| is_over).map(|oldest| oldest.destination)
    }

    /// Is the address the target (next hop) of a redirect?
    pub(crate) fn leads_to(&self, address: IpAddr) -> bool {
        self.entries.iter().any(|known| IpAddr::V6(known.target) == address)
    }

    /// Removes a redirect that has expired at `now`, and returns its destination, or returns `None`
    /// if no redirect has expired.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<IpCidr> {
        let oldest = self.entries.pop_front_if(|oldest| oldest.until <= now)?;
        Some(oldest.destination)
    }

    /// Removes a redirect to the next hop `target`, because `target` does not answer. Returns the
    /// destination of the redirect, or `None` if no redirect leads to `target`.
    pub(crate) fn remove_target(&mut self, target: IpAddr) -> Option<IpCidr> {
        let is_lost = |known: &Redirected| IpAddr::V6(known.target) == target;
        let place = self.entries.iter().position(is_lost)?;
        self.entries.remove(place).map(|lost| lost.destination)
    }

    /// Returns the time at which the next redirect expires; [`Instant::NEVER`] if there is none.
    pub(crate) fn next_change(&self) -> Instant {
        self.entries.front().map_or(Instant::NEVER, |oldest| oldest.until)
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        assert!(self.entries.len() <= self.limit, "redirects are limited");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(number: u16) -> IpCidr {
        IpCidr::single(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number).into())
    }

    #[test]
    fn redirects_are_limited_end_and_are_dropped_with_their_target() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let target = |number| Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number);
        let mut redirects = Redirects::new(2);
        assert_eq!(redirects.insert(at(0), to(1), target(1)), None);
        assert_eq!(redirects.insert(at(1), to(2), target(2)), None);
        assert_eq!(redirects.insert(at(2), to(1), target(2)), None, "it is renewed");
        assert_eq!(redirects.insert(at(3), to(3), target(3)), Some(to(2)));
        redirects.check();
        assert!(redirects.leads_to(target(2).into()) && !redirects.leads_to(target(1).into()));
        assert_eq!(redirects.remove_target(target(3).into()), Some(to(3)));
        assert_eq!((redirects.expire(at(601)), redirects.next_change()), (None, at(602)));
        assert_eq!((redirects.expire(at(602)), redirects.expire(at(602))), (Some(to(1)), None));
    }
}

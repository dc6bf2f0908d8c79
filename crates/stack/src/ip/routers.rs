//! The default routers and on-link prefixes that router advertisements have announced (RFC 4861
//! §5.1, §6.3).

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use linerate_units::{Duration, Instant};
use linerate_wire::{IpCidr, RouterPreference};

/// The time for which the host prefers all other routers to a router that did not answer.
const SUSPICION: Duration = Duration::from_secs(60);

/// A default router that was learned from a router advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefaultRouter {
    /// The link-local address of the router.
    pub address: Ipv6Addr,
    /// The preference of the router over other routers (RFC 4191).
    pub preference: RouterPreference,
    /// The time at which the router ceases to be a default router.
    pub valid_until: Instant,
    /// The time until which the host prefers all other routers, because this router recently did
    /// not answer; `None` for a router that answers.
    pub suspect_until: Option<Instant>,
}

/// An advertised prefix whose addresses are on the link.
#[derive(Clone, Copy, Debug)]
struct OnLinkPrefix {
    network: IpCidr,
    valid_until: Instant,
}

/// A change of the default routers or on-link prefixes that affects the routes of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouterChange {
    /// The default routers have changed, so that another one than before may be the best router.
    Router,
    /// The prefix is no longer on the link.
    PrefixExpired(IpCidr),
}

/// The error that a router or prefix was not stored, because its list is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The default router list and the prefix list, each of bounded length.
#[derive(Debug)]
pub(crate) struct Routers {
    routers: Vec<DefaultRouter>,
    prefixes: Vec<OnLinkPrefix>,
    router_limit: usize,
    prefix_limit: usize,
}

impl Routers {
    pub(crate) const fn new(router_limit: usize, prefix_limit: usize) -> Self {
        Self { routers: Vec::new(), prefixes: Vec::new(), router_limit, prefix_limit }
    }

    /// Returns all default routers.
    pub(crate) fn all(&self) -> &[DefaultRouter] {
        &self.routers
    }

    /// Records a router advertisement. A lifetime of zero removes the router. If the list is full,
    /// a new router replaces a router of lower preference. If there is no such router, the new
    /// router is not stored, and [`Full`] is returned.
    pub(crate) fn advertise(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        lifetime: Duration,
        preference: RouterPreference,
    ) -> Result<(), Full> {
        let place = self.routers.iter().position(|router| router.address == address);
        if lifetime == Duration::ZERO {
            place.map(|place| self.routers.remove(place));
            return Ok(());
        }
        let suspect_until = place.and_then(|place| self.routers[place].suspect_until);
        let valid_until = now + lifetime;
        let router = DefaultRouter { address, preference, valid_until, suspect_until };
        match place {
            Some(place) => self.routers[place] = router,
            None if self.routers.len() < self.router_limit => self.routers.push(router),
            None => {
                let lower = |known: &&mut DefaultRouter| known.preference < preference;
                let least = self.routers.iter_mut().filter(lower).min_by_key(|r| r.preference);
                *least.ok_or(Full)? = router;
            }
        }
        Ok(())
    }

    /// Records an on-link prefix. With the lifetime `None`, the prefix does not expire. With a
    /// lifetime of zero, a known prefix expires at the next timeout. Returns whether the prefix is
    /// new, or [`Full`] if the list has no room for it.
    pub(crate) fn set_prefix(
        &mut self,
        now: Instant,
        network: IpCidr,
        lifetime: Option<Duration>,
    ) -> Result<bool, Full> {
        let valid_until = lifetime.map_or(Instant::NEVER, |span| now + span);
        let known = self.prefixes.iter_mut().find(|prefix| prefix.network == network);
        if let Some(known) = known {
            // A lifetime of zero ends the prefix. The prefix is not removed here but at the next
            // timeout, which also removes its route.
            known.valid_until = valid_until;
            return Ok(false);
        }
        if valid_until <= now {
            return Ok(false);
        }
        if self.prefixes.len() >= self.prefix_limit {
            return Err(Full);
        }
        self.prefixes.push(OnLinkPrefix { network, valid_until });
        Ok(true)
    }

    /// Returns the on-link prefixes.
    pub(crate) fn prefixes(&self) -> Vec<IpCidr> {
        self.prefixes.iter().map(|prefix| prefix.network).collect()
    }

    /// Is the address in an advertised on-link prefix?
    pub(crate) fn is_on_link(&self, address: IpAddr) -> bool {
        self.prefixes.iter().any(|prefix| prefix.network.contains(address))
    }

    /// Notes that a router does not answer. For a minute, the host then prefers all other routers
    /// (RFC 4861 §6.3.6). Returns whether `address` belongs to a known router.
    pub(crate) fn suspect(&mut self, now: Instant, address: IpAddr) -> bool {
        let router = self.routers.iter_mut().find(|router| IpAddr::V6(router.address) == address);
        let is_router = router.is_some();
        if let Some(router) = router {
            router.suspect_until = Some(now + SUSPICION);
        }
        is_router
    }

    /// Removes a neighbour that has ceased to be a router (RFC 4861 §7.2.5). Returns whether this
    /// neighbour was in the list.
    pub(crate) fn remove(&mut self, address: Ipv6Addr) -> bool {
        let before = self.routers.len();
        self.routers.retain(|router| router.address != address);
        self.routers.len() < before
    }

    /// Returns the best router: among the routers that answer, the router with the highest
    /// preference. If no router answers, returns the router whose failure was noticed first. Each
    /// further failure thus leads to another router, so all routers are tried in turn.
    pub(crate) fn best(&self) -> Option<Ipv6Addr> {
        let answers = |router: &&DefaultRouter| router.suspect_until.is_none();
        // `max_by_key` returns the final one of equal elements. Because the list is reversed, this
        // is the router that was added first. So a new router does not replace an older router of
        // equal preference.
        let best = self.routers.iter().rev().filter(answers).max_by_key(|r| r.preference);
        let failed_first = || self.routers.iter().min_by_key(|router| router.suspect_until);
        best.or_else(failed_first).map(|router| router.address)
    }

    /// Performs and returns the next change that is due at `now`, or returns `None` if no change is
    /// due.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<RouterChange> {
        if let Some(place) = self.prefixes.iter().position(|prefix| prefix.valid_until <= now) {
            return Some(RouterChange::PrefixExpired(self.prefixes.remove(place).network));
        }
        if let Some(place) = self.routers.iter().position(|router| router.valid_until <= now) {
            self.routers.remove(place);
            return Some(RouterChange::Router);
        }
        let is_over =
            |router: &&mut DefaultRouter| router.suspect_until.is_some_and(|until| until <= now);
        self.routers.iter_mut().find(is_over)?.suspect_until = None;
        Some(RouterChange::Router)
    }

    /// Returns the time of the next change; [`Instant::NEVER`] if no change is pending.
    pub(crate) fn next_change(&self) -> Instant {
        let of_router =
            |r: &DefaultRouter| r.valid_until.min(r.suspect_until.unwrap_or(Instant::NEVER));
        let routers = self.routers.iter().map(of_router);
        let prefixes = self.prefixes.iter().map(|prefix| prefix.valid_until);
        routers.chain(prefixes).min().unwrap_or(Instant::NEVER)
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        assert!(self.routers.len() <= self.router_limit, "routers are limited");
        assert!(self.prefixes.len() <= self.prefix_limit, "prefixes are limited");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RouterPreference::{High, Low, Medium};

    const LIFETIME: Duration = Duration::from_secs(1_800);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn router(number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number)
    }

    fn with(routers: &[(u16, RouterPreference)]) -> Routers {
        let mut list = Routers::new(3, 2);
        for &(number, preference) in routers {
            list.advertise(at(0), router(number), LIFETIME, preference).unwrap();
        }
        list.check();
        list
    }

    #[test]
    fn the_first_router_with_the_highest_preference_is_the_best() {
        assert_eq!(with(&[]).best(), None);
        assert_eq!(with(&[(1, Medium), (2, Medium)]).best(), Some(router(1)));
        assert_eq!(with(&[(1, Low), (2, High), (3, Medium)]).best(), Some(router(2)));
    }

    #[test]
    fn routers_that_do_not_answer_are_avoided_for_a_minute_and_then_tried_in_turn() {
        let mut list = with(&[(1, High), (2, Low)]);
        assert!(list.suspect(at(1), router(1).into()));
        assert_eq!(list.best(), Some(router(2)));
        assert!(list.suspect(at(2), router(2).into()));
        assert_eq!(list.best(), Some(router(1)), "it failed first");
        assert!(list.suspect(at(3), router(1).into()));
        assert_eq!(list.best(), Some(router(2)));
        assert!(!list.suspect(at(3), router(9).into()));
        assert_eq!(list.next_change(), at(62));
        assert_eq!(list.expire(at(63)), Some(RouterChange::Router));
        assert_eq!(list.expire(at(63)), Some(RouterChange::Router));
        assert_eq!((list.expire(at(63)), list.best()), (None, Some(router(1))));
    }

    #[test]
    fn a_lifetime_ends_is_renewed_or_is_withdrawn() {
        let mut list = with(&[(1, Medium), (2, Medium)]);
        list.advertise(at(100), router(1), LIFETIME, Medium).unwrap();
        assert_eq!(list.expire(at(1_800)), Some(RouterChange::Router));
        assert_eq!((list.expire(at(1_800)), list.best()), (None, Some(router(1))));
        list.advertise(at(1_800), router(1), Duration::ZERO, Medium).unwrap();
        assert_eq!((list.best(), list.next_change()), (None, Instant::NEVER));
    }

    #[test]
    fn a_full_list_makes_room_only_for_a_higher_preference() {
        let mut list = with(&[(1, Medium), (2, Low), (3, Medium)]);
        assert_eq!(list.advertise(at(0), router(4), LIFETIME, Low), Err(Full));
        assert_eq!(list.advertise(at(0), router(4), LIFETIME, Medium), Ok(()));
        assert!(!list.all().iter().any(|known| known.address == router(2)));
        assert_eq!(list.advertise(at(0), router(5), LIFETIME, Medium), Err(Full));
        list.check();
    }

    #[test]
    fn prefixes_are_limited_and_expire() {
        let mut list = with(&[]);
        let prefix = |text: &str| text.parse::<IpCidr>().unwrap();
        let [one, two, three] =
            ["2001:db8:1::/64", "2001:db8:2::/64", "2001:db8:3::/64"].map(prefix);
        assert_eq!(list.set_prefix(at(0), one, Some(LIFETIME)), Ok(true));
        assert_eq!(list.set_prefix(at(0), two, None), Ok(true));
        assert_eq!(list.set_prefix(at(0), three, None), Err(Full));
        assert_eq!(list.set_prefix(at(9), one, Some(LIFETIME)), Ok(false));
        assert_eq!(list.set_prefix(at(9), three, Some(Duration::ZERO)), Ok(false));
        assert!(list.is_on_link("2001:db8:1::7".parse().unwrap()));
        assert_eq!(list.expire(at(1_800)), None);
        assert_eq!(list.expire(at(1_809)), Some(RouterChange::PrefixExpired(one)));
        assert!(!list.is_on_link("2001:db8:1::7".parse().unwrap()));
        assert_eq!(list.set_prefix(at(9), two, Some(Duration::ZERO)), Ok(false));
        assert_eq!(list.expire(at(9)), Some(RouterChange::PrefixExpired(two)));
    }
}

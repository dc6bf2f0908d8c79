//! The state of router discovery and of stateless address autoconfiguration (RFC 4861 §6.3, RFC
//! 4862 §5.5).

use crate::ip::autoconfiguration::{Autoconfiguration, Formed, Identifiers};
use crate::ip::redirects::Redirects;
use crate::ip::routers::Routers;
use crate::keys::{Draws, Keys};
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use linerate_units::{Duration, Instant};
use linerate_wire::MacAddress;

/// Maximum of the random delay before the first router solicitation: MAX_RTR_SOLICITATION_DELAY of
/// RFC 4861 §10.
const DELAY: Duration = Duration::from_secs(1);
/// Maximum number of router solicitations, and the time between two solicitations:
/// MAX_RTR_SOLICITATIONS and RTR_SOLICITATION_INTERVAL of RFC 4861 §10.
const SOLICITATIONS: u8 = 3;
const INTERVAL: Duration = Duration::from_secs(4);

/// The state of router discovery and autoconfiguration of an interface. It stays empty unless the
/// host is configured to take addresses and routes from routers.
#[derive(Debug)]
pub(crate) struct Discovery {
    pub(crate) config: Option<Autoconfiguration>,
    pub(crate) routers: Routers,
    pub(crate) redirects: Redirects,
    pub(crate) identifiers: Identifiers,
    /// The addresses that were formed from advertised prefixes. Invariant: each of these addresses
    /// is an address of the interface.
    pub(crate) formed: Vec<Formed>,
    pub(crate) solicitations: Solicitations,
    /// The router of the default route that router discovery has installed, if any.
    pub(crate) installed: Option<Ipv6Addr>,
    /// The MTU of the link in bytes, if a router has advertised it.
    pub(crate) mtu: Option<usize>,
}

impl Discovery {
    pub(crate) fn new(
        config: Option<Autoconfiguration>,
        mac: MacAddress,
        routers: Routers,
        redirects: Redirects,
        keys: &Keys,
    ) -> Self {
        Self {
            config,
            routers,
            redirects,
            identifiers: Identifiers::new(keys, config.and_then(|config| config.secret), mac),
            formed: Vec::new(),
            solicitations: Solicitations::new(config.is_some(), keys),
            installed: None,
            mtu: None,
        }
    }

    /// Returns the time of the next change of this state: the expiry of a router, prefix or
    /// redirect, the next router solicitation, or the replacement of a temporary address.
    /// [`Instant::NEVER`] if no change is pending.
    pub(crate) fn next_change(&self) -> Instant {
        let replacement = self.formed.iter().map(|formed| formed.replace_at).min();
        self.routers
            .next_change()
            .min(self.redirects.next_change())
            .min(self.solicitations.at)
            .min(replacement.unwrap_or(Instant::NEVER))
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        self.routers.check();
        self.redirects.check();
    }
}

/// The router solicitations that are still to be sent (RFC 4861 §6.3.7).
#[derive(Debug)]
pub(crate) struct Solicitations {
    left: u8,
    /// Whether the random delay before the first solicitation was drawn.
    is_delayed: bool,
    /// The time of the next solicitation.
    at: Instant,
    draws: Draws,
}

impl Solicitations {
    fn new(is_enabled: bool, keys: &Keys) -> Self {
        let (left, at) =
            if is_enabled { (SOLICITATIONS, Instant::ZERO) } else { (0, Instant::NEVER) };
        Self { left, is_delayed: false, at, draws: Draws::new(keys, "router solicitations") }
    }

    /// Returns whether a solicitation must be sent now, and counts it as sent. The first call draws
    /// the random delay before the first solicitation.
    pub(crate) fn take_due(&mut self, now: Instant) -> bool {
        if !self.is_delayed && self.at <= now {
            self.is_delayed = true;
            self.at = now + self.draws.below(DELAY);
        }
        if self.at > now {
            return false;
        }
        self.left -= 1;
        self.at = if self.left > 0 { now + INTERVAL } else { Instant::NEVER };
        true
    }

    /// Ends the solicitations, because the host has received a router advertisement.
    pub(crate) const fn end(&mut self) {
        self.left = 0;
        self.is_delayed = true;
        self.at = Instant::NEVER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(solicitations: &mut Solicitations) -> Vec<u64> {
        let mut now = Instant::ZERO;
        let mut times = Vec::new();
        while solicitations.at != Instant::NEVER {
            now = now.max(solicitations.at);
            if solicitations.take_due(now) {
                times.push(now.as_millis());
            }
        }
        times
    }

    #[test]
    fn three_solicitations_follow_a_random_delay_at_intervals_of_four_seconds() {
        let first: Vec<_> = (0..10)
            .map(|seed| {
                let times = times(&mut Solicitations::new(true, &Keys::new([seed; 32])));
                assert_eq!((times[1] - times[0], times[2] - times[1]), (4_000, 4_000));
                assert_eq!((times.len(), times[0] <= 1_000), (3, true));
                times[0]
            })
            .collect();
        assert!(first.iter().any(|&time| time != first[0]), "{first:?}");
    }

    #[test]
    fn none_are_sent_without_configuration_or_after_an_advertisement() {
        let keys = Keys::new([1; 32]);
        assert_eq!(times(&mut Solicitations::new(false, &keys)), []);
        let mut solicitations = Solicitations::new(true, &keys);
        solicitations.end();
        assert_eq!(times(&mut solicitations), []);
    }
}

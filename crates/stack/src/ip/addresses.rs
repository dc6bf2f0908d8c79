//! The addresses of an interface, with their states and lifetimes.
//!
//! The addresses in use are stored a second time, in a list of their own. The host compares the
//! destination of every packet with this list, unless the flow cache handles the packet, so the
//! list must be fast to search.

use crate::ip::address::{AddressOptions, AddressState, InterfaceAddress};
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_units::{Duration, Instant};
use linerate_wire::IpCidr;

/// A change of an address because a lifetime has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressChange {
    /// The preferred lifetime of an address has ended.
    Deprecated,
    /// The valid lifetime of this address has ended, and the address was removed.
    Expired(InterfaceAddress),
}

/// The addresses of an interface.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// All addresses, in the order in which they were added.
    all: Vec<InterfaceAddress>,
    /// The addresses in use, which are preferred or deprecated. Invariant: the list contains
    /// exactly the usable addresses of `all`.
    in_use: Vec<IpCidr>,
}

impl Addresses {
    /// Returns the addresses in use.
    #[inline]
    pub(crate) fn in_use(&self) -> &[IpCidr] {
        &self.in_use
    }

    /// Returns all addresses.
    pub(crate) fn all(&self) -> &[InterfaceAddress] {
        &self.all
    }

    /// Returns the entry of an address, whatever its state is.
    pub(crate) fn get(&self, address: IpAddr) -> Option<&InterfaceAddress> {
        self.all.iter().find(|own| own.cidr.address() == address)
    }

    /// Adds an address. If the interface already has this address, renews its lifetimes, prefix and
    /// origin. Returns whether the address is new.
    pub(crate) fn insert(&mut self, added: InterfaceAddress) -> bool {
        let address = added.cidr.address();
        let known = self.all.iter_mut().find(|own| own.cidr.address() == address);
        let is_new = known.is_none();
        match known {
            Some(known) => {
                let state = if known.state.is_usable() { added.state } else { known.state };
                *known = InterfaceAddress { state, ..added };
            }
            None => self.all.push(added),
        }
        self.derive();
        is_new
    }

    /// Sets the times at which an address becomes deprecated and is removed. If the address is in
    /// use, its state becomes preferred or deprecated accordingly.
    pub(crate) fn renew(
        &mut self,
        now: Instant,
        address: IpAddr,
        preferred_until: Instant,
        valid_until: Instant,
    ) {
        let Some(own) = self.get(address).copied() else { return };
        let is_preferred = preferred_until > now;
        let state = match own.state {
            AddressState::Preferred | AddressState::Deprecated if is_preferred => {
                AddressState::Preferred
            }
            AddressState::Preferred | AddressState::Deprecated => AddressState::Deprecated,
            other => other,
        };
        self.insert(InterfaceAddress { preferred_until, valid_until, state, ..own });
    }

    /// Makes an address tentative, until duplicate address detection has finished.
    pub(crate) fn suspend(&mut self, address: IpAddr) {
        self.set_state(address, AddressState::Tentative);
    }

    /// Takes a tentative address into use, because duplicate address detection has found no other
    /// host with it.
    pub(crate) fn assign(&mut self, now: Instant, address: IpAddr) {
        let Some(own) = self.get(address) else { return };
        if own.state == AddressState::Tentative {
            let is_preferred = own.preferred_until > now;
            let state =
                if is_preferred { AddressState::Preferred } else { AddressState::Deprecated };
            self.set_state(address, state);
        }
    }

    /// Ends the use of an address, because another host has it.
    pub(crate) fn mark_duplicated(&mut self, address: IpAddr) {
        self.set_state(address, AddressState::Duplicated);
    }

    fn set_state(&mut self, address: IpAddr, state: AddressState) {
        if let Some(own) = self.all.iter_mut().find(|own| own.cidr.address() == address) {
            own.state = state;
            self.derive();
        }
    }

    /// Removes and returns an address, whatever its state is.
    pub(crate) fn remove(&mut self, address: IpAddr) -> Option<InterfaceAddress> {
        let place = self.all.iter().position(|own| own.cidr.address() == address)?;
        let removed = self.all.remove(place);
        self.derive();
        Some(removed)
    }

    /// Performs and returns the next change that is due at `now`, or returns `None` if no change is
    /// due.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<AddressChange> {
        if let Some(place) = self.all.iter().position(|own| own.valid_until <= now) {
            let expired = self.all.remove(place);
            self.derive();
            return Some(AddressChange::Expired(expired));
        }
        let is_due = |own: &&mut InterfaceAddress| {
            own.state == AddressState::Preferred && own.preferred_until <= now
        };
        let due = self.all.iter_mut().find(is_due)?;
        due.state = AddressState::Deprecated;
        Some(AddressChange::Deprecated)
    }

    /// Returns the time of the next change; [`Instant::NEVER`] if no lifetime ends.
    pub(crate) fn next_change(&self) -> Instant {
        let next = |own: &InterfaceAddress| match own.state {
            AddressState::Preferred => own.preferred_until.min(own.valid_until),
            _ => own.valid_until,
        };
        self.all.iter().map(next).min().unwrap_or(Instant::NEVER)
    }

    fn derive(&mut self) {
        let in_use = self.all.iter().filter(|own| own.state.is_usable());
        self.in_use = in_use.map(|own| own.cidr).collect();
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        let in_use = self.all.iter().filter(|own| own.state.is_usable()).map(|own| own.cidr);
        assert!(in_use.eq(self.in_use.iter().copied()), "addresses in use are usable");
        for (place, own) in self.all.iter().enumerate() {
            let is_same = |other: &InterfaceAddress| other.cidr.address() == own.cidr.address();
            assert_eq!(self.all.iter().position(is_same), Some(place), "addresses differ");
        }
    }
}

impl InterfaceAddress {
    /// Creates the entry of an address that is added at `now` with these options.
    pub(crate) fn added(now: Instant, cidr: IpCidr, options: &AddressOptions) -> Self {
        let end = |lifetime: Option<Duration>| lifetime.map_or(Instant::NEVER, |span| now + span);
        let valid_until = end(options.valid_lifetime);
        let preferred_until = end(options.preferred_lifetime).min(valid_until);
        let is_preferred = preferred_until > now;
        Self {
            cidr,
            origin: options.origin,
            state: if is_preferred { AddressState::Preferred } else { AddressState::Deprecated },
            preferred_until,
            valid_until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn cidr(text: &str) -> IpCidr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_deprecated_and_then_expires() {
        let mut addresses = Addresses::default();
        let options = AddressOptions {
            preferred_lifetime: Some(Duration::from_secs(10)),
            valid_lifetime: Some(Duration::from_secs(20)),
            ..AddressOptions::default()
        };
        let own = cidr("2001:db8::1/64");
        addresses.insert(InterfaceAddress::added(at(0), own, &options));
        assert_eq!((addresses.next_change(), addresses.expire(at(9))), (at(10), None));
        assert_eq!(addresses.expire(at(10)), Some(AddressChange::Deprecated));
        assert_eq!(addresses.in_use(), [own], "a deprecated address remains in use");
        assert_eq!((addresses.next_change(), addresses.expire(at(19))), (at(20), None));
        let expired = addresses.expire(at(20));
        assert!(matches!(expired, Some(AddressChange::Expired(gone)) if gone.cidr == own));
        assert_eq!((addresses.in_use(), addresses.next_change()), (&[][..], Instant::NEVER));
        addresses.check();
    }

    #[test]
    fn adding_a_known_address_renews_it() {
        let mut addresses = Addresses::default();
        let lease = |seconds| AddressOptions::lease(Duration::from_secs(seconds));
        let own = cidr("192.0.2.1/24");
        addresses.insert(InterfaceAddress::added(at(0), own, &lease(10)));
        addresses.insert(InterfaceAddress::added(at(5), own, &lease(10)));
        assert_eq!((addresses.all().len(), addresses.expire(at(10))), (1, None));
        assert_eq!(addresses.next_change(), at(15));
    }

    #[test]
    fn a_preferred_lifetime_ends_with_the_valid_one() {
        let options = AddressOptions {
            valid_lifetime: Some(Duration::from_secs(5)),
            ..AddressOptions::default()
        };
        let own = InterfaceAddress::added(at(1), cidr("192.0.2.1/24"), &options);
        assert_eq!((own.preferred_until, own.valid_until), (at(6), at(6)));
    }
}

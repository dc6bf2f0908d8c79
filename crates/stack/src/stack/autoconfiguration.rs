//! Stateless address autoconfiguration (RFC 4862 §5.5, RFC 8981): forms addresses from the prefixes
//! that routers advertise.

use crate::ip::address::{AddressOrigin, AddressState, InterfaceAddress};
use crate::ip::autoconfiguration::{Formed, Limits, RETRIES, regeneration_advance, valid_until};
use crate::stack::Stack;
use crate::stack::router_discovery::lifetime;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use linerate_units::{Duration, Instant};
use linerate_wire::{IpCidr, PrefixInformation};

/// The length in bits of a prefix from which addresses can be formed. The other 64 bits are the
/// interface identifier.
const PREFIX_LENGTH: u8 = 64;

/// The lifetimes of an advertised prefix; `None` stands for an infinite lifetime.
#[derive(Clone, Copy, Debug)]
struct Lifetimes {
    preferred: Option<Duration>,
    valid: Option<Duration>,
}

impl Lifetimes {
    fn preferred_until(self, now: Instant) -> Instant {
        self.preferred.map_or(Instant::NEVER, |lifetime| now + lifetime)
    }
}

impl Stack {
    /// Forms addresses from a prefix with the autonomous flag, or renews the addresses that were
    /// formed from this prefix before (RFC 4862 §5.5.3).
    pub(super) fn form_addresses(&mut self, now: Instant, prefix: &PrefixInformation) {
        // Prefixes with inconsistent lifetimes or an unusable length are ignored (RFC 4862 §5.5.3 c
        // and d).
        if prefix.preferred_lifetime > prefix.valid_lifetime || prefix.length != PREFIX_LENGTH {
            self.counted.neighbor_discovery.refused_prefixes += 1;
            return;
        }
        let lifetimes = Lifetimes {
            preferred: lifetime(prefix.preferred_lifetime),
            valid: lifetime(prefix.valid_lifetime),
        };
        let is_of_prefix =
            |formed: &Formed| network_of(formed.address) == network_of(prefix.prefix);
        let known =
            self.interface.discovery.formed.iter().filter(|formed| is_of_prefix(formed)).copied();
        let known: Vec<_> = known.collect();
        known.iter().for_each(|formed| self.renew_formed(now, formed, lifetimes));
        if !known.iter().any(|formed| formed.origin == AddressOrigin::Stable)
            && prefix.valid_lifetime > 0
        {
            self.form_stable(now, prefix.prefix, lifetimes);
        }
    }

    fn form_stable(&mut self, now: Instant, prefix: Ipv6Addr, lifetimes: Lifetimes) {
        let stable = |formed: &&Formed| formed.origin == AddressOrigin::Stable;
        let is_full =
            self.interface.discovery.formed.iter().filter(stable).count() >= self.limits.prefixes;
        if is_full {
            return self.count_refused_entry(true);
        }
        let address = self.interface.discovery.identifiers.stable(prefix, 0);
        let valid = lifetimes.valid.map_or(Instant::NEVER, |lifetime| now + lifetime);
        let ends = Limits { preferred_until: lifetimes.preferred_until(now), valid_until: valid };
        let formed = Formed {
            address,
            origin: AddressOrigin::Stable,
            duplicates: 0,
            limits: Limits::NONE,
            replace_at: Instant::NEVER,
        };
        self.add_formed(now, formed, ends);
        self.form_temporary(now, prefix, ends, 0);
    }

    /// Forms a temporary address from `prefix`, if temporary addresses are enabled. The address
    /// must not outlive `ends`, the end times of the stable address. `duplicates` is the number of
    /// earlier attempts that ended with a duplicate. Forms no address if it would have to be
    /// replaced at once, because its lifetime is too short (RFC 8981 §3.4).
    fn form_temporary(&mut self, now: Instant, prefix: Ipv6Addr, ends: Limits, duplicates: u8) {
        if !self.interface.discovery.config.is_some_and(|config| config.temporary_addresses) {
            return;
        }
        let limits =
            Limits::temporary(now, self.interface.discovery.identifiers.desynchronisation());
        let ends = Limits {
            preferred_until: ends.preferred_until.min(limits.preferred_until),
            valid_until: ends.valid_until.min(limits.valid_until),
        };
        let replace_at = ends.preferred_until - self.regeneration_advance();
        if replace_at <= now {
            return;
        }
        let address = self.interface.discovery.identifiers.temporary(prefix);
        let origin = AddressOrigin::Temporary;
        self.add_formed(now, Formed { address, origin, duplicates, limits, replace_at }, ends);
    }

    fn regeneration_advance(&self) -> Duration {
        regeneration_advance(
            self.interface.detections.transmits(),
            self.interface.detections.interval(),
        )
    }

    /// Adds a formed address to the current interface, unless the limit of addresses is reached or
    /// the interface already has the address.
    fn add_formed(&mut self, now: Instant, formed: Formed, ends: Limits) {
        let address = IpAddr::V6(formed.address);
        let is_full = self.addresses().len() >= self.limits.addresses;
        if is_full || self.interface.addresses.get(address).is_some() {
            return self.count_refused_entry(is_full);
        }
        let Some(cidr) = IpCidr::new(address, PREFIX_LENGTH) else { return };
        let is_preferred = ends.preferred_until > now;
        self.insert_address(InterfaceAddress {
            cidr,
            origin: formed.origin,
            state: if is_preferred { AddressState::Preferred } else { AddressState::Deprecated },
            preferred_until: ends.preferred_until,
            valid_until: ends.valid_until,
        });
        self.interface.discovery.formed.push(formed);
    }

    /// Renews the lifetimes of a formed address, after a router has advertised its prefix again.
    fn renew_formed(&mut self, now: Instant, formed: &Formed, lifetimes: Lifetimes) {
        let address = IpAddr::V6(formed.address);
        let Some(own) = self.interface.addresses.get(address).copied() else { return };
        let ends = Limits {
            preferred_until: lifetimes.preferred_until(now).min(formed.limits.preferred_until),
            valid_until: valid_until(now, own.valid_until, lifetimes.valid)
                .min(formed.limits.valid_until),
        };
        let before = own.state;
        self.interface.addresses.renew(now, address, ends.preferred_until, ends.valid_until);
        let advance = self.regeneration_advance();
        let replaced = |known: &&mut Formed| {
            known.address == formed.address && known.replace_at != Instant::NEVER
        };
        if let Some(known) = self.interface.discovery.formed.iter_mut().find(replaced) {
            known.replace_at = ends.preferred_until - advance;
        }
        if self.interface.addresses.get(address).is_some_and(|own| own.state != before) {
            self.handle_address_change();
        }
        self.schedule_address_changes();
    }

    /// Forms new temporary addresses to replace those that will soon be deprecated (RFC 8981 §3.5).
    pub(super) fn replace_temporary_addresses(&mut self, now: Instant) {
        let is_due = |formed: &&mut Formed| formed.replace_at <= now;
        while let Some(due) = self.interface.discovery.formed.iter_mut().find(is_due) {
            due.replace_at = Instant::NEVER;
            let prefix = due.address;
            if let Some(ends) = self.ends_of_prefix(prefix) {
                self.form_temporary(now, prefix, ends, 0);
            }
        }
    }

    /// Returns the times at which the stable address with this prefix is deprecated and removed;
    /// `None` if there is no such address.
    fn ends_of_prefix(&self, prefix: Ipv6Addr) -> Option<Limits> {
        let is_stable = |formed: &&Formed| {
            formed.origin == AddressOrigin::Stable
                && network_of(formed.address) == network_of(prefix)
        };
        let stable = self.interface.discovery.formed.iter().find(is_stable)?;
        let own = self.interface.addresses.get(stable.address.into())?;
        Some(Limits { preferred_until: own.preferred_until, valid_until: own.valid_until })
    }

    /// Replaces a formed address that another host also has. The new address has the same prefix
    /// and another interface identifier. After the maximum number of attempts, the address is not
    /// replaced (RFC 7217 §6, RFC 8981 §3.4).
    pub(super) fn replace_duplicate(&mut self, duplicate: IpAddr) {
        let is_same = |formed: &Formed| IpAddr::V6(formed.address) == duplicate;
        let Some(place) = self.interface.discovery.formed.iter().position(is_same) else { return };
        let formed = self.interface.discovery.formed[place];
        let duplicates = formed.duplicates + 1;
        if duplicates > RETRIES {
            return;
        }
        self.interface.discovery.formed.remove(place);
        let now = self.now;
        let Some(own) = self.interface.addresses.remove(duplicate) else { return };
        let ends = Limits { preferred_until: own.preferred_until, valid_until: own.valid_until };
        if formed.origin == AddressOrigin::Temporary {
            self.form_temporary(now, formed.address, ends, duplicates);
        } else {
            let address = self.interface.discovery.identifiers.stable(formed.address, duplicates);
            self.add_formed(now, Formed { address, duplicates, ..formed }, ends);
        }
        self.schedule_discovery();
    }
}

/// Returns the first 64 bits of an address, which are its prefix.
const fn network_of(address: Ipv6Addr) -> u128 {
    address.to_bits() >> 64
}

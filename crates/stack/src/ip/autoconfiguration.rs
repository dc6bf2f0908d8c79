//! Stateless address autoconfiguration: interface identifiers, and the lifetimes of addresses that
//! are formed from advertised prefixes (RFC 4862 §5.5, RFC 7217, RFC 8981).

use crate::ip::address::AddressOrigin;
use crate::keys::{Draws, Keys};
use core::fmt;
use core::hash::Hasher;
use core::net::Ipv6Addr;
use linerate_units::{Duration, Instant};
use linerate_wire::MacAddress;
use siphasher::sip::SipHasher24;

/// Maximum number of times that the host forms another address in a prefix because the previous
/// address was a duplicate: IDGEN_RETRIES of RFC 7217 §7, TEMP_IDGEN_RETRIES of RFC 8981 §3.8.
pub(crate) const RETRIES: u8 = 3;
/// Maximum preferred lifetime of a temporary address: TEMP_PREFERRED_LIFETIME of RFC 8981 §3.8.
const TEMPORARY_PREFERRED: Duration = Duration::from_secs(86_400);
/// Maximum valid lifetime of a temporary address: TEMP_VALID_LIFETIME of RFC 8981 §3.8.
const TEMPORARY_VALID: Duration = Duration::from_secs(2 * 86_400);
/// Maximum of the random time that shortens the preferred lifetime of a temporary address:
/// MAX_DESYNC_FACTOR of RFC 8981 §3.8, which is 0.4 × TEMP_PREFERRED_LIFETIME.
const MAX_DESYNC: Duration = Duration::from_secs(86_400 * 2 / 5);
/// The remaining lifetime below which an unauthenticated advertisement cannot shorten the lifetime
/// of an address (RFC 4862 §5.5.3 e).
const TWO_HOURS: Duration = Duration::from_secs(7_200);

/// The options of a host that takes addresses and routes from the routers on its link.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Autoconfiguration {
    /// Whether the host forms temporary addresses in addition to stable addresses. If so,
    /// connections that the host opens have a temporary source address if possible (RFC 8981).
    pub temporary_addresses: bool,
    /// The secret key of stable interface identifiers (RFC 7217 §5). If the secret and the MAC
    /// address do not change, the host gets the same address in a network after each start. With
    /// `None`, the secret is derived from the seed of the host.
    pub secret: Option<[u8; 16]>,
}

impl Autoconfiguration {
    /// Options for stable addresses only. The secret is derived from the seed of the host.
    pub const STABLE: Self = Self { temporary_addresses: false, secret: None };

    /// Enables temporary addresses.
    #[must_use]
    pub const fn with_temporary_addresses(self) -> Self {
        Self { temporary_addresses: true, ..self }
    }

    /// Sets the secret key of stable interface identifiers.
    #[must_use]
    pub const fn with_secret(self, secret: [u8; 16]) -> Self {
        Self { secret: Some(secret), ..self }
    }
}

/// Omits the secret from debug output.
impl fmt::Debug for Autoconfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Autoconfiguration")
            .field("temporary_addresses", &self.temporary_addresses)
            .finish_non_exhaustive()
    }
}

/// The generator of interface identifiers.
#[derive(Debug)]
pub(crate) struct Identifiers {
    stable: SipHasher24,
    mac: MacAddress,
    draws: Draws,
}

impl Identifiers {
    pub(crate) fn new(keys: &Keys, secret: Option<[u8; 16]>, mac: MacAddress) -> Self {
        let seeded = || keys.visible("stable identifiers");
        let stable = secret.map_or_else(seeded, |secret| SipHasher24::new_with_key(&secret));
        Self { stable, mac, draws: Draws::new(keys, "temporary identifiers") }
    }

    /// Returns the stable address in the 64-bit prefix `prefix`. The interface identifier is
    /// F(Prefix, Net_Iface, Network_ID, DAD_Counter, secret_key) of RFC 7217 §5. Net_Iface is the
    /// MAC address, and the optional Network_ID is omitted. F is SipHash-2-4, whose output is
    /// unpredictable without the key.
    pub(crate) fn stable(&self, prefix: Ipv6Addr, dad_counter: u8) -> Ipv6Addr {
        let candidates = (0..=u8::MAX).map(|attempt| {
            let mut hasher = self.stable;
            hasher.write(&prefix.octets()[..8]);
            hasher.write(&self.mac.octets());
            hasher.write(&[dad_counter, attempt]);
            hasher.finish()
        });
        with_identifier(prefix, candidates)
    }

    /// Draws a random temporary address in the 64-bit prefix `prefix` (RFC 8981 §3.3.1).
    pub(crate) fn temporary(&mut self, prefix: Ipv6Addr) -> Ipv6Addr {
        let draws = &mut self.draws;
        with_identifier(prefix, core::iter::repeat_with(|| draws.number()).take(256))
    }

    /// Draws the DESYNC_FACTOR of a temporary address (RFC 8981 §3.8), so that not all hosts change
    /// their addresses at once.
    pub(crate) fn desynchronisation(&mut self) -> Duration {
        self.draws.below(MAX_DESYNC)
    }
}

/// Returns the address in the 64-bit prefix `prefix` with the first candidate identifier that is
/// not reserved.
fn with_identifier(prefix: Ipv6Addr, mut candidates: impl Iterator<Item = u64>) -> Ipv6Addr {
    let identifier = candidates.find(|&identifier| !is_reserved(identifier)).unwrap_or(1);
    let network = prefix.to_bits() >> 64 << 64;
    Ipv6Addr::from_bits(network | u128::from(identifier))
}

/// Is this the interface identifier of the subnet-router anycast address, or of another reserved
/// anycast address (RFC 5453)?
const fn is_reserved(identifier: u64) -> bool {
    identifier == 0 || (identifier >= 0xfdff_ffff_ffff_ff80 && identifier <= 0xfdff_ffff_ffff_ffff)
}

/// Returns the new end of the valid lifetime of an address, after its prefix was advertised with
/// the valid lifetime `advertised` (`None` means infinity). `known` is the previous end. An
/// unauthenticated advertisement cannot shorten the remaining lifetime below two hours (RFC 4862
/// §5.5.3 e).
pub(crate) fn valid_until(now: Instant, known: Instant, advertised: Option<Duration>) -> Instant {
    let wanted = advertised.map_or(Instant::NEVER, |lifetime| now + lifetime);
    if wanted > known || wanted > now + TWO_HOURS { wanted } else { known.min(now + TWO_HOURS) }
}

/// The additional state of an address that was formed from an advertised prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Formed {
    pub(crate) address: Ipv6Addr,
    pub(crate) origin: AddressOrigin,
    /// Number of addresses of this prefix that were formed before this address and were duplicates
    /// (DAD_Counter of RFC 7217).
    pub(crate) duplicates: u8,
    /// The latest times at which a temporary address is deprecated and removed.
    pub(crate) limits: Limits,
    /// The time at which the next temporary address is formed to replace this address;
    /// [`Instant::NEVER`] if the next address was already formed, or this address is not temporary.
    pub(crate) replace_at: Instant,
}

/// Upper bounds of the times at which an address becomes deprecated and is removed. They apply
/// whatever lifetimes routers advertise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) preferred_until: Instant,
    pub(crate) valid_until: Instant,
}

impl Limits {
    pub(crate) const NONE: Self =
        Self { preferred_until: Instant::NEVER, valid_until: Instant::NEVER };

    /// Returns the limits of a temporary address that is created at `now` (RFC 8981 §3.4).
    pub(crate) fn temporary(now: Instant, desynchronisation: Duration) -> Self {
        Self {
            preferred_until: now + TEMPORARY_PREFERRED - desynchronisation,
            valid_until: now + TEMPORARY_VALID,
        }
    }
}

/// Returns how long before the deprecation of a temporary address the next temporary address is
/// formed: REGEN_ADVANCE of RFC 8981 §3.8.
pub(crate) fn regeneration_advance(dad_transmits: u8, interval: Duration) -> Duration {
    Duration::from_secs(2) + interval * u64::from(RETRIES) * u64::from(dad_transmits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn prefix(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn identifiers(seed: u8, secret: Option<[u8; 16]>) -> Identifiers {
        Identifiers::new(&Keys::new([seed; 32]), secret, MAC)
    }

    /// RFC 7217 §5: the identifier is a function of the prefix, the interface, the number of
    /// duplicates and the secret.
    #[test]
    fn a_stable_identifier_depends_on_prefix_secret_interface_and_duplicates_only() {
        let (one, other) = (prefix("2001:db8:1::"), prefix("2001:db8:2::"));
        let first = identifiers(1, Some([7; 16]));
        let address = first.stable(one, 0);
        assert_eq!(address.segments()[..4], one.segments()[..4]);
        assert_eq!(identifiers(2, Some([7; 16])).stable(one, 0), address, "not on the seed");
        let differing = [
            first.stable(other, 0),
            first.stable(one, 1),
            identifiers(1, Some([8; 16])).stable(one, 0),
            identifiers(1, None).stable(one, 0),
            Identifiers { mac: MacAddress::new([2; 6]), ..identifiers(1, Some([7; 16])) }
                .stable(one, 0),
        ];
        for differing in differing {
            assert_ne!(differing.to_bits() << 64, address.to_bits() << 64);
        }
    }

    #[test]
    fn temporary_identifiers_differ_each_time() {
        let mut identifiers = identifiers(1, None);
        let prefix = prefix("2001:db8::");
        assert_ne!(identifiers.temporary(prefix), identifiers.temporary(prefix));
    }

    #[test]
    fn reserved_identifiers_are_not_used() {
        let reserved = [0, 0xfdff_ffff_ffff_ff80, 0xfdff_ffff_ffff_ffff];
        let address =
            with_identifier(prefix("2001:db8::"), reserved.into_iter().chain([0xfe00 << 48]));
        assert_eq!(address, prefix("2001:db8::fe00:0:0:0"));
    }

    /// RFC 4862 §5.5.3 e: an unauthenticated advertisement cannot shorten the remaining lifetime of
    /// an address below two hours. The comments below name the three cases of the RFC.
    #[test]
    fn an_advertisement_cannot_end_an_address_within_two_hours() {
        let now = at(1_000);
        let span = |seconds| Some(Duration::from_secs(seconds));
        for (remaining, advertised, expected) in [
            // Case 1: an advertised lifetime that exceeds two hours or the remaining lifetime is
            // adopted.
            (10_000, span(7_201), 7_201),
            (100, span(200), 200),
            // Case 2: a remaining lifetime of at most two hours is not shortened.
            (7_200, span(60), 7_200),
            (100, span(0), 100),
            // Case 3: a longer remaining lifetime than two hours is shortened to two hours.
            (10_000, span(60), 7_200),
            (10_000, span(7_200), 7_200),
        ] {
            let known = now + Duration::from_secs(remaining);
            let until = valid_until(now, known, advertised);
            assert_eq!(until, now + Duration::from_secs(expected), "{remaining} {advertised:?}");
        }
        assert_eq!(valid_until(now, at(2_000), None), Instant::NEVER);
        assert_eq!(valid_until(now, Instant::NEVER, span(60)), now + TWO_HOURS);
    }

    #[test]
    fn a_temporary_address_lasts_about_a_day_and_at_most_two() {
        let mut identifiers = identifiers(1, None);
        for _ in 0..20 {
            let limits = Limits::temporary(at(0), identifiers.desynchronisation());
            assert!(limits.preferred_until <= at(86_400));
            assert!(limits.preferred_until >= at(86_400 * 3 / 5));
            assert_eq!(limits.valid_until, at(172_800));
        }
    }
}

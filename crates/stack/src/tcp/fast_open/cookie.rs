//! The Fast Open cookies of a server (RFC 7413 §4.1.2). A cookie is a keyed hash of the addresses
//! of client and server. A valid cookie shows that the client has recently received packets at its
//! address.
//!
//! As in Linux, the hash is SipHash-2-4 over the addresses of client and server. The cookie
//! contains the eight bytes of the hash in little-endian order. Hosts with equal keys, including
//! Linux hosts, accept each other's cookies.

use crate::demux::flow::Hosts;
use crate::keys::Keys;
use linerate_units::{Duration, Instant};
use linerate_wire::FastOpenCookie;
use siphasher::sip::SipHasher24;

/// Time after which a generated key is replaced. For another such period, cookies that were made
/// with the replaced key are still valid.
pub(crate) const PERIOD: Duration = Duration::from_secs(3_600);

/// Fast Open keys that the application sets, because several hosts share one address (RFC 7413
/// §6.3.4) or because the application has its own rules for changing keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FastOpenKeys {
    /// The key of new cookies.
    pub current: [u8; 16],
    /// The previous key, if any. The host accepts cookies of this key, and replaces them by cookies
    /// of the current key.
    pub previous: Option<[u8; 16]>,
}

/// Omits the keys from debug output.
impl core::fmt::Debug for FastOpenKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FastOpenKeys(..)")
    }
}

/// The result of validating a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CookieValidity {
    /// The cookie was made with the current key.
    Current,
    /// The cookie was made with the previous key.
    Previous,
    /// The cookie has expired, was forged, or was made for another client.
    Invalid,
}

/// The keys of Fast Open cookies, by which a server makes and validates cookies.
#[derive(Debug)]
pub(crate) struct FastOpenCookies {
    /// The secret keyed hash from which the key of each period is derived.
    secrets: SipHasher24,
    chosen: Option<FastOpenKeys>,
}

impl FastOpenCookies {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self { secrets: keys.visible("Fast Open cookies"), chosen: None }
    }

    /// Sets the keys of the application. `None` selects generated keys, which are replaced each
    /// period.
    pub(crate) const fn set_keys(&mut self, keys: Option<FastOpenKeys>) {
        self.chosen = keys;
    }

    /// Returns the cookie of a client (`GetCookie` in RFC 7413).
    pub(crate) fn make(&self, now: Instant, hosts: &Hosts) -> FastOpenCookie {
        cookie_for_key(&self.current(now), hosts)
    }

    /// Checks the cookie of a client (`IsCookieValid` in RFC 7413).
    pub(crate) fn validate(
        &self,
        now: Instant,
        hosts: &Hosts,
        cookie: &FastOpenCookie,
    ) -> CookieValidity {
        let is_made_with = |key: &SipHasher24| cookie_for_key(key, hosts) == cookie.carried(false);
        if is_made_with(&self.current(now)) {
            CookieValidity::Current
        } else if self.previous(now).is_some_and(|key| is_made_with(&key)) {
            CookieValidity::Previous
        } else {
            CookieValidity::Invalid
        }
    }

    fn current(&self, now: Instant) -> SipHasher24 {
        match &self.chosen {
            Some(keys) => SipHasher24::new_with_key(&keys.current),
            None => self.derive_key(period_at(now)),
        }
    }

    fn previous(&self, now: Instant) -> Option<SipHasher24> {
        match &self.chosen {
            Some(keys) => keys.previous.as_ref().map(SipHasher24::new_with_key),
            None => period_at(now).checked_sub(1).map(|period| self.derive_key(period)),
        }
    }

    fn derive_key(&self, period: u64) -> SipHasher24 {
        let half = |side: u8| {
            let [a, b, c, d, e, f, g, h] = period.to_be_bytes();
            self.secrets.hash(&[a, b, c, d, e, f, g, h, side])
        };
        SipHasher24::new_with_keys(half(0), half(1))
    }
}

fn period_at(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos()
}

fn cookie_for_key(key: &SipHasher24, hosts: &Hosts) -> FastOpenCookie {
    FastOpenCookie::new(&key.hash(hosts.bytes()).to_le_bytes()).unwrap_or(FastOpenCookie::REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    fn hosts(server: Ipv4Addr, client: Ipv4Addr) -> Hosts {
        Hosts::new(server.into(), client.into())
    }

    fn fast_open_cookies(seed: u8) -> FastOpenCookies {
        FastOpenCookies::new(&Keys::new([seed; 32]))
    }

    #[test]
    fn a_cookie_is_valid_for_its_client_and_server_only() {
        let (fast_open_cookies, other, now) =
            (fast_open_cookies(1), fast_open_cookies(2), Instant::ZERO);
        let cookie = fast_open_cookies.make(now, &hosts(SERVER, CLIENT));
        assert_eq!(cookie.as_bytes().len(), 8);
        assert_eq!(
            fast_open_cookies.validate(now, &hosts(SERVER, CLIENT), &cookie),
            CookieValidity::Current
        );
        assert_eq!(
            fast_open_cookies.validate(now, &hosts(CLIENT, SERVER), &cookie),
            CookieValidity::Invalid
        );
        assert_eq!(
            fast_open_cookies.validate(now, &hosts(SERVER, SERVER), &cookie),
            CookieValidity::Invalid
        );
        assert_eq!(other.validate(now, &hosts(SERVER, CLIENT), &cookie), CookieValidity::Invalid);
        for length in [4, 6, 10, 16] {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(cookie.as_bytes());
            let other = FastOpenCookie::new(&bytes[..length]).unwrap();
            assert_eq!(
                fast_open_cookies.validate(now, &hosts(SERVER, CLIENT), &other),
                CookieValidity::Invalid,
                "{length} bytes"
            );
        }
    }

    #[test]
    fn a_cookie_is_valid_in_its_period_and_the_next() {
        let fast_open_cookies = fast_open_cookies(1);
        let made = Instant::ZERO + PERIOD * 7;
        let cookie = fast_open_cookies.make(made, &hosts(SERVER, CLIENT));
        let validity = |periods| {
            fast_open_cookies.validate(
                Instant::ZERO + PERIOD * periods,
                &hosts(SERVER, CLIENT),
                &cookie,
            )
        };
        assert_eq!(
            [6, 7, 8, 9].map(validity),
            [
                CookieValidity::Invalid,
                CookieValidity::Current,
                CookieValidity::Previous,
                CookieValidity::Invalid
            ]
        );
    }

    #[test]
    fn keys_of_the_application_do_not_expire() {
        let (mut fast_open_cookies, now) = (fast_open_cookies(1), Instant::ZERO);
        fast_open_cookies.set_keys(Some(FastOpenKeys { current: [1; 16], previous: None }));
        let cookie = fast_open_cookies.make(now, &hosts(SERVER, CLIENT));
        let later = now + PERIOD * 100;
        assert_eq!(
            fast_open_cookies.validate(later, &hosts(SERVER, CLIENT), &cookie),
            CookieValidity::Current
        );
        fast_open_cookies
            .set_keys(Some(FastOpenKeys { current: [2; 16], previous: Some([1; 16]) }));
        assert_eq!(
            fast_open_cookies.validate(later, &hosts(SERVER, CLIENT), &cookie),
            CookieValidity::Previous
        );
        fast_open_cookies
            .set_keys(Some(FastOpenKeys { current: [3; 16], previous: Some([2; 16]) }));
        assert_eq!(
            fast_open_cookies.validate(later, &hosts(SERVER, CLIENT), &cookie),
            CookieValidity::Invalid
        );
    }

    /// The expected cookie is the cookie that Linux at 192.168.0.1 sends to 192.0.2.1, with
    /// `tcp_fastopen_key` set to zeros.
    #[test]
    fn cookies_equal_those_of_linux_with_the_same_key() {
        let mut fast_open_cookies = fast_open_cookies(1);
        fast_open_cookies.set_keys(Some(FastOpenKeys { current: [0; 16], previous: None }));
        let server = Ipv4Addr::new(192, 168, 0, 1);
        let cookie =
            fast_open_cookies.make(Instant::ZERO, &hosts(server, Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(alloc::format!("{cookie}"), "b7c12350a90dc8f5");
    }
}

//! The cookies that a server gives (RFC 7413 §4.1.2): a keyed hash of both addresses, so that whoever brings
//! one has received what was sent to his address, not long ago.
//!
//! The hash is SipHash-2-4 over the client's address and the server's, its eight bytes the lowest first, as
//! in Linux: hosts that share a key, of either kind, know each other's cookies.

use crate::keys::Keys;
use core::net::Ipv4Addr;
use linerate_units::{Duration, Instant};
use linerate_wire::FastOpenCookie;
use siphasher::sip::SipHasher24;

/// How long cookies are made with one key, unless the application has set one. They are taken in the next
/// period, too.
pub(crate) const PERIOD: Duration = Duration::from_secs(3_600);

/// Keys that an application has chosen, because several hosts share them behind one address (RFC 7413
/// §6.3.4), or because it changes them itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FastOpenKeys {
    /// The key with which cookies are made.
    pub current: [u8; 16],
    /// The one before it, whose cookies are still taken, and answered with new ones.
    pub previous: Option<[u8; 16]>,
}

/// Secrets are not printed.
impl core::fmt::Debug for FastOpenKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FastOpenKeys(..)")
    }
}

/// What a cookie is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// It is the one that its client would be given now.
    Current,
    /// It was made with the key before that.
    Previous,
    /// It is none of ours, or too old, or somebody else's.
    Nothing,
}

/// Makes cookies, and knows its own again.
#[derive(Debug)]
pub(crate) struct FastOpenMint {
    /// What the keys of the periods are drawn from.
    secrets: SipHasher24,
    chosen: Option<FastOpenKeys>,
}

impl FastOpenMint {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self { secrets: keys.visible("Fast Open cookies"), chosen: None }
    }

    /// Uses these keys from now on; `None` for keys of its own, another one each period.
    pub(crate) const fn choose(&mut self, keys: Option<FastOpenKeys>) {
        self.chosen = keys;
    }

    /// `GetCookie`: the cookie of a client.
    pub(crate) fn make(&self, now: Instant, server: Ipv4Addr, client: Ipv4Addr) -> FastOpenCookie {
        made_with(&self.current(now), server, client)
    }

    /// `IsCookieValid`: what the cookie that a client brings is worth.
    pub(crate) fn judge(
        &self,
        now: Instant,
        server: Ipv4Addr,
        client: Ipv4Addr,
        cookie: &FastOpenCookie,
    ) -> Worth {
        let is_of = |key: &SipHasher24| made_with(key, server, client) == cookie.carried(false);
        if is_of(&self.current(now)) {
            Worth::Current
        } else if self.previous(now).is_some_and(|key| is_of(&key)) {
            Worth::Previous
        } else {
            Worth::Nothing
        }
    }

    fn current(&self, now: Instant) -> SipHasher24 {
        match &self.chosen {
            Some(keys) => SipHasher24::new_with_key(&keys.current),
            None => self.drawn(period_at(now)),
        }
    }

    fn previous(&self, now: Instant) -> Option<SipHasher24> {
        match &self.chosen {
            Some(keys) => keys.previous.as_ref().map(SipHasher24::new_with_key),
            None => period_at(now).checked_sub(1).map(|period| self.drawn(period)),
        }
    }

    fn drawn(&self, period: u64) -> SipHasher24 {
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

fn made_with(key: &SipHasher24, server: Ipv4Addr, client: Ipv4Addr) -> FastOpenCookie {
    let mut ends = [0; 8];
    ends[..4].copy_from_slice(&client.octets());
    ends[4..].copy_from_slice(&server.octets());
    FastOpenCookie::new(&key.hash(&ends).to_le_bytes()).unwrap_or(FastOpenCookie::REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    fn mint(seed: u8) -> FastOpenMint {
        FastOpenMint::new(&Keys::new([seed; 32]))
    }

    #[test]
    fn a_cookie_is_good_for_its_client_and_its_server_only() {
        let (mint, other, now) = (mint(1), mint(2), Instant::ZERO);
        let cookie = mint.make(now, SERVER, CLIENT);
        assert_eq!(cookie.as_bytes().len(), 8);
        assert_eq!(mint.judge(now, SERVER, CLIENT, &cookie), Worth::Current);
        assert_eq!(mint.judge(now, CLIENT, SERVER, &cookie), Worth::Nothing);
        assert_eq!(mint.judge(now, SERVER, SERVER, &cookie), Worth::Nothing);
        assert_eq!(other.judge(now, SERVER, CLIENT, &cookie), Worth::Nothing);
        for length in [4, 6, 10, 16] {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(cookie.as_bytes());
            let other = FastOpenCookie::new(&bytes[..length]).unwrap();
            assert_eq!(
                mint.judge(now, SERVER, CLIENT, &other),
                Worth::Nothing,
                "{length} bytes of it"
            );
        }
    }

    #[test]
    fn a_cookie_is_good_in_its_period_and_the_next() {
        let mint = mint(1);
        let made = Instant::ZERO + PERIOD * 7;
        let cookie = mint.make(made, SERVER, CLIENT);
        let worth = |periods| mint.judge(Instant::ZERO + PERIOD * periods, SERVER, CLIENT, &cookie);
        assert_eq!(
            [6, 7, 8, 9].map(worth),
            [Worth::Nothing, Worth::Current, Worth::Previous, Worth::Nothing]
        );
    }

    #[test]
    fn chosen_keys_do_not_change_by_themselves() {
        let (mut mint, now) = (mint(1), Instant::ZERO);
        mint.choose(Some(FastOpenKeys { current: [1; 16], previous: None }));
        let cookie = mint.make(now, SERVER, CLIENT);
        let later = now + PERIOD * 100;
        assert_eq!(mint.judge(later, SERVER, CLIENT, &cookie), Worth::Current);
        mint.choose(Some(FastOpenKeys { current: [2; 16], previous: Some([1; 16]) }));
        assert_eq!(mint.judge(later, SERVER, CLIENT, &cookie), Worth::Previous);
        mint.choose(Some(FastOpenKeys { current: [3; 16], previous: Some([2; 16]) }));
        assert_eq!(mint.judge(later, SERVER, CLIENT, &cookie), Worth::Nothing);
    }

    /// What Linux gives 192.0.2.1 for 192.168.0.1 with `tcp_fastopen_key` at all zeros.
    #[test]
    fn a_key_of_linux_makes_the_cookie_of_linux() {
        let mut mint = mint(1);
        mint.choose(Some(FastOpenKeys { current: [0; 16], previous: None }));
        let server = Ipv4Addr::new(192, 168, 0, 1);
        let cookie = mint.make(Instant::ZERO, server, Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(alloc::format!("{cookie}"), "b7c12350a90dc8f5");
    }
}

//! The servers that a client has tried Fast Open with: their cookies, by address, and for each port that it
//! came to nothing at, how long it is left alone (RFC 7413 §4.1.3).

use super::recent::Recent;
use crate::demux::Flow;
use crate::keys::Keys;
use core::net::SocketAddrV4;
use linerate_tcp::{FastOpenLesson, FastOpenOffer};
use linerate_units::{Duration, Instant};
use linerate_wire::FastOpenCookie;

/// How long a port is left alone that has refused once.
const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// Each refusal in a row doubles the pause, up to so many times: to nearly three days.
const MOST_DOUBLINGS: u32 = 12;

/// What a server has given.
#[derive(Clone, Copy, Debug)]
struct Server {
    cookie: FastOpenCookie,
    mss: Option<u16>,
}

/// What a port has refused.
#[derive(Clone, Copy, Debug)]
struct Refusals {
    in_a_row: u32,
    paused_until: Instant,
}

/// Servers of Fast Open, and ports that will have none of it.
#[derive(Debug)]
pub(crate) struct FastOpenCache {
    /// A cookie is for one address of ours and one of the server's, whatever the ports.
    servers: Recent<Server>,
    /// It is allowed port by port, so it is refused that way too, or by something on the way there.
    refusals: Recent<Refusals>,
}

impl FastOpenCache {
    /// Room for so many servers, and as many ports that have refused.
    pub(crate) fn new(limit: usize, keys: &Keys) -> Self {
        Self {
            servers: Recent::new(limit, keys.table("Fast Open servers")),
            refusals: Recent::new(limit, keys.table("Fast Open refusals")),
        }
    }

    /// What to try with a connection from `local` to `peer`; `None` for nothing, for now.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        local: SocketAddrV4,
        peer: SocketAddrV4,
    ) -> Option<FastOpenOffer> {
        let is_paused = |refusals: &mut Refusals| now < refusals.paused_until;
        if self.refusals.get(port_of(local, peer)).is_some_and(is_paused) {
            return None;
        }
        Some(match self.servers.get(host_of(local, peer)) {
            Some(&mut Server { cookie, mss }) => FastOpenOffer::Data { cookie, mss },
            None => FastOpenOffer::Request,
        })
    }

    /// Takes in what a try has shown; how many servers had to be forgotten for it.
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        local: SocketAddrV4,
        peer: SocketAddrV4,
        lesson: &FastOpenLesson,
    ) -> u64 {
        let (host, port) = (host_of(local, peer), port_of(local, peer));
        let mut forgotten = false;
        if let Some(cookie) = lesson.cookie {
            forgotten = self.servers.put(host, Server { cookie, mss: lesson.mss });
        } else if let Some(known) = self.servers.get(host) {
            known.mss = lesson.mss.or(known.mss);
        }
        if lesson.refused {
            let in_a_row = self.refusals.get(port).map_or(0, |refusals| refusals.in_a_row);
            let paused_until = now + FIRST_PAUSE * (1 << in_a_row.min(MOST_DOUBLINGS));
            let refusals = Refusals { in_a_row: in_a_row.saturating_add(1), paused_until };
            forgotten |= self.refusals.put(port, refusals);
        } else if let Some(refusals) = self.refusals.get(port) {
            refusals.in_a_row = 0;
        }
        u64::from(forgotten)
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        self.servers.check();
        self.refusals.check();
    }
}

/// Both addresses.
fn host_of(local: SocketAddrV4, peer: SocketAddrV4) -> Flow {
    Flow::new(SocketAddrV4::new(*local.ip(), 0), SocketAddrV4::new(*peer.ip(), 0))
}

/// Both addresses and the server's port; ours is another one each time.
fn port_of(local: SocketAddrV4, peer: SocketAddrV4) -> Flow {
    Flow::new(SocketAddrV4::new(*local.ip(), 0), peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const NEWS: FastOpenLesson =
        FastOpenLesson { cookie: None, mss: None, accepted: false, refused: false };

    fn at(address: u8, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, address), port)
    }

    fn cache() -> FastOpenCache {
        FastOpenCache::new(4, &Keys::new([1; 32]))
    }

    fn cookie(byte: u8) -> Option<FastOpenCookie> {
        FastOpenCookie::new(&[byte; 8])
    }

    #[test]
    fn a_cookie_is_for_both_addresses_and_every_port() {
        let (mut cache, now) = (cache(), Instant::ZERO);
        assert_eq!(cache.offer(now, at(1, 5_000), at(9, 80)), Some(FastOpenOffer::Request));
        let news = FastOpenLesson { cookie: cookie(7), mss: Some(1_400), ..NEWS };
        cache.learn(now, at(1, 5_000), at(9, 80), &news);
        let known = Some(FastOpenOffer::Data { cookie: cookie(7).unwrap(), mss: Some(1_400) });
        assert_eq!(cache.offer(now, at(1, 5_001), at(9, 80)), known);
        assert_eq!(cache.offer(now, at(1, 5_001), at(9, 443)), known);
        assert_eq!(cache.offer(now, at(2, 5_000), at(9, 80)), Some(FastOpenOffer::Request));
        assert_eq!(cache.offer(now, at(1, 5_000), at(8, 80)), Some(FastOpenOffer::Request));
    }

    #[test]
    fn the_latest_cookie_and_segment_size_count() {
        let (mut cache, now) = (cache(), Instant::ZERO);
        for (byte, mss) in [(1, Some(1_400)), (2, Some(1_300)), (3, None)] {
            let news = FastOpenLesson { cookie: cookie(byte), mss, ..NEWS };
            cache.learn(now, at(1, 1), at(9, 80), &news);
        }
        let known = |mss| Some(FastOpenOffer::Data { cookie: cookie(3).unwrap(), mss });
        assert_eq!(cache.offer(now, at(1, 1), at(9, 80)), known(None));
        cache.learn(
            now,
            at(1, 1),
            at(9, 80),
            &FastOpenLesson { mss: Some(900), accepted: true, ..NEWS },
        );
        assert_eq!(cache.offer(now, at(1, 1), at(9, 80)), known(Some(900)));
        // One that says nothing of it this time takes what it took.
        cache.learn(now, at(1, 1), at(9, 80), &FastOpenLesson { accepted: true, ..NEWS });
        assert_eq!(cache.offer(now, at(1, 1), at(9, 80)), known(Some(900)));
    }

    #[test]
    fn a_port_that_refuses_is_left_alone_for_longer_each_time() {
        let mut cache = cache();
        let refused = FastOpenLesson { refused: true, ..NEWS };
        let mut now = Instant::ZERO;
        for minutes in [1, 2, 4, 8] {
            cache.learn(now, at(1, 1), at(9, 80), &refused);
            let pause = FIRST_PAUSE * minutes;
            assert_eq!(cache.offer(now, at(1, 2), at(9, 80)), None);
            assert!(
                cache.offer(now, at(1, 2), at(9, 443)).is_some(),
                "another port is another matter"
            );
            assert_eq!(
                cache.offer(now + (pause - Duration::from_nanos(1)), at(1, 2), at(9, 80)),
                None
            );
            now += pause;
            assert!(cache.offer(now, at(1, 2), at(9, 80)).is_some());
        }
        // Once is enough to be trusted again.
        cache.learn(now, at(1, 1), at(9, 80), &FastOpenLesson { accepted: true, ..NEWS });
        cache.learn(now, at(1, 1), at(9, 80), &refused);
        assert!(cache.offer(now + FIRST_PAUSE, at(1, 2), at(9, 80)).is_some());
    }

    #[test]
    fn however_often_a_port_refuses_the_pause_ends() {
        let (mut cache, now) = (cache(), Instant::ZERO);
        for _ in 0..100 {
            cache.learn(now, at(1, 1), at(9, 80), &FastOpenLesson { refused: true, ..NEWS });
        }
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!(cache.offer(now + day * 2, at(1, 2), at(9, 80)), None);
        assert!(cache.offer(now + day * 3, at(1, 2), at(9, 80)).is_some());
    }

    #[test]
    fn the_server_that_was_not_asked_for_longest_makes_room() {
        let (mut cache, now) = (cache(), Instant::ZERO);
        let news = FastOpenLesson { cookie: cookie(7), ..NEWS };
        let forgotten: u64 =
            (0..4).map(|server| cache.learn(now, at(1, 1), at(server, 80), &news)).sum();
        assert_eq!(forgotten, 0);
        let is_known = |cache: &mut FastOpenCache, server| {
            matches!(cache.offer(now, at(1, 1), at(server, 80)), Some(FastOpenOffer::Data { .. }))
        };
        assert!(is_known(&mut cache, 0));
        assert_eq!(cache.learn(now, at(1, 1), at(4, 80), &news), 1);
        cache.check();
        assert!(!is_known(&mut cache, 1));
        assert!([0, 2, 3, 4].into_iter().all(|server| is_known(&mut cache, server)));
        // Of ports that refuse there are not more, either.
        let refused = FastOpenLesson { refused: true, ..NEWS };
        let forgotten =
            [1, 2, 3, 4, 1, 5].map(|port| cache.learn(now, at(1, 1), at(0, port), &refused));
        assert_eq!(forgotten, [0, 0, 0, 0, 0, 1]);
        cache.check();
    }
}

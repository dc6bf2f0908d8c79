//! The cache of a Fast Open client (RFC 7413 §4.1.3). It stores the cookies of servers by address.
//! For each server port at which Fast Open failed, the cache stores the time until which the client
//! does not try Fast Open again.

use super::lru_cache::LruCache;
use crate::demux::Flow;
use crate::keys::Keys;
use linerate_tcp::{FastOpenLesson, FastOpenOffer};
use linerate_units::{Duration, Instant};
use linerate_wire::FastOpenCookie;

/// Time for which Fast Open is not tried after the first of consecutive failures at a server port.
const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// Maximum number of times that consecutive failures double [`FIRST_PAUSE`], which limits the pause
/// to nearly three days.
const MOST_DOUBLINGS: u32 = 12;

/// The cookie that a server has granted, and the server's MSS.
#[derive(Clone, Copy, Debug)]
struct Server {
    cookie: FastOpenCookie,
    mss: Option<u16>,
}

/// The consecutive failures of Fast Open at a server port.
#[derive(Clone, Copy, Debug)]
struct Refusals {
    consecutive: u32,
    paused_until: Instant,
}

/// The cookies of servers, and the failures of Fast Open at server ports.
#[derive(Debug)]
pub(crate) struct FastOpenCache {
    /// Cookies by local and server address. A cookie is valid for all ports of the server.
    servers: LruCache<Server>,
    /// Failures by local address, server address and server port. They are stored for each port,
    /// because servers and middleboxes may refuse Fast Open at one port only.
    refusals: LruCache<Refusals>,
}

impl FastOpenCache {
    /// Creates a cache for `limit` servers, and for `limit` server ports with failures.
    pub(crate) fn new(limit: usize, keys: &Keys) -> Self {
        Self {
            servers: LruCache::new(limit, keys.table("Fast Open servers")),
            refusals: LruCache::new(limit, keys.table("Fast Open refusals")),
        }
    }

    /// Returns the Fast Open option for a new connection, or `None` if the connection must not try
    /// Fast Open because of recent failures.
    pub(crate) fn offer(&mut self, now: Instant, flow: &Flow) -> Option<FastOpenOffer> {
        let is_paused = |refusals: &mut Refusals| now < refusals.paused_until;
        if self.refusals.get(port_of(flow)).is_some_and(is_paused) {
            return None;
        }
        Some(match self.servers.get(host_of(flow)) {
            Some(&mut Server { cookie, mss }) => FastOpenOffer::Data { cookie, mss },
            None => FastOpenOffer::Request,
        })
    }

    /// Updates the cache after a connection has tried Fast Open. `lesson` is what the connection
    /// has learned: a cookie, an MSS, a success or a failure. Returns the number of entries that
    /// were evicted to make room.
    pub(crate) fn learn(&mut self, now: Instant, flow: &Flow, lesson: &FastOpenLesson) -> u64 {
        let (host, port) = (host_of(flow), port_of(flow));
        let mut evicted = 0;
        if let Some(cookie) = lesson.cookie {
            evicted += u64::from(self.servers.put(host, Server { cookie, mss: lesson.mss }));
        } else if let Some(known) = self.servers.get(host) {
            known.mss = lesson.mss.or(known.mss);
        }
        if lesson.refused {
            let consecutive = self.refusals.get(port).map_or(0, |refusals| refusals.consecutive);
            let paused_until = now + FIRST_PAUSE * (1 << consecutive.min(MOST_DOUBLINGS));
            let refusals = Refusals { consecutive: consecutive.saturating_add(1), paused_until };
            evicted += u64::from(self.refusals.put(port, refusals));
        } else if let Some(refusals) = self.refusals.get(port) {
            refusals.consecutive = 0;
        }
        evicted
    }

    /// Panics if an invariant is violated.
    pub(crate) fn check(&self) {
        self.servers.check();
        self.refusals.check();
    }
}

/// Returns the key of a server: a flow with both addresses and no ports.
const fn host_of(flow: &Flow) -> Flow {
    Flow::between(flow.hosts, 0, 0)
}

/// Returns the key of a server port: a flow with both addresses and the server's port.
const fn port_of(flow: &Flow) -> Flow {
    Flow::between(flow.hosts, 0, flow.remote_port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, SocketAddrV4};

    const LESSON: FastOpenLesson =
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
    fn a_cookie_is_valid_for_two_addresses_and_all_ports() {
        let (mut cache, now) = (cache(), Instant::ZERO);
        assert_eq!(
            cache.offer(now, &Flow::new(at(1, 5_000), at(9, 80))),
            Some(FastOpenOffer::Request)
        );
        let lesson = FastOpenLesson { cookie: cookie(7), mss: Some(1_400), ..LESSON };
        cache.learn(now, &Flow::new(at(1, 5_000), at(9, 80)), &lesson);
        let known = Some(FastOpenOffer::Data { cookie: cookie(7).unwrap(), mss: Some(1_400) });
        assert_eq!(cache.offer(now, &Flow::new(at(1, 5_001), at(9, 80))), known);
        assert_eq!(cache.offer(now, &Flow::new(at(1, 5_001), at(9, 443))), known);
        assert_eq!(
            cache.offer(now, &Flow::new(at(2, 5_000), at(9, 80))),
            Some(FastOpenOffer::Request)
        );
        assert_eq!(
            cache.offer(now, &Flow::new(at(1, 5_000), at(8, 80))),
            Some(FastOpenOffer::Request)
        );
    }

    #[test]
    fn the_latest_cookie_and_mss_are_used() {
        let (mut cache, now) = (cache(), Instant::ZERO);
        for (byte, mss) in [(1, Some(1_400)), (2, Some(1_300)), (3, None)] {
            let lesson = FastOpenLesson { cookie: cookie(byte), mss, ..LESSON };
            cache.learn(now, &Flow::new(at(1, 1), at(9, 80)), &lesson);
        }
        let known = |mss| Some(FastOpenOffer::Data { cookie: cookie(3).unwrap(), mss });
        assert_eq!(cache.offer(now, &Flow::new(at(1, 1), at(9, 80))), known(None));
        cache.learn(
            now,
            &Flow::new(at(1, 1), at(9, 80)),
            &FastOpenLesson { mss: Some(900), accepted: true, ..LESSON },
        );
        assert_eq!(cache.offer(now, &Flow::new(at(1, 1), at(9, 80))), known(Some(900)));
        // This SYN-ACK has no MSS option, so the cache keeps the MSS that an earlier SYN-ACK of the
        // server contained.
        cache.learn(
            now,
            &Flow::new(at(1, 1), at(9, 80)),
            &FastOpenLesson { accepted: true, ..LESSON },
        );
        assert_eq!(cache.offer(now, &Flow::new(at(1, 1), at(9, 80))), known(Some(900)));
    }

    #[test]
    fn each_failure_of_a_port_doubles_its_pause() {
        let mut cache = cache();
        let refused = FastOpenLesson { refused: true, ..LESSON };
        let mut now = Instant::ZERO;
        for minutes in [1, 2, 4, 8] {
            cache.learn(now, &Flow::new(at(1, 1), at(9, 80)), &refused);
            let pause = FIRST_PAUSE * minutes;
            assert_eq!(cache.offer(now, &Flow::new(at(1, 2), at(9, 80))), None);
            assert!(
                cache.offer(now, &Flow::new(at(1, 2), at(9, 443))).is_some(),
                "other ports are independent"
            );
            assert_eq!(
                cache.offer(
                    now + (pause - Duration::from_nanos(1)),
                    &Flow::new(at(1, 2), at(9, 80))
                ),
                None
            );
            now += pause;
            assert!(cache.offer(now, &Flow::new(at(1, 2), at(9, 80))).is_some());
        }
        // A success resets the count of failures. The next failure therefore counts as the first,
        // with the shortest pause.
        cache.learn(
            now,
            &Flow::new(at(1, 1), at(9, 80)),
            &FastOpenLesson { accepted: true, ..LESSON },
        );
        cache.learn(now, &Flow::new(at(1, 1), at(9, 80)), &refused);
        assert!(cache.offer(now + FIRST_PAUSE, &Flow::new(at(1, 2), at(9, 80))).is_some());
    }

    #[test]
    fn the_pause_is_bounded() {
        let (mut cache, now) = (cache(), Instant::ZERO);
        for _ in 0..100 {
            cache.learn(
                now,
                &Flow::new(at(1, 1), at(9, 80)),
                &FastOpenLesson { refused: true, ..LESSON },
            );
        }
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!(cache.offer(now + day * 2, &Flow::new(at(1, 2), at(9, 80))), None);
        assert!(cache.offer(now + day * 3, &Flow::new(at(1, 2), at(9, 80))).is_some());
    }

    #[test]
    fn the_least_recently_used_server_is_evicted() {
        let (mut cache, now) = (cache(), Instant::ZERO);
        let lesson = FastOpenLesson { cookie: cookie(7), ..LESSON };
        let evicted: u64 = (0..4)
            .map(|server| cache.learn(now, &Flow::new(at(1, 1), at(server, 80)), &lesson))
            .sum();
        assert_eq!(evicted, 0);
        let is_known = |cache: &mut FastOpenCache, server| {
            matches!(
                cache.offer(now, &Flow::new(at(1, 1), at(server, 80))),
                Some(FastOpenOffer::Data { .. })
            )
        };
        assert!(is_known(&mut cache, 0));
        assert_eq!(cache.learn(now, &Flow::new(at(1, 1), at(4, 80)), &lesson), 1);
        cache.check();
        assert!(!is_known(&mut cache, 1));
        assert!([0, 2, 3, 4].into_iter().all(|server| is_known(&mut cache, server)));
        // The cache remembers failures of at most four server ports. Here five different ports
        // fail; port 1 fails twice. The failure of port 5, in the sixth call, evicts another port.
        let refused = FastOpenLesson { refused: true, ..LESSON };
        let evicted = [1, 2, 3, 4, 1, 5]
            .map(|port| cache.learn(now, &Flow::new(at(1, 1), at(0, port)), &refused));
        assert_eq!(evicted, [0, 0, 0, 0, 0, 1]);
        cache.check();
    }
}

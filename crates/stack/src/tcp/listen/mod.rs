//! Listeners: their options, their queues and their statistics.

pub(crate) mod fast_open;
pub(crate) mod syn_cookie;

use crate::collections::list::List;
use core::net::SocketAddrV4;
use core::ops::AddAssign;
use fast_open::Pending;
use linerate_tcp::Config;
use linerate_units::{Duration, Instant};

/// When a listener answers a SYN with a cookie instead of keeping it (RFC 4987 §3.6).
///
/// A cookie is everything that has to be known of the SYN, in the numbers that the peer's
/// acknowledgement brings back. It costs something, which is why it is no rule for quiet times: the
/// SYN-ACK is not sent again if it is lost, the peer's MSS is rounded down to one of eight, and without
/// timestamps there is no window scaling and no selective acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SynCookies {
    /// Never: of too many SYNs, the oldest makes room for the newest.
    Never,
    /// While the SYN queue is full.
    #[default]
    UnderPressure,
    /// Always: nothing is kept of any SYN.
    Always,
}

/// What a listener has counted, and how it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenStatistics {
    /// Handshakes that go on now.
    pub half_open: usize,
    /// Connections that wait to be accepted now.
    pub acceptable: usize,
    /// SYNs that were kept.
    pub syns_kept: u64,
    /// Half-open connections that a newer SYN took the place of.
    pub recycled: u64,
    /// SYNs that were dropped: the accept queue was full, or the host had no room or no way back.
    pub dropped: u64,
    /// Times that the accept queue was full when a handshake would have been complete.
    pub overflows: u64,
    /// SYNs that were answered by a cookie.
    pub cookies_sent: u64,
    /// Connections that a cookie has opened.
    pub cookies_taken: u64,
    /// Acknowledgements that came while cookies were out and brought none: forged, changed or too old.
    pub cookies_refused: u64,
    /// Cookies that came a second time.
    pub cookies_replayed: u64,
    /// Connections that were opened by TCP Fast Open.
    pub opened_fast: u64,
    /// Those of them whose handshake is not complete now, with those that were reset lately before it was.
    pub pending_fast: usize,
    /// Acknowledgements without data that were ignored because the listener waits for data.
    pub deferred: u64,
}

/// How the listeners of several shards at one address stand together.
impl AddAssign for ListenStatistics {
    fn add_assign(&mut self, other: Self) {
        self.half_open += other.half_open;
        self.acceptable += other.acceptable;
        self.syns_kept += other.syns_kept;
        self.recycled += other.recycled;
        self.dropped += other.dropped;
        self.overflows += other.overflows;
        self.cookies_sent += other.cookies_sent;
        self.cookies_taken += other.cookies_taken;
        self.cookies_refused += other.cookies_refused;
        self.cookies_replayed += other.cookies_replayed;
        self.opened_fast += other.opened_fast;
        self.pending_fast += other.pending_fast;
        self.deferred += other.deferred;
    }
}

/// How a listener is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListenOptions {
    /// Connections that wait to be accepted.
    pub backlog: usize,
    /// Handshakes that go on at the same time.
    pub syn_backlog: usize,
    /// The rules of the connections, if not those of the host's configuration.
    pub config: Option<Config>,
    /// When a SYN is answered by a cookie.
    pub syn_cookies: SynCookies,
    /// Let in whoever has been here before without waiting for the end of the handshake, and take the data
    /// of its SYN (TCP Fast Open, RFC 7413): so many such connections may wait at a time. `None`, the rule,
    /// lets in nobody so. A SYN that the network has doubled may open a second connection after the first
    /// is over: only for services to which it makes no difference whether they hear a request twice (§6.1).
    pub fast_open: Option<usize>,
    /// Complete a handshake only when data comes, or after so long since the SYN (`TCP_DEFER_ACCEPT`). A
    /// handshake by a SYN cookie is completed at once.
    pub defer_accept: Option<Duration>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            backlog: 128,
            syn_backlog: 1_024,
            config: None,
            syn_cookies: SynCookies::default(),
            fast_open: None,
            defer_accept: None,
        }
    }
}

/// A listener of this host.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) local: SocketAddrV4,
    pub(crate) options: ListenOptions,
    /// Connections whose handshake goes on, the oldest first. Invariant: at most the limit.
    pub(crate) half_open: List,
    /// Connections that wait to be accepted, the oldest first. Invariant: at most the limit.
    pub(crate) acceptable: List,
    /// When a cookie was last sent, if one was.
    pub(crate) cookie_sent: Option<Instant>,
    /// Connections that were opened fast.
    pub(crate) pending: Pending,
    pub(crate) counted: ListenStatistics,
}

impl Listener {
    /// Is there no place for one half-open connection more?
    pub(crate) const fn is_full(&self) -> bool {
        self.half_open.len() >= self.options.syn_backlog
    }

    /// Is the next SYN answered by a cookie?
    pub(crate) fn gives_cookies(&self) -> bool {
        match self.options.syn_cookies {
            SynCookies::Never => false,
            SynCookies::UnderPressure => self.is_full(),
            SynCookies::Always => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_listeners_of_several_shards_each_number_is_the_sum() {
        let one = ListenStatistics {
            half_open: 1,
            acceptable: 2,
            syns_kept: 3,
            recycled: 4,
            dropped: 5,
            overflows: 6,
            cookies_sent: 7,
            cookies_taken: 8,
            cookies_refused: 9,
            cookies_replayed: 10,
            opened_fast: 11,
            pending_fast: 12,
            deferred: 13,
        };
        let mut all = one;
        all += one;
        let twice = ListenStatistics {
            half_open: 2,
            acceptable: 4,
            syns_kept: 6,
            recycled: 8,
            dropped: 10,
            overflows: 12,
            cookies_sent: 14,
            cookies_taken: 16,
            cookies_refused: 18,
            cookies_replayed: 20,
            opened_fast: 22,
            pending_fast: 24,
            deferred: 26,
        };
        assert_eq!(all, twice);
    }
}

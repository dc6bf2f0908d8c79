//! The state of TCP listeners: options, queues and counters.

pub(crate) mod fast_open;
pub(crate) mod syn_ack;
pub(crate) mod syn_cookie;

use crate::collections::list::List;
use crate::demux::Binding;
use core::ops::AddAssign;
use fast_open::Pending;
use linerate_tcp::Config;
use linerate_units::{Duration, Instant};

/// The condition under which a listener answers a SYN with a SYN cookie (RFC 4987 §3.6).
///
/// A SYN cookie stores the SYN in the numbers that the peer's acknowledgement returns. This has a
/// cost: a lost SYN-ACK is not retransmitted, the peer's MSS is rounded down to one of eight
/// values, and without timestamps there is no window scaling and no SACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SynCookies {
    /// Never. If the SYN queue is full, a new SYN replaces the oldest one.
    Never,
    /// Only while the SYN queue is full.
    #[default]
    UnderPressure,
    /// Always. No SYN is stored.
    Always,
}

/// The counters and the state of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenStatistics {
    /// Present number of half-open connections.
    pub half_open: usize,
    /// Present number of connections that wait to be accepted.
    pub acceptable: usize,
    /// Number of SYNs that were stored.
    pub syns_kept: u64,
    /// Number of half-open connections that newer SYNs have replaced.
    pub recycled: u64,
    /// Number of SYNs that were dropped, because the accept queue was full, or the host had no free
    /// socket or no route.
    pub dropped: u64,
    /// Number of handshakes that could not complete because the accept queue was full.
    pub overflows: u64,
    /// Number of SYNs that were answered with a SYN cookie.
    pub cookies_sent: u64,
    /// Number of connections that were opened by a SYN cookie.
    pub cookies_taken: u64,
    /// Number of acknowledgements without a valid SYN cookie while cookies were outstanding. Their
    /// cookies were forged or had expired.
    pub cookies_refused: u64,
    /// Number of SYN cookies that were used a second time.
    pub cookies_replayed: u64,
    /// Number of connections that were opened by TCP Fast Open.
    pub opened_fast: u64,
    /// Present number of Fast Open connections that count towards the limit: in handshake, or reset
    /// recently.
    pub pending_fast: usize,
    /// Number of acknowledgements without data that were ignored because of deferred accept.
    pub deferred: u64,
}

/// Adds the counters of another shard's listener at the same address.
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

/// The options of a listener.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListenOptions {
    /// Maximum number of connections that wait to be accepted.
    pub backlog: usize,
    /// Maximum number of half-open connections.
    pub syn_backlog: usize,
    /// Configuration of connections; `None` for the default of the host.
    pub config: Option<Config>,
    /// The condition under which SYN cookies are used.
    pub syn_cookies: SynCookies,
    /// Maximum number of pending TCP Fast Open connections (RFC 7413); `None` disables Fast Open.
    /// Connections with a valid cookie can be accepted before the end of the handshake, and the
    /// data of their SYN can be read. A duplicated SYN can open a second connection later, so
    /// requests must be idempotent (§6.1).
    pub fast_open: Option<usize>,
    /// Time from the SYN for which a handshake waits for data before it completes
    /// (`TCP_DEFER_ACCEPT`); `None` means that it does not wait. A handshake by a SYN cookie never
    /// waits.
    pub defer_accept: Option<Duration>,
    /// Whether a listener at `::` excludes IPv4 (`IPV6_V6ONLY`). If not, it accepts connections
    /// over both IP versions, and shows IPv4 addresses in IPv6 form (RFC 3493 §3.7). The option has
    /// no effect on a listener at an IPv4 address.
    pub only_v6: bool,
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
            only_v6: false,
        }
    }
}

/// A listener, with its queues.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) binding: Binding,
    pub(crate) options: ListenOptions,
    /// Half-open connections, oldest first. Invariant: at most the limit.
    pub(crate) half_open: List,
    /// Connections that wait to be accepted, oldest first. Invariant: at most the limit.
    pub(crate) acceptable: List,
    /// Time at which the last SYN cookie was sent.
    pub(crate) cookie_sent: Option<Instant>,
    /// Pending Fast Open connections.
    pub(crate) pending: Pending,
    pub(crate) counted: ListenStatistics,
}

impl Listener {
    /// Returns whether the SYN queue is full.
    pub(crate) const fn is_full(&self) -> bool {
        self.half_open.len() >= self.options.syn_backlog
    }

    /// Returns whether the next SYN is to be answered with a SYN cookie.
    pub(crate) fn sends_cookies(&self) -> bool {
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
    fn statistics_of_shards_are_added() {
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

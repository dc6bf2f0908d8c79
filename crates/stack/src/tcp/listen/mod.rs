//! The state of TCP listeners (listening sockets): options, queues and counters.

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
/// A SYN cookie stores the parameters of the SYN in numbers that the peer's acknowledgement
/// returns, so that the listener needs no memory for them. SYN cookies have disadvantages. A lost
/// SYN-ACK is not retransmitted, and the peer's MSS is rounded down to one of eight values. If the
/// peer does not use timestamps, the connection has no window scaling and no SACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SynCookies {
    /// Never. If the SYN queue is full, a new SYN replaces the oldest half-open connection.
    Never,
    /// Only while the SYN queue is full.
    #[default]
    UnderPressure,
    /// Always, so that no SYN is stored in the SYN queue.
    Always,
}

/// The counters and the state of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenStatistics {
    /// Present number of half-open connections, in the SYN queue.
    pub half_open: usize,
    /// Present number of connections in the accept queue, which wait until the application accepts
    /// them.
    pub acceptable: usize,
    /// Number of SYNs that were stored as half-open connections.
    pub syns_kept: u64,
    /// Number of half-open connections that newer SYNs have replaced because the SYN queue was
    /// full.
    pub recycled: u64,
    /// Number of SYNs that were dropped because the accept queue was full, or because the host had
    /// no free socket or no route to the peer.
    pub dropped: u64,
    /// Number of SYNs and of final acknowledgements of handshakes that were ignored because the
    /// accept queue was full.
    pub overflows: u64,
    /// Number of SYNs that were answered with a SYN cookie.
    pub cookies_sent: u64,
    /// Number of connections that were opened by an acknowledgement with a valid SYN cookie.
    pub cookies_taken: u64,
    /// Number of acknowledgements without a connection that contained no valid SYN cookie, at a
    /// time when a recently sent cookie could still be valid. Their cookies were forged or had
    /// expired.
    pub cookies_refused: u64,
    /// Number of acknowledgements that were refused because their SYN cookie had already been used.
    pub cookies_replayed: u64,
    /// Number of connections that were opened by TCP Fast Open.
    pub opened_fast: u64,
    /// Present number of Fast Open connections that count towards the limit, because they are in
    /// the handshake or were reset recently.
    pub pending_fast: usize,
    /// Number of acknowledgements without data that were ignored because of
    /// [`ListenOptions::defer_accept`].
    pub deferred: u64,
}

/// Adds the statistics of the listener at the same address on another shard.
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
    /// Maximum number of connections in the accept queue, which wait to be accepted.
    pub backlog: usize,
    /// Maximum number of half-open connections in the SYN queue.
    pub syn_backlog: usize,
    /// Configuration of the listener's connections; `None` for the default configuration of the
    /// host.
    pub config: Option<Config>,
    /// The condition under which SYN cookies are used.
    pub syn_cookies: SynCookies,
    /// Maximum number of pending TCP Fast Open connections (RFC 7413); `None` disables Fast Open.
    /// If the SYN has a valid cookie, the application can accept the connection and read the data
    /// of the SYN before the handshake completes. A duplicate of the SYN can later open a second
    /// connection, so requests must be idempotent (RFC 7413 §6.1).
    pub fast_open: Option<usize>,
    /// Time after the SYN for which the listener ignores an acknowledgement without data. In this
    /// time, the handshake completes only when data arrive (`TCP_DEFER_ACCEPT` of Linux). `None`
    /// completes the handshake at the first acknowledgement, and so does every handshake with a SYN
    /// cookie.
    pub defer_accept: Option<Duration>,
    /// Whether a listener at `::` excludes IPv4 (`IPV6_V6ONLY`). If false, the listener accepts
    /// connections over both IP versions, and shows IPv4 addresses to the application as
    /// IPv4-mapped IPv6 addresses (RFC 3493 §3.7). The option has no effect on a listener at an
    /// IPv4 address.
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
    /// The SYN queue: half-open connections, oldest first. Invariant: at most
    /// [`ListenOptions::syn_backlog`] connections.
    pub(crate) half_open: List,
    /// The accept queue: connections that wait to be accepted, oldest first. Invariant: at most
    /// [`ListenOptions::backlog`] connections.
    pub(crate) acceptable: List,
    /// Time at which the most recent SYN cookie was sent; `None` if no cookie was sent yet.
    pub(crate) cookie_sent: Option<Instant>,
    /// Pending Fast Open connections.
    pub(crate) pending: Pending,
    pub(crate) counted: ListenStatistics,
}

impl Listener {
    /// Returns whether the SYN queue has no room for another half-open connection.
    pub(crate) const fn is_full(&self) -> bool {
        self.half_open.len() >= self.options.syn_backlog
    }

    /// Returns whether the listener answers the next SYN with a SYN cookie.
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

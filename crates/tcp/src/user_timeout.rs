//! How long data may stay unacknowledged before the connection is given up, if the application or the
//! peer has an opinion (RFC 9293 §3.9.1.1, RFC 5482).
//!
//! Without an opinion the peer is given up by R2, which the retransmission timer asks about when it
//! expires. A user timeout is kept to the moment by a timer of its own. As with `TCP_USER_TIMEOUT` of
//! Linux, it counts all data that was written and not acknowledged, also behind a closed window.

use crate::rest::pack::packed;
use crate::timers::Timer;
use crate::{Connection, TimeLimits};
use core::hint::cold_path;
use linerate_units::{Duration, Instant};
use linerate_wire::{TcpOptions, UserTimeout};

/// What the two ends have said of a connection's user timeout.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct UserTimeouts {
    /// What the application has set; then CHANGEABLE is false.
    local: Option<Duration>,
    /// REMOTE_UTO: what the peer advertises.
    remote: Option<Duration>,
    /// The next segment says what ours is.
    pub(crate) due: bool,
}

packed!(UserTimeouts { local, remote, due });

impl UserTimeouts {
    /// The option goes with the first segment after the SYN, too (RFC 5482 §3), for a peer that could
    /// not take it from there.
    pub(crate) const fn new(local: Option<Duration>, advertises: bool) -> Self {
        Self { local, remote: None, due: advertises }
    }
}

impl Connection {
    /// Gives the connection up when what was written has not been acknowledged for so long; `None`
    /// leaves that to R2, or to what the peer advertises where [`crate::Config::user_timeout_option`]
    /// allows it. (`TCP_USER_TIMEOUT`.)
    pub fn set_user_timeout(&mut self, now: Instant, timeout: Option<Duration>) {
        self.user_timeouts.local = timeout;
        self.slow(|connection| {
            connection.user_timeouts.due = connection.config.user_timeout_option;
        });
        self.watch_user_timeout(now);
    }

    /// USER_TIMEOUT, if the application or the peer has said one: what the application has set, else by
    /// the formula of RFC 5482 §3.1, and never less than the retransmission timeout.
    #[inline]
    #[must_use]
    pub fn user_timeout(&self) -> Option<Duration> {
        self.user_timeouts.local.or_else(|| {
            let TimeLimits { min: least, max: most } = self.config.user_timeout_limits;
            let wanted = self.user_timeouts.remote?.max(self.config.give_up_after);
            Some(wanted.max(least).max(self.sender.rtt.timeout(&self.config.rto)).min(most))
        })
    }

    /// REMOTE_UTO: the user timeout that the peer has advertised, whatever became of it.
    #[must_use]
    pub const fn peer_user_timeout(&self) -> Option<Duration> {
        self.user_timeouts.remote
    }

    /// How long a peer may owe an answer in a synchronized state: USER_TIMEOUT, or R2.
    pub(crate) fn patience(&self) -> Duration {
        self.user_timeout().unwrap_or(self.config.give_up_after)
    }

    /// The option for a segment that says it.
    pub(crate) fn user_timeout_option(&self) -> Option<UserTimeout> {
        let timeout = self.user_timeouts.local.unwrap_or(self.config.give_up_after);
        self.config.user_timeout_option.then(|| option_of(timeout))
    }

    /// Takes what the peer advertises.
    #[inline]
    pub(crate) fn note_user_timeout(&mut self, now: Instant, options: &TcpOptions) {
        if self.config.user_timeout_option {
            self.adopt_option(now, options);
        }
    }

    #[cold]
    fn adopt_option(&mut self, now: Instant, options: &TcpOptions) {
        let Some(option) = options.user_timeout else { return };
        let unit = if option.minutes { 60 } else { 1 };
        self.user_timeouts.remote = Some(Duration::from_secs(u64::from(option.count) * unit));
        self.watch_user_timeout(now);
    }

    /// Something begins to wait for the peer's acknowledgement, after nothing did, or another timeout applies from now
    /// on. During the handshake its own limits apply (RFC 5482 §3.3).
    #[inline]
    pub(crate) fn watch_user_timeout(&mut self, now: Instant) {
        if let Some(timeout) = self.user_timeout().filter(|_| self.state.is_synchronized()) {
            cold_path();
            self.timers.set(Timer::UserTimeout, now, timeout);
        }
    }

    /// The timer is set when data begins to wait and not touched by acknowledgements: what they have
    /// brought since, and whether anything waits and a timeout applies at all, is looked at here.
    pub(crate) fn on_user_timeout(&mut self, now: Instant) {
        let Some(timeout) = self.user_timeout().filter(|_| self.has_undelivered()) else { return };
        let silence = now.since(self.sender.progressed);
        if silence >= timeout {
            self.end(Some(self.reason_for_silence()));
        } else {
            self.timers.set(Timer::UserTimeout, now, timeout - silence);
        }
    }

    /// Is a peer that has been silent for so long, and answered none of so many keep-alive probes, to be
    /// given up? A user timeout outlasts the probes (RFC 5482 §4.2), or ends before they do.
    pub(crate) fn is_given_up_by_keep_alive(&self, silence: Duration, probes: u32) -> bool {
        match self.user_timeout() {
            Some(timeout) => self.keep_alive_probes > 0 && silence >= timeout,
            None => self.keep_alive_probes >= probes,
        }
    }

    /// Is there anything that the peer has not acknowledged, sent or not?
    pub(crate) fn has_undelivered(&self) -> bool {
        self.snd.flight() > 0 || self.sender.has_unsent(self.snd.nxt)
    }
}

/// A timeout as the option can say it, rounded up; the longest it can say stands for any longer one.
fn option_of(timeout: Duration) -> UserTimeout {
    let seconds = timeout.as_nanos().div_ceil(Duration::from_secs(1).as_nanos()).max(1);
    let minutes = seconds > u64::from(UserTimeout::MOST);
    let count = if minutes { seconds.div_ceil(60) } else { seconds };
    UserTimeout {
        minutes,
        count: u16::try_from(count).unwrap_or(UserTimeout::MOST).min(UserTimeout::MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_said_in_seconds_where_they_suffice() {
        let said = |timeout| {
            let option = option_of(timeout);
            (option.minutes, option.count)
        };
        assert_eq!(said(Duration::ZERO), (false, 1), "zero is reserved");
        assert_eq!(said(Duration::from_millis(1)), (false, 1));
        assert_eq!(said(Duration::from_millis(1_001)), (false, 2));
        assert_eq!(said(Duration::from_secs(32_767)), (false, 32_767));
        assert_eq!(said(Duration::from_secs(32_768)), (true, 547));
        assert_eq!(said(Duration::MAX), (true, UserTimeout::MOST));
    }
}

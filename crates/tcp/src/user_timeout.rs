//! The user timeout: the time for which data may stay unacknowledged before the connection is
//! aborted, if the application or the peer has set it (RFC 9293 §3.9.1.1, RFC 5482).
//!
//! Without a user timeout, the limit R2 applies ([`crate::Config::give_up_after`]), which is
//! checked only when the retransmission timer expires. A user timeout has a timer of its own, so it
//! does not wait for the next expiry of that timer. Like Linux's `TCP_USER_TIMEOUT`, it applies to
//! all data that was written and not acknowledged, even while the peer's window is closed.

use crate::compact::pack::packed;
use crate::timers::Timer;
use crate::{Connection, TimeLimits};
use core::hint::cold_path;
use linerate_units::{Duration, Instant};
use linerate_wire::{TcpOptions, UserTimeout};

/// The user timeouts that the application has set and that the peer has advertised.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct UserTimeouts {
    /// The user timeout that the application has set. While it is set, the peer's advertisement has
    /// no effect on ours (RFC 5482: CHANGEABLE is false).
    local: Option<Duration>,
    /// REMOTE_UTO (RFC 5482 §3.1): the user timeout that the peer has advertised.
    remote: Option<Duration>,
    /// Whether the next segment must advertise our user timeout.
    pub(crate) due: bool,
}

packed!(UserTimeouts { local, remote, due });

impl UserTimeouts {
    /// Creates the initial state. If `advertises` is true, the SYN and the first segment after it
    /// carry the option (RFC 5482 §3). The second one is for a peer that ignores the option on a
    /// SYN.
    pub(crate) const fn new(local: Option<Duration>, advertises: bool) -> Self {
        Self { local, remote: None, due: advertises }
    }
}

/// # Application calls: the user timeout
impl Connection {
    /// Sets the time after which unacknowledged data aborts the connection (`TCP_USER_TIMEOUT`).
    /// With `None`, the limit is R2. If [`crate::Config::user_timeout_option`] is set and the peer
    /// has advertised a longer time than R2, the limit is that time, within the configured limits.
    pub fn set_user_timeout(&mut self, now: Instant, timeout: Option<Duration>) {
        self.user_timeouts.local = timeout;
        self.slow(|connection| {
            connection.user_timeouts.due = connection.config.user_timeout_option;
        });
        self.watch_user_timeout(now);
    }

    /// Returns the user timeout in effect, if there is one. If the application has set none, it is
    /// computed by the formula of RFC 5482 §3.1 from R2 and the time that the peer has advertised.
    /// `None` if the peer has advertised none either. The computed time is at least the
    /// retransmission timeout, but at most the maximum of [`crate::Config::user_timeout_limits`].
    #[inline]
    #[must_use]
    pub fn user_timeout(&self) -> Option<Duration> {
        self.user_timeouts.local.or_else(|| {
            let TimeLimits { min: least, max: most } = self.config.user_timeout_limits;
            let wanted = self.user_timeouts.remote?.max(self.config.give_up_after);
            Some(wanted.max(least).max(self.sender.rtt.timeout(&self.config.rto)).min(most))
        })
    }

    /// Returns the user timeout that the peer has advertised, even if it has no effect because the
    /// application has set another.
    #[must_use]
    pub const fn peer_user_timeout(&self) -> Option<Duration> {
        self.user_timeouts.remote
    }

    /// Returns the time for which data may stay unacknowledged before a synchronized connection is
    /// aborted: the user timeout, or R2 if there is none.
    pub(crate) fn unacknowledged_timeout(&self) -> Duration {
        self.user_timeout().unwrap_or(self.config.give_up_after)
    }

    /// Returns the option that advertises our user timeout.
    pub(crate) fn user_timeout_option(&self) -> Option<UserTimeout> {
        let timeout = self.user_timeouts.local.unwrap_or(self.config.give_up_after);
        self.config.user_timeout_option.then(|| option_of(timeout))
    }

    /// Processes the user timeout option of a received segment.
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

    /// Starts the timer of the user timeout. Called when data becomes unacknowledged, or when the
    /// timeout has changed. During the handshake, the timer is not started, because the handshake
    /// has time limits of its own (RFC 5482 §3.3).
    #[inline]
    pub(crate) fn watch_user_timeout(&mut self, now: Instant) {
        if let Some(timeout) = self.user_timeout().filter(|_| self.state.is_synchronized()) {
            cold_path();
            self.timers.set(Timer::UserTimeout, now, timeout);
        }
    }

    /// Handles an expiry of the user timeout timer. Acknowledgements do not restart this timer. If
    /// new data was acknowledged since it was started, this method therefore restarts it for the
    /// remaining time.
    pub(crate) fn on_user_timeout(&mut self, now: Instant) {
        let Some(timeout) = self.user_timeout().filter(|_| self.has_undelivered()) else { return };
        let silence = now.since(self.sender.progressed);
        if silence >= timeout {
            self.end(Some(self.reason_for_silence()));
        } else {
            self.timers.set(Timer::UserTimeout, now, timeout - silence);
        }
    }

    /// Whether keep-alive now aborts the connection. Without a user timeout, the limit is `probes`
    /// unanswered probes. With a user timeout, the limit is that time, also if it is longer than
    /// all probes take (RFC 5482 §4.2), and at least one probe must be unanswered. `silence` is the
    /// time since the peer last answered.
    pub(crate) fn is_given_up_by_keep_alive(&self, silence: Duration, probes: u32) -> bool {
        match self.user_timeout() {
            Some(timeout) => self.keep_alive_probes > 0 && silence >= timeout,
            None => self.keep_alive_probes >= probes,
        }
    }

    /// Whether any written data is unacknowledged, including data that was not sent yet.
    pub(crate) fn has_undelivered(&self) -> bool {
        self.snd.flight() > 0 || self.sender.has_unsent(self.snd.nxt)
    }
}

/// Encodes a timeout as an option, rounded up. A timeout above the maximum of the option is encoded
/// as that maximum.
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
    fn a_timeout_is_encoded_in_seconds_if_possible() {
        let encode = |timeout| {
            let option = option_of(timeout);
            (option.minutes, option.count)
        };
        assert_eq!(encode(Duration::ZERO), (false, 1), "zero is reserved");
        assert_eq!(encode(Duration::from_millis(1)), (false, 1));
        assert_eq!(encode(Duration::from_millis(1_001)), (false, 2));
        assert_eq!(encode(Duration::from_secs(32_767)), (false, 32_767));
        assert_eq!(encode(Duration::from_secs(32_768)), (true, 547));
        assert_eq!(encode(Duration::MAX), (true, UserTimeout::MOST));
    }
}

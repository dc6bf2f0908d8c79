//! A configuration that many connections share, and the settings that applications may change
//! later.

use crate::compact::pack::{Pack, Packer, Unpacker};
use crate::congestion::Window;
use crate::opening::DEFAULT_PEER_MSS;
use crate::options::Agreement;
use crate::timers::Timer;
use crate::{BufferSize, Config, Connection, KeepAlive, State};
use alloc::sync::Arc;
use core::ops::Deref;
use linerate_units::Instant;

/// A [`Config`] whose sizes are limited to what the protocol can express, stored once for all
/// connections that use it. If a connection is created with a `Config`, it has a copy of its own.
#[derive(Clone, Debug)]
pub struct SharedConfig(Arc<Rules>);

/// A configuration and the initial values of its connections, which are derived from it only once.
#[derive(Debug)]
struct Rules {
    config: Config,
    preferences: Preferences,
    agreement: Agreement,
    window: Window,
}

impl SharedConfig {
    /// Whether both configurations are stored in the same allocation. If not, they may still be
    /// equal.
    #[must_use]
    pub fn is_same_allocation(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the initial settings of a connection, which the application may change.
    pub(crate) fn preferences(&self) -> &Preferences {
        &self.0.preferences
    }

    /// Returns the options that our SYN offers, and which both endpoints may then agree on.
    pub(crate) fn agreement(&self) -> &Agreement {
        &self.0.agreement
    }

    /// Returns the congestion window that a connection has before the handshake is complete.
    pub(crate) fn window(&self) -> &Window {
        &self.0.window
    }
}

impl Deref for SharedConfig {
    type Target = Config;

    #[inline]
    fn deref(&self) -> &Config {
        &self.0.config
    }
}

impl PartialEq for SharedConfig {
    fn eq(&self, other: &Self) -> bool {
        self.is_same_allocation(other) || **self == **other
    }
}

impl From<Config> for SharedConfig {
    fn from(config: Config) -> Self {
        let config = config.within_limits();
        Self(Arc::new(Rules {
            config,
            preferences: Preferences::of(&config),
            agreement: Agreement::offer(&config, config.receive_buffer),
            window: Window::new(DEFAULT_PEER_MSS.into(), config.initial_window),
        }))
    }
}

impl From<&Config> for SharedConfig {
    fn from(config: &Config) -> Self {
        (*config).into()
    }
}

impl From<&Self> for SharedConfig {
    fn from(config: &Self) -> Self {
        config.clone()
    }
}

/// The settings that an application may change for its connection. Their initial values are those
/// of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Preferences {
    pub(crate) send_buffer: BufferSize,
    pub(crate) receive_buffer: BufferSize,
    pub(crate) keep_alive: Option<KeepAlive>,
    pub(crate) no_delay: bool,
    pub(crate) header_prediction: bool,
}

/// Packs the settings for a compact connection. A setting that equals the configuration takes only
/// a flag bit.
impl Pack for Preferences {
    fn pack(&self, into: &mut Packer<'_>) {
        let usual = into.config().preferences().clone();
        (self.send_buffer != usual.send_buffer).then_some(self.send_buffer).pack(into);
        (self.receive_buffer != usual.receive_buffer).then_some(self.receive_buffer).pack(into);
        (self.keep_alive != usual.keep_alive).then_some(self.keep_alive).pack(into);
        self.no_delay.pack(into);
        self.header_prediction.pack(into);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let usual = from.config().preferences().clone();
        Self {
            send_buffer: Option::unpack(from).unwrap_or(usual.send_buffer),
            receive_buffer: Option::unpack(from).unwrap_or(usual.receive_buffer),
            keep_alive: Option::unpack(from).unwrap_or(usual.keep_alive),
            no_delay: bool::unpack(from),
            header_prediction: bool::unpack(from),
        }
    }
}

impl Preferences {
    /// Returns the initial settings of a connection with this configuration.
    const fn of(config: &Config) -> Self {
        Self {
            send_buffer: config.send_buffer,
            receive_buffer: config.receive_buffer,
            keep_alive: config.keep_alive,
            no_delay: config.no_delay,
            header_prediction: config.header_prediction,
        }
    }
}

/// # Application calls: options
impl Connection {
    /// Selects whether small segments are sent at once (`TCP_NODELAY`), or by Nagle's algorithm. A
    /// call with `true` also releases the data that [`Connection::set_cork`] and
    /// [`Connection::expect_more`] hold back.
    pub fn set_no_delay(&mut self, no_delay: bool) {
        self.preferences.no_delay = no_delay;
        if no_delay {
            self.flush_cork();
        }
        self.output_due = true;
    }

    /// Whether small segments are sent at once, without Nagle's algorithm.
    #[must_use]
    pub const fn no_delay(&self) -> bool {
        self.preferences.no_delay
    }

    /// Enables or disables header prediction. If it is disabled, every segment takes the slow path,
    /// which takes longer but has the same effects as the fast path.
    pub fn set_header_prediction(&mut self, on: bool) {
        self.slow(|connection| connection.preferences.header_prediction = on);
    }

    /// Sets the keep-alive probes for an idle peer; `None` disables them.
    pub fn set_keep_alive(&mut self, now: Instant, keep_alive: Option<KeepAlive>) {
        self.preferences.keep_alive = keep_alive.map(KeepAlive::within_limits);
        self.keep_alive_probes = 0;
        match keep_alive {
            Some(keep_alive) if self.state.is_synchronized() && self.state != State::TimeWait => {
                self.timers.set(Timer::KeepAlive, now, keep_alive.idle);
            }
            _ => self.timers.clear(Timer::KeepAlive),
        }
    }

    /// Returns the settings of the keep-alive probes, if these are enabled.
    #[must_use]
    pub const fn keep_alive(&self) -> Option<KeepAlive> {
        self.preferences.keep_alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_configuration_is_within_the_limits_of_the_protocol() {
        let wild = Config { send_buffer: BufferSize::Fixed(u32::MAX), ..Config::modern() };
        let shared = SharedConfig::from(wild);
        assert_eq!(shared.send_buffer, BufferSize::Fixed(1 << 30));
        assert_eq!(SharedConfig::from(&shared), shared);
        assert_eq!(SharedConfig::from(wild), shared, "equal by value");
    }
}

//! The store of connection configurations. Connections with equal configurations share one copy.

use linerate_tcp::{Config, SharedConfig};

/// The default configuration, and the configuration that the application has chosen most recently.
/// Only these two are stored, because an application usually chooses one configuration for all of
/// its connections.
#[derive(Debug)]
pub(crate) struct TcpConfigs {
    default: SharedConfig,
    last: Option<(Config, SharedConfig)>,
}

/// The choice between the stored configurations, for a connection that is about to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigChoice {
    /// The default configuration of the host.
    Default,
    /// The configuration that the application has chosen most recently.
    Last,
}

impl TcpConfigs {
    /// Creates the store with the default configuration.
    pub(crate) fn new(default: &Config) -> Self {
        Self { default: default.into(), last: None }
    }

    /// Stores the configuration `own`, so that the next connection can be opened with it, and
    /// returns the choice of this configuration. If `own` is `None`, returns the choice of the
    /// default configuration.
    #[inline]
    pub(crate) fn choose(&mut self, own: Option<&Config>) -> ConfigChoice {
        match own {
            Some(own) => self.choose_own(own),
            None => ConfigChoice::Default,
        }
    }

    #[inline(never)]
    fn choose_own(&mut self, own: &Config) -> ConfigChoice {
        if self.last.as_ref().is_none_or(|(last_config, _)| last_config != own) {
            self.last = Some((*own, SharedConfig::from(own)));
        }
        ConfigChoice::Last
    }

    /// Returns the shared copy of the chosen configuration.
    #[inline]
    pub(crate) fn shared(&self, rules: ConfigChoice) -> &SharedConfig {
        match (rules, &self.last) {
            (ConfigChoice::Last, Some((_, last))) => last,
            (ConfigChoice::Last, None) | (ConfigChoice::Default, _) => &self.default,
        }
    }
}

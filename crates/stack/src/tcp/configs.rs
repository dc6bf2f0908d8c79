//! The configurations of connections. Connections with equal configurations share one copy.

use linerate_tcp::{Config, SharedConfig};

/// The default configuration, and the last one that an application has chosen. An application that
/// chooses a configuration usually chooses it for all of its connections.
#[derive(Debug)]
pub(crate) struct TcpConfigs {
    default: SharedConfig,
    last: Option<(Config, SharedConfig)>,
}

/// The choice of a configuration for a connection that is about to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigChoice {
    /// The default configuration of the host.
    Default,
    /// The configuration that an application has chosen last.
    Last,
}

impl TcpConfigs {
    /// Creates the store with the default configuration.
    pub(crate) fn new(default: &Config) -> Self {
        Self { default: default.into(), last: None }
    }

    /// Stores the configuration `own` if there is one. Returns the choice of it, or else of the
    /// default.
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

    /// Returns the configuration that was chosen.
    #[inline]
    pub(crate) fn shared(&self, rules: ConfigChoice) -> &SharedConfig {
        match (rules, &self.last) {
            (ConfigChoice::Last, Some((_, last))) => last,
            (ConfigChoice::Last, None) | (ConfigChoice::Default, _) => &self.default,
        }
    }
}

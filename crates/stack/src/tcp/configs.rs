//! The rules of the host's connections, kept once for all that have the same.

use linerate_tcp::{Config, SharedConfig};

/// The host's own rules, and those that somebody else has last asked for: a program that has rules of its
/// own mostly has one kind of them.
#[derive(Debug)]
pub(crate) struct TcpConfigs {
    usual: SharedConfig,
    last: Option<(Config, SharedConfig)>,
}

impl TcpConfigs {
    /// The rules of connections for which nobody has asked for others.
    pub(crate) fn new(usual: &Config) -> Self {
        Self { usual: usual.into(), last: None }
    }

    /// The rules of a connection for which `own` were asked for, if any were.
    #[inline]
    pub(crate) fn shared(&mut self, own: Option<&Config>) -> SharedConfig {
        match own {
            Some(own) => self.shared_by_wish(own),
            None => self.usual.clone(),
        }
    }

    #[inline(never)]
    fn shared_by_wish(&mut self, own: &Config) -> SharedConfig {
        match &self.last {
            Some((wish, shared)) if wish == own => shared.clone(),
            _ => {
                let shared = SharedConfig::from(own);
                self.last = Some((*own, shared.clone()));
                shared
            }
        }
    }
}

//! The rules of the host's connections, kept once for all that have the same.

use linerate_tcp::{Config, SharedConfig};

/// The host's own rules, and those that somebody else has last asked for: a program that has rules of its
/// own mostly has one kind of them.
#[derive(Debug)]
pub(crate) struct TcpConfigs {
    usual: SharedConfig,
    last: Option<(Config, SharedConfig)>,
}

/// The rules of a connection that is about to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// The host's own.
    Usual,
    /// Those that were asked for last.
    Last,
}

impl TcpConfigs {
    /// The rules of connections for which nobody has asked for others.
    pub(crate) fn new(usual: &Config) -> Self {
        Self { usual: usual.into(), last: None }
    }

    /// The rules of a connection for which `own` were asked for, if any were.
    #[inline]
    pub(crate) fn choose(&mut self, own: Option<&Config>) -> Rules {
        match own {
            Some(own) => self.choose_by_wish(own),
            None => Rules::Usual,
        }
    }

    #[inline(never)]
    fn choose_by_wish(&mut self, own: &Config) -> Rules {
        if self.last.as_ref().is_none_or(|(wish, _)| wish != own) {
            self.last = Some((*own, SharedConfig::from(own)));
        }
        Rules::Last
    }

    /// The rules that were just chosen.
    #[inline]
    pub(crate) fn shared(&self, rules: Rules) -> &SharedConfig {
        match (rules, &self.last) {
            (Rules::Last, Some((_, last))) => last,
            (Rules::Last, None) | (Rules::Usual, _) => &self.usual,
        }
    }
}

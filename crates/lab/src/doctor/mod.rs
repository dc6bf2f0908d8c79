//! `linerate doctor`: what this machine can do, what that means for which command, and what would help.

mod interface;
mod network;
mod processor;
mod tap;

use crate::Interrupt;

/// One thing about this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub subject: &'static str,
    /// Is it as it should be?
    pub good: bool,
    /// What was found.
    pub found: String,
    /// What that means, and for which command.
    pub meaning: String,
    /// What would help, or do more.
    pub remedy: Option<String>,
}

impl Finding {
    fn good(subject: &'static str, found: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { subject, good: true, found: found.into(), meaning: meaning.into(), remedy: None }
    }

    fn bad(
        subject: &'static str,
        found: impl Into<String>,
        meaning: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { subject, good: false, found: found.into(), meaning: meaning.into(), remedy }
    }
}

/// Looks at everything. It takes a quarter of a second, in which the machine's load is watched.
#[must_use]
pub fn examine(interrupt: &Interrupt) -> Vec<Finding> {
    vec![
        processor::build(),
        processor::cores(),
        processor::avx2(),
        processor::governor(),
        processor::clock(),
        processor::load(interrupt),
        network::kernel(),
        network::congestion(),
        network::buffers(),
        network::port(),
        tap::namespaces(),
        tap::device(),
        interface::packet_sockets(),
        interface::xdp(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_says_what_it_means_and_a_bad_one_what_helps() {
        let interrupt = Interrupt::default();
        interrupt.raise();
        for finding in examine(&interrupt) {
            assert!(!finding.found.is_empty() && !finding.meaning.is_empty(), "{finding:?}");
            assert!(finding.good || finding.remedy.is_some(), "{finding:?}");
        }
    }
}

//! `linerate doctor`: examines what this machine can do, what that means for each command, and what
//! would help.

mod finding;
mod interface;
mod network;
mod processor;
mod tap;

pub use finding::Finding;

use linerate_ends::Interrupt;

/// Examines every property. It takes a quarter of a second, in which the machine's load is
/// measured.
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
    fn every_finding_has_a_meaning_and_every_bad_one_a_remedy() {
        let interrupt = Interrupt::default();
        interrupt.raise();
        for finding in examine(&interrupt) {
            assert!(!finding.found.is_empty() && !finding.meaning.is_empty(), "{finding:?}");
            assert!(finding.good || finding.remedy.is_some(), "{finding:?}");
        }
    }
}

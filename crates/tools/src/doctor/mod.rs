//! `linerate doctor`: examines properties of this machine. For each, it says what the property
//! means for the commands that depend on it, and what would improve it.

mod finding;
mod interface;
mod network;
mod processor;
mod tap;

pub use finding::Finding;

use linerate_ends::Interrupt;

/// Examines all properties. This takes a quarter of a second, because the load of the machine is
/// measured over this time.
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

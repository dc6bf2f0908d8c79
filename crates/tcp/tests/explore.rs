//! Runs 120 test cases with random parameters. `cargo xtask explore` runs other cases, for as long
//! as requested.

use linerate_testkit::explore::{Case, Coverage};

#[test]
fn random_cases_end_well_and_cover_the_expected_events() {
    let mut seen = Coverage::default();
    for number in 0..120 {
        let case = Case { seed: 1988, number, simpler: 0 };
        match case.judge() {
            Ok(coverage) => seen.add(&coverage),
            Err(cause) => panic!("cargo xtask explore {case}: {cause}"),
        }
    }
    for event in [
        "fast path: data",
        "fast path: acknowledgements",
        "fast retransmissions",
        "retransmission timeouts",
        "segments out of order",
        "segments that had arrived before",
        "window probes",
        "windows closed",
        "delayed acknowledgements",
        "applications that broke off",
        "connections reset by the peer",
    ] {
        assert!(seen.times(event) > 0, "not seen: {event}\n{seen}");
    }
}

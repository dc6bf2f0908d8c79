//! Runs the scripts of this repository against the kernel of this machine, in network namespaces.
//!
//! Times are not compared, because a busy machine changes them. The kernel must send the segments
//! that the scripts expect, in their order. `linerate script compare` also compares times.

#![allow(clippy::unwrap_used, reason = "a test may unwrap")]

use linerate_link::namespace::isolated_test;
use linerate_script::{Family, Options, ScriptFiles, Verdict, run_on_kernel, run_on_stack};
use linerate_units::Duration;
use std::path::Path;

/// Maximum duration of a script in this test, in virtual time. Longer scripts are skipped.
const LONGEST: Duration = Duration::from_millis(250);
/// Folders whose scripts this test runs. Their results do not depend on real time, so a pause of
/// the machine does not change them.
const TIMELESS: [&str; 15] = [
    "challenge-ack",
    "close",
    "ecn",
    "fast-open",
    "fragments",
    "handshake",
    "icmp",
    "ipv6",
    "nagle",
    "pmtu",
    "reset",
    "syn-cookies",
    "time-wait",
    "timestamps",
    "window",
];
/// Beginning of a comment in the scripts on which Linux and linerate differ; such scripts are
/// skipped. The rest of the comment gives the reason for the difference.
const DIFFERS: &str = "// Linux differs: ";

/// Runs the short scripts in [`TIMELESS`] against the kernel. Returns the number of scripts that
/// were run, and descriptions of those that did not pass.
fn run_short_scripts(family: Family) -> (usize, String) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    let folders = TIMELESS.map(|folder| scripts.join(folder));
    let options = Options { untimed: true, family };
    let (mut failures, mut ran) = (String::new(), 0);
    for file in ScriptFiles::read(&folders, &[]).unwrap().scripts {
        let text = std::fs::read_to_string(&file.name).unwrap();
        let report = run_on_stack(&file.script, &options);
        let is_refused = matches!(report.verdict, Verdict::Refused { .. });
        if is_refused || report.took > LONGEST || text.contains(DIFFERS) {
            continue;
        }
        let report = run_on_kernel(&file.script, &options).unwrap();
        // The kernel disables IPv6 on an interface with an MTU below 1,280 bytes. A script with
        // such an MTU is refused at line 1, and is skipped here.
        if family == Family::Ipv6 && matches!(report.verdict, Verdict::Refused { line: 1, .. }) {
            continue;
        }
        ran += 1;
        if report.verdict != Verdict::Passed {
            failures += &report.verdict.describe(&file.name);
            failures.push('\n');
        }
    }
    (ran, failures)
}

#[test]
fn the_kernel_passes_short_scripts() {
    isolated_test(|| {
        let (ran, failures) = run_short_scripts(Family::Own);
        assert!(
            failures.is_empty(),
            "{failures}repeat one with `linerate script run --against kernel FILE`"
        );
        assert!(ran > 50, "only {ran} scripts were short enough");
    });
}

#[test]
fn the_kernel_passes_short_scripts_over_ipv6() {
    isolated_test(|| {
        let (ran, failures) = run_short_scripts(Family::Ipv6);
        assert!(
            failures.is_empty(),
            "{failures}repeat one with `linerate script run --against kernel --family ipv6 FILE`"
        );
        assert!(ran > 50, "only {ran} scripts were short enough");
    });
}

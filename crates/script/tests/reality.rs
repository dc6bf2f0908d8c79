//! Runs the scripts of this repository against the kernel of this machine, in network namespaces.
//!
//! Times are not compared. The kernel and linerate must agree on the segments and their order,
//! which a busy machine cannot change. `linerate script compare` compares times as well.

#![allow(clippy::unwrap_used, reason = "a test may unwrap")]

use linerate_link::namespace::isolated_test;
use linerate_script::{Options, ScriptFiles, Verdict, run_on_kernel, run_on_stack};
use linerate_units::Duration;
use std::path::Path;

/// Maximum duration of a script in this test. Longer scripts are run only on request.
const LONGEST: Duration = Duration::from_millis(250);
/// Folders of scripts whose result does not depend on real time, so that a pause of the machine
/// cannot change it.
const TIMELESS: [&str; 13] = [
    "challenge-ack",
    "close",
    "ecn",
    "fast-open",
    "handshake",
    "icmp",
    "nagle",
    "pmtu",
    "reset",
    "syn-cookies",
    "time-wait",
    "timestamps",
    "window",
];
/// The comment at the head of a script on which Linux differs. The reason follows it.
const DIFFERS: &str = "// Linux differs: ";

#[test]
fn the_kernel_passes_short_scripts() {
    isolated_test(|| {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
        let folders = TIMELESS.map(|folder| scripts.join(folder));
        let options = Options { untimed: true, ..Options::default() };
        let (mut failures, mut ran) = (String::new(), 0);
        for file in ScriptFiles::read(&folders, &[]).unwrap().scripts {
            let text = std::fs::read_to_string(&file.name).unwrap();
            let is_long = run_on_stack(&file.script, &options).took > LONGEST;
            if is_long || text.contains(DIFFERS) {
                continue;
            }
            let report = run_on_kernel(&file.script, &options).unwrap();
            ran += 1;
            if report.verdict != Verdict::Passed {
                failures += &report.verdict.describe(&file.name);
                failures.push('\n');
            }
        }
        assert!(
            failures.is_empty(),
            "{failures}repeat one with `linerate script run --against kernel FILE`"
        );
        assert!(ran > 40, "only {ran} scripts were short enough");
    });
}

//! The scripts of this repository against the kernel of this machine, in networks of their own.
//!
//! Real time is not judged here: what is sent and in which order is what the kernel and linerate
//! must agree on, and a busy machine cannot change that. `linerate script compare` judges moments,
//! too.

#![allow(clippy::unwrap_used, reason = "a test may unwrap")]

use linerate_link::namespace::isolated_test;
use linerate_script::{Options, ScriptFiles, Verdict, run_on_kernel, run_on_stack};
use linerate_units::Duration;
use std::path::Path;

/// Longer scripts are for people with patience.
const LONGEST: Duration = Duration::from_millis(250);
/// Behaviours in which real time decides nothing: a machine that stood still for a moment does not
/// change what is right in them.
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
/// What a script says at its head if Linux does something else than it asks for, and why that may
/// be.
const DIFFERS: &str = "// Linux differs: ";

#[test]
fn the_kernel_does_what_short_scripts_say() {
    isolated_test(|| {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
        let folders = TIMELESS.map(|folder| scripts.join(folder));
        let options = Options { untimed: true };
        let (mut told, mut ran) = (String::new(), 0);
        for file in ScriptFiles::read(&folders, &[]).unwrap().scripts {
            let text = std::fs::read_to_string(&file.name).unwrap();
            let is_long = run_on_stack(&file.script, &options).took > LONGEST;
            if is_long || text.contains(DIFFERS) {
                continue;
            }
            let report = run_on_kernel(&file.script, &options).unwrap();
            ran += 1;
            if report.verdict != Verdict::Passed {
                told += &report.verdict.told(&file.name);
                told.push('\n');
            }
        }
        assert!(
            told.is_empty(),
            "{told}repeat one with `linerate script run --against kernel FILE`"
        );
        assert!(ran > 40, "only {ran} scripts were short enough");
    });
}

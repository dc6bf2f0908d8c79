//! Runs the scripts of this repository against linerate's host, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test may unwrap")]

use linerate_script::{Options, ScriptFile, ScriptFiles, Verdict, run_on_stack};
use std::path::Path;

fn all() -> Vec<ScriptFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    let found = ScriptFiles::read(&[folder], &[]).unwrap();
    assert!(found.unreadable.is_empty(), "{:?}", found.unreadable);
    found.scripts
}

#[test]
fn every_script_passes() {
    let mut failures = String::new();
    for file in all() {
        let report = run_on_stack(&file.script, &Options::default());
        if report.verdict != Verdict::Passed {
            failures += &report.verdict.describe(&file.name);
            failures.push('\n');
        }
    }
    assert!(failures.is_empty(), "{failures}repeat one with `linerate script run FILE`");
}

#[test]
fn runs_of_a_script_are_identical() {
    for file in all() {
        let run = || run_on_stack(&file.script, &Options::default());
        assert_eq!(run(), run(), "{}", file.name);
    }
}

/// The first line of a script tells its reader the rule that is tested, with the section of the
/// RFC.
#[test]
fn every_script_starts_with_its_rule() {
    for file in all() {
        let text = std::fs::read_to_string(&file.name).unwrap();
        let comment: String = text.lines().take_while(|line| line.starts_with("//")).collect();
        assert!(
            comment.contains("RFC ") && comment.len() > 40,
            "{} does not state its rule",
            file.name
        );
    }
}

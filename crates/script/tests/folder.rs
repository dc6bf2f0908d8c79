//! The scripts of this repository, each in virtual time.

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
    let mut told = String::new();
    for file in all() {
        let report = run_on_stack(&file.script, &Options::default());
        if report.verdict != Verdict::Passed {
            told += &report.verdict.told(&file.name);
            told.push('\n');
        }
    }
    assert!(told.is_empty(), "{told}repeat one with `linerate script run FILE`");
}

#[test]
fn a_script_ends_the_same_every_time() {
    for file in all() {
        let run = || run_on_stack(&file.script, &Options::default());
        assert_eq!(run(), run(), "{}", file.name);
    }
}

/// A script is read by people before it is run: it says which rule it is about, and where that
/// stands.
#[test]
fn every_script_opens_with_its_rule() {
    for file in all() {
        let text = std::fs::read_to_string(&file.name).unwrap();
        let comment: String = text.lines().take_while(|line| line.starts_with("//")).collect();
        assert!(
            comment.contains("RFC ") && comment.len() > 40,
            "{} does not say its rule",
            file.name
        );
    }
}

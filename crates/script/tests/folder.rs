//! Runs the scripts of this repository against linerate's host, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test may unwrap")]

use linerate_script::{Family, Options, ScriptFile, ScriptFiles, Verdict, run_on_stack};
use std::path::Path;

fn all() -> Vec<ScriptFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    let found = ScriptFiles::read(&[folder], &[]).unwrap();
    assert!(found.unreadable.is_empty(), "{:?}", found.unreadable);
    found.scripts
}

/// Beginning of the comment that a script must have before `--ip_version=ipv4`. The rest of the
/// comment gives the reason why the script cannot run over IPv6.
const IPV4_ONLY: &str = "// IPv4 only: ";

/// Runs scripts, and returns the descriptions of those that do not pass.
fn failures(files: &[ScriptFile], family: Family) -> String {
    let options = Options { family, ..Options::default() };
    let mut failures = String::new();
    for file in files {
        let report = run_on_stack(&file.script, &options);
        if report.verdict != Verdict::Passed {
            failures += &report.verdict.describe(&file.name);
            failures.push('\n');
        }
    }
    failures
}

#[test]
fn every_script_passes() {
    let failures = failures(&all(), Family::Own);
    assert!(failures.is_empty(), "{failures}repeat one with `linerate script run FILE`");
}

#[test]
fn every_script_that_does_not_depend_on_ipv4_passes_over_ipv6() {
    let (about_ipv4, others): (Vec<_>, Vec<_>) =
        all().into_iter().partition(|file| file.script.settings.ipv4_only);
    let failures = failures(&others, Family::Ipv6);
    assert!(
        failures.is_empty(),
        "{failures}repeat one with `linerate script run --family ipv6 FILE`"
    );
    assert!(others.len() > 5 * about_ipv4.len(), "{} are about IPv4", about_ipv4.len());
    for file in about_ipv4 {
        let text = std::fs::read_to_string(&file.name).unwrap();
        assert!(text.contains(IPV4_ONLY), "{} does not say why it is about IPv4", file.name);
        let options = Options { family: Family::Ipv6, ..Options::default() };
        let verdict = run_on_stack(&file.script, &options).verdict;
        assert!(matches!(verdict, Verdict::Refused { .. }), "{}: {verdict:?}", file.name);
    }
}

#[test]
fn runs_of_a_script_are_identical() {
    for file in all() {
        let run = || run_on_stack(&file.script, &Options::default());
        assert_eq!(run(), run(), "{}", file.name);
    }
}

/// Each script must begin with a comment that states the tested rule and the section of its RFC.
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

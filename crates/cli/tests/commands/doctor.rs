//! Tests of `linerate doctor` on the machine that runs the tests.

use crate::support::run;

#[test]
fn every_line_is_a_finding_or_a_remedy_and_the_exit_code_reflects_them() {
    let (code, stdout, stderr) = run(&["doctor"]);
    for subject in
        ["cores", "AVX2", "kernel", "namespaces", "TAP", "buffers", "congestion", "clock", "load"]
    {
        assert!(stdout.contains(subject), "{subject} is missing: {stdout}");
    }
    let good = |line: &&str| line.starts_with("OK  ");
    let bad = |line: &&str| line.starts_with("NO  ");
    let remedy = |line: &&str| line.trim_start().starts_with("→ ");
    assert!(stdout.lines().all(|line| good(&line) || bad(&line) || remedy(&line)), "{stdout}");
    let any_bad = stdout.lines().any(|line| bad(&line));
    assert_eq!((code, stderr.is_empty()), if any_bad { (1, false) } else { (0, true) });
}

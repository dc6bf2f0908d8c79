//! `linerate doctor`: prints a line for each property of this machine that affects a command.

use crate::output::{Failure, print};
use clap::Args;
use linerate_ends::Interrupt;
use linerate_tools::doctor::{Finding, examine};
use std::fmt::Write;

/// The options of `linerate doctor`: none.
#[derive(Debug, Args)]
#[command(after_help = "The exit code is 0 if everything is as it should be, and 1 otherwise.")]
pub(crate) struct DoctorArgs {}

/// Examines the machine, and prints a line for each property, with a remedy where one is needed.
pub(crate) fn run(_args: &DoctorArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let findings = examine(interrupt);
    print(&findings.iter().map(lines).collect::<String>())?;
    match findings.iter().filter(|finding| !finding.good).count() {
        0 => Ok(()),
        1 => Err(Failure::running("one thing is not as it should be")),
        bad => Err(Failure::running(format!("{bad} things are not as they should be"))),
    }
}

fn lines(finding: &Finding) -> String {
    let verdict = if finding.good { "OK" } else { "NO" };
    let mut text =
        format!("{verdict}  {:<11} {}: {}\n", finding.subject, finding.found, finding.meaning);
    if let Some(remedy) = &finding.remedy {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:16}→ {remedy}", "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_printed_below_its_finding() {
        let finding = Finding {
            subject: "cores",
            good: false,
            found: "1".into(),
            meaning: "both ends take turns".into(),
            remedy: Some("a second core".into()),
        };
        let expected = "NO  cores       1: both ends take turns\n                → a second core\n";
        assert_eq!(lines(&finding), expected);
    }
}

//! The text report, which begins with the verdict. The evidence and the tables follow.

use crate::paint::{self, Style};
use crate::report::Report;
use crate::{cells, diagonal, fast_path, heading, heat_map, model};
use linerate_verdict::{Finding, FindingKind};
use std::fmt::Write;

impl Report<'_> {
    /// Returns the report as text. `style` describes the terminal or file to which it is written.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let sections = [
            verdict(&self.findings, style),
            heading::text(self),
            findings_text(&self.findings, style),
            heat_map::text(self, style),
            heat_map::limits_text(self, style),
            model::text(self),
            diagonal::text(self),
            cells::text(self, style),
            fast_path::text(self),
        ];
        let sections = sections.into_iter().filter(|section| !section.is_empty());
        sections.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the verdict: whether the sweep is conclusive, and what limits the cells. The verdict
/// consists of the findings that [`is_verdict`] selects; empty if it selects none.
fn verdict(findings: &[Finding], style: Style) -> String {
    let lines = findings
        .iter()
        .filter(|finding| is_verdict(finding))
        .flat_map(|finding| paint::wrapped(&finding.text, style.width));
    lines.map(|line| line + "\n").collect()
}

/// Does the finding belong to the verdict, rather than to the list of findings?
fn is_verdict(finding: &Finding) -> bool {
    use FindingKind::{Contended, Limits, Precision, Predicted};
    matches!(finding.kind, Contended | Precision | Limits | Predicted)
}

/// Returns the findings that do not belong to the verdict, as a list of sentences.
fn findings_text(findings: &[Finding], style: Style) -> String {
    let mut text = "What it means\n".to_owned();
    for finding in findings.iter().filter(|finding| !is_verdict(finding)) {
        for (index, line) in
            paint::wrapped(&finding.text, style.width.saturating_sub(4)).iter().enumerate()
        {
            let bullet = if index == 0 { "•" } else { " " };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {bullet} {line}");
        }
    }
    text
}

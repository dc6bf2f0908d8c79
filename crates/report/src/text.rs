//! The text report: its sections in order.

use crate::paint::{self, Style};
use crate::report::Report;
use crate::{cells, diagonal, fast_path, heading, heat_map};
use linerate_verdict::Finding;
use std::fmt::Write;

impl Report<'_> {
    /// Returns the text report.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let sections = [
            heading::text(self),
            cells::text(self, style),
            diagonal::text(self),
            heat_map::text(self, style),
            fast_path::text(self),
            findings_text(&self.findings, style),
        ];
        let sections = sections.into_iter().filter(|section| !section.is_empty());
        sections.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the findings as a list of sentences.
fn findings_text(findings: &[Finding], style: Style) -> String {
    let mut text = "What it means\n".to_owned();
    for finding in findings {
        for (index, line) in
            paint::wrapped(&finding.text, style.width.saturating_sub(4)).iter().enumerate()
        {
            let bullet = if index == 0 { "•" } else { " " };
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {bullet} {line}");
        }
    }
    text
}

//! The report as a single HTML file, which can be read without a network and without scripts.
//!
//! Charts are inline SVG, and tables have the same values. The page's only script describes the
//! cell of the heat map under the pointer or the keyboard focus.

mod chart;
mod counters;
mod curves;
mod elements;
mod facts;
mod heat_map;
mod scatter;
#[cfg(test)]
mod tests;

use crate::report::Report;
use crate::xml::escaped;
use elements::section;
use linerate_evidence::notation;
use linerate_units::Bytes;
use serde::Serialize;
use serde_json::Value;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The sections of the page, each as a pair of the identifier (for links) and the heading.
const SECTIONS: [(&str, &str); 7] = [
    ("meaning", "What it means"),
    ("cells", "All cells"),
    ("curves", "Throughput by buffer"),
    ("runs", "All runs"),
    ("counters", "Counters of both ends over time"),
    ("facts", "Machine and plan"),
    ("repeat", "How to repeat it"),
];

impl Report<'_> {
    /// Returns the report as an HTML page. `plan` is the complete plan: the design of this report,
    /// and the settings of the engine.
    #[must_use]
    pub fn html(&self, plan: &impl Serialize) -> String {
        // The conversion cannot fail, because a plan consists of strings, numbers and maps with
        // string keys.
        let plan = serde_json::to_value(plan).unwrap_or(Value::Null);
        let contents = [
            self.meaning(),
            heat_map::content(self),
            curves::content(self),
            scatter::content(self),
            counters::content(self),
            facts::content(self, &plan),
            facts::repetition(self),
        ];
        let sections: String = SECTIONS
            .iter()
            .zip(contents)
            .map(|(&(id, heading), content)| section(id, heading, &content))
            .collect();
        let links: String = SECTIONS
            .iter()
            .map(|(id, heading)| format!("<li><a href=\"#{id}\">{heading}</a></li>"))
            .collect();
        let title = escaped(&format!("linerate sweep: {}", self.start.facts.bench.description));
        let origin = escaped(&self.origin());
        let partial = self.partial();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
             name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta \
             name=\"color-scheme\" content=\"light dark\">\n<meta \
             http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
             style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<link rel=\"icon\" \
             href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#main\">Skip to the report</a>\n<header>\n<h1>{title}</h1>\n\
             <p>{origin}</p>\n{partial}<nav aria-label=\"Sections\"><ul>{links}</ul></nav>\n\
             </header>\n<main id=\"main\">\n{sections}</main>\n<script>\n{SCRIPT}</script>\n\
             </body>\n</html>\n"
        )
    }

    /// Returns the HTML list of findings.
    fn meaning(&self) -> String {
        let items: String = self
            .findings
            .iter()
            .map(|finding| format!("<li>{}</li>\n", escaped(&finding.text)))
            .collect();
        format!("<ul class=\"findings\">\n{items}</ul>\n")
    }

    /// Describes when and on which machine the runs were made, and how many runs the plan has.
    fn origin(&self) -> String {
        let facts = &self.start.facts;
        format!(
            "{}, {} × {} of {}, on {} with {}, {}",
            facts.started,
            notation::plural(self.design.cell_count(), "cell"),
            notation::plural(self.design.repeat.get().into(), "run"),
            Bytes::new(self.design.bytes.get()),
            facts.cpu.model,
            notation::plural(facts.cpu.cores as u64, "core"),
            facts.kernel,
        )
    }

    /// Returns a note if some runs of the plan are not complete; empty if all are, or if the sweep
    /// has a time budget.
    fn partial(&self) -> String {
        let (done, all) = (self.runs.len() as u64, self.design.run_count());
        // With a time budget, some runs of the plan usually cannot be made. A finding already says
        // that their cells are predicted, so no note is needed.
        if done >= all || self.design.budget.is_some() {
            return String::new();
        }
        format!(
            "<p class=\"note\" role=\"note\">Partial: {} of {} runs are complete.</p>\n",
            notation::count(done),
            notation::count(all)
        )
    }
}

//! The page's sections about the machine and the plan, and about how to repeat the sweep.

use super::elements::{paragraph, table};
use crate::report::Report;
use crate::xml::escaped;
use linerate_evidence::notation;
use linerate_units::Bytes;
use serde_json::Value;

/// Returns the HTML tables of the machine, its settings and the plan.
pub(crate) fn content(report: &Report<'_>, plan: &Value) -> String {
    let facts = &report.start.facts;
    let absent = || "not known".to_owned();
    let machine = [
        ("machine", facts.machine.name.clone()),
        ("architecture", facts.machine.architecture.clone()),
        ("processor", facts.cpu.model.clone()),
        ("cores", facts.cpu.cores.to_string()),
        ("governor", facts.cpu.governor.clone().unwrap_or_else(absent)),
        (
            "memory",
            facts.machine.memory_bytes.map_or_else(absent, |bytes| Bytes::new(bytes).to_string()),
        ),
        ("virtual machine", if facts.machine.virtual_machine { "yes" } else { "no" }.to_owned()),
        ("load average at the start", facts.machine.load_average.clone().unwrap_or_else(absent)),
        ("kernel", facts.kernel.clone()),
        ("versions", facts.versions.text()),
        ("bench", facts.bench.description.clone()),
        ("100 %", report.start.maximum.explanation().to_owned()),
    ];
    let machine = machine.into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    let settings = facts.bench.settings.iter().chain(&facts.sysctls);
    let settings: Vec<_> =
        settings.map(|(name, value)| vec![name.clone(), value.clone()]).collect();
    let head = ["name", "value"];
    let mut text = table("The machine", &head, &machine.collect::<Vec<_>>());
    if !settings.is_empty() {
        text.push_str(&table("Its settings", &head, &settings));
    }
    text + &table("The plan", &head, &plan_rows(report, plan))
}

/// Returns a table row for each field of the plan that has a value.
fn plan_rows(report: &Report<'_>, plan: &Value) -> Vec<Vec<String>> {
    let fields = plan.as_object().into_iter().flatten();
    let sizes = |sizes: &[linerate_evidence::BufferSize]| {
        sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let row = |(name, value): (&String, &Value)| {
        let value = match (name.as_str(), value) {
            (_, Value::Null) => return None,
            ("send_buffers", _) => sizes(report.design.send_buffers.sizes()),
            ("receive_buffers", _) => sizes(report.design.receive_buffers.sizes()),
            (_, Value::String(text)) => text.clone(),
            (_, value) => value.to_string(),
        };
        Some(vec![name.replace('_', " "), value])
    };
    fields.filter_map(row).collect()
}

/// Returns the HTML content of the section with the commands that repeat the sweep.
pub(crate) fn repetition(report: &Report<'_>) -> String {
    let facts = &report.start.facts;
    let commit = facts.versions.commit.as_deref().unwrap_or_default();
    let checkout =
        if commit.is_empty() { String::new() } else { format!("git checkout {commit}\n") };
    let command = facts.options.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let flag = if facts.versions.debug_build { "" } else { " --release" };
    let commands = format!("{checkout}cargo build{flag}\n{command}\n");
    format!(
        "{}<div class=\"wide\" role=\"region\" aria-label=\"Commands\" \
         tabindex=\"0\"><pre><code>{}</code></pre></div>\n",
        paragraph(&format!(
            "Built with {}. Seed {} gives the {} in the order shown here.",
            facts.versions.rustc,
            report.design.seed,
            notation::plural(report.design.run_count(), "run"),
        )),
        escaped(&commands)
    )
}

/// Quotes a word for a POSIX shell, if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("--out=a/b"), "--out=a/b");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}

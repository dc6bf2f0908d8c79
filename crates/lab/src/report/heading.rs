//! What was measured, on what, and against what.

use super::{Report, paint};
use crate::figures;
use crate::maximum::Maximum;
use linerate_units::Bytes;

pub(super) fn text(report: &Report<'_>) -> String {
    let facts = &report.start.facts;
    let lines = [
        format!("linerate sweep: {}", facts.bench.description),
        runs(report),
        format!(
            "{}, {}, {}",
            facts.cpu.model,
            figures::plural(facts.cpu.cores as u64, "core"),
            facts.kernel
        ),
        format!("{}, begun {}", facts.versions.text(), facts.started),
        maximum(&report.start.maximum),
    ];
    let lines = lines.iter().flat_map(|line| paint::wrapped(line, 100));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// How much was measured.
fn runs(report: &Report<'_>) -> String {
    let plan = report.plan;
    let (done, all) = (report.runs.len() as u64, plan.runs());
    let some =
        if done < all { format!("; {} of them made", figures::count(done)) } else { String::new() };
    format!(
        "{} × {} of {}, in the random order of seed {}{some}; KB = 1,024 bytes, medians with 95 % intervals",
        figures::plural(plan.cells(), "cell"),
        figures::plural(plan.repeat.get().into(), "run"),
        Bytes::new(plan.bytes.get()),
        plan.seed,
    )
}

/// What a hundred per cent is, and which of the two kinds.
fn maximum(maximum: &Maximum) -> String {
    match maximum {
        Maximum::LineRate { bytes_per_second, explanation, .. } => format!(
            "100 % is {} KB/s, the theoretical maximum of this framing: {explanation}",
            figures::kilobytes(*bytes_per_second)
        ),
        Maximum::Floor { bytes_per_second, median, samples, explanation, .. } => format!(
            "100 % is {} KB/s, no theoretical maximum: {explanation}; the fastest of {}, their median is {}",
            figures::kilobytes(*bytes_per_second),
            figures::plural(samples.len() as u64, "measurement"),
            figures::kilobytes(*median),
        ),
        Maximum::Unknown { explanation } => format!("There is no 100 %: {explanation}"),
    }
}

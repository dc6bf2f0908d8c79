//! The heading of a text report: the bench, the plan, the machine and the maximum throughput.

use crate::paint;
use crate::report::Report;
use linerate_evidence::Maximum;
use linerate_evidence::notation;
use linerate_units::Bytes;

/// Returns the heading in lines of at most 100 characters.
pub(crate) fn text(report: &Report<'_>) -> String {
    let facts = &report.start.facts;
    let lines = [
        format!("linerate sweep: {}", facts.bench.description),
        runs(report),
        format!(
            "{}, {}, {}",
            facts.cpu.model,
            notation::plural(facts.cpu.cores as u64, "core"),
            facts.kernel
        ),
        format!("{}, begun {}", facts.versions.text(), facts.started),
        maximum(&report.start.maximum),
    ];
    let lines = lines.iter().flat_map(|line| paint::wrapped(line, 100));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Describes how many cells and runs the sweep has, and in which order the runs were made.
fn runs(report: &Report<'_>) -> String {
    let design = report.design;
    let (done, all) = (report.runs.len() as u64, design.run_count());
    let some = if done < all {
        format!("; {} of them made", notation::count(done))
    } else {
        String::new()
    };
    let baseline = match design.baseline_count() {
        0 => String::new(),
        runs => format!(" and {} of the baseline", notation::plural(runs, "run")),
    };
    format!(
        "{} × {} of {}{baseline}, in the random order of seed {}{some}; KB = 1,024 bytes, medians \
         with 95 % intervals",
        notation::plural(design.cell_count(), "cell"),
        notation::plural(design.repeat.get().into(), "run"),
        Bytes::new(design.bytes.get()),
        design.seed,
    )
}

/// Describes the rate that the report calls 100 %, and how this rate was determined.
fn maximum(maximum: &Maximum) -> String {
    match maximum {
        Maximum::LineRate { bytes_per_second, explanation, .. } => format!(
            "100 % is {} KB/s, the theoretical maximum of this framing: {explanation}",
            notation::kilobytes(*bytes_per_second)
        ),
        Maximum::Floor { bytes_per_second, median, samples, explanation, .. } => format!(
            "100 % is {} KB/s, no theoretical maximum: {explanation}; the fastest of {}, their \
             median is {}",
            notation::kilobytes(*bytes_per_second),
            notation::plural(samples.len() as u64, "measurement"),
            notation::kilobytes(*median),
        ),
        Maximum::Unknown { explanation } => format!("There is no 100 %: {explanation}"),
    }
}

//! The section of the text report about header prediction: hits, and the reasons of misses.

use crate::report::Report;
use linerate_evidence::notation;
use linerate_evidence::{EndCounters, FastPath};

/// Maximum number of reasons of misses that are listed by name. The misses of all other reasons are
/// summed.
const TOLD: usize = 6;

/// Returns the section about header prediction; empty if neither end reports hits and misses.
pub(crate) fn text(report: &Report<'_>) -> String {
    let sender = line("sender", total(report.runs.iter().map(|run| &run.counters.sender)));
    let receiver = line("receiver", total(report.runs.iter().map(|run| &run.counters.receiver)));
    let lines = [sender, receiver].concat();
    if lines.is_empty() { lines } else { format!("Segments that took the fast path\n{lines}") }
}

/// Formats the line about the sender or the receiver, with the hits and misses of all runs. Returns
/// an empty string if this end has no header prediction or received no segments.
fn line(end: &str, path: Option<FastPath>) -> String {
    let line = path.and_then(|path| {
        let share = notation::fine_percent(path.share()?);
        let segments = notation::count(path.segments());
        Some(format!("  {end}: {share} of {segments} segments; misses: {}\n", misses(&path)))
    });
    line.unwrap_or_default()
}

/// Returns the sum of hits and misses over `ends`; `None` if no end has header prediction.
pub(crate) fn total<'a>(ends: impl Iterator<Item = &'a EndCounters>) -> Option<FastPath> {
    ends.filter_map(|end| end.fast_path.clone()).reduce(|mut sum, path| {
        sum.add(&path);
        sum
    })
}

/// Formats the reasons of misses with their counts, the most frequent first.
fn misses(path: &FastPath) -> String {
    let mut reasons: Vec<_> = path.misses.iter().filter(|&(_, &count)| count > 0).collect();
    if reasons.is_empty() {
        return "none".to_owned();
    }
    reasons.sort_by_key(|&(_, &count)| std::cmp::Reverse(count));
    let told: Vec<String> = reasons
        .iter()
        .take(TOLD)
        .map(|&(reason, &count)| format!("{} {}", notation::count(count), reason.replace('_', " ")))
        .collect();
    let rest = reasons.iter().skip(TOLD).fold(0_u64, |sum, &(_, &count)| sum.saturating_add(count));
    let rest = if rest > 0 { format!(", {} others", notation::count(rest)) } else { String::new() };
    told.join(", ") + &rest
}

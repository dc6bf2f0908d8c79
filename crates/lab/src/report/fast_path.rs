//! The share of segments that took the fast path, and why the others did not.

use super::Report;
use crate::bench::{EndCounters, FastPath};
use crate::figures;

/// Misses that are told one by one.
const TOLD: usize = 6;

/// Nothing, if neither end has a fast path.
pub(super) fn text(report: &Report<'_>) -> String {
    let sender = line("sender", total(report.runs.iter().map(|run| &run.counters.sender)));
    let receiver = line("receiver", total(report.runs.iter().map(|run| &run.counters.receiver)));
    let lines = [sender, receiver].concat();
    if lines.is_empty() { lines } else { format!("Segments that took the fast path\n{lines}") }
}

/// One end's line; nothing if it has no fast path, or has seen no segment.
fn line(end: &str, path: Option<FastPath>) -> String {
    let line = path.and_then(|path| {
        let share = figures::fine_percent(path.share()?);
        let segments = figures::count(path.segments());
        Some(format!("  {end}: {share} of {segments} segments; misses: {}\n", misses(&path)))
    });
    line.unwrap_or_default()
}

/// The sum over all runs; none if no run counted any.
pub(super) fn total<'a>(ends: impl Iterator<Item = &'a EndCounters>) -> Option<FastPath> {
    ends.filter_map(|end| end.fast_path.clone()).reduce(|mut sum, path| {
        sum.add(&path);
        sum
    })
}

/// The reasons, the most frequent first.
fn misses(path: &FastPath) -> String {
    let mut reasons: Vec<_> = path.misses.iter().filter(|&(_, &count)| count > 0).collect();
    if reasons.is_empty() {
        return "none".to_owned();
    }
    reasons.sort_by_key(|&(_, &count)| std::cmp::Reverse(count));
    let told: Vec<String> = reasons
        .iter()
        .take(TOLD)
        .map(|&(reason, &count)| format!("{} {}", figures::count(count), reason.replace('_', " ")))
        .collect();
    let rest = reasons.iter().skip(TOLD).fold(0_u64, |sum, &(_, &count)| sum.saturating_add(count));
    let rest = if rest > 0 { format!(", {} others", figures::count(rest)) } else { String::new() };
    told.join(", ") + &rest
}

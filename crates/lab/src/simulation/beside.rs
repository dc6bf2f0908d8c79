//! What documents say of a scenario, beside what came of it here.

use super::load::{ScenarioError, load};
use crate::figures::thousands;
use linerate_sim::{Blueprint, Keep, Outcome, Published, TransferOptions};
use std::fmt::Write;

/// The text about a run's published figures; none if nobody has published any. A figure that says how many times
/// another scenario is better is measured by running that one too, with the same seed.
///
/// # Errors
/// If the scenario that a figure is to be set against cannot be had.
pub fn beside_published(
    name: &str,
    changes: &[String],
    seed: u64,
    blueprint: &Blueprint,
    outcome: &Outcome,
) -> Result<String, ScenarioError> {
    let mut text = String::new();
    for published in blueprint.published() {
        let ours = match &published.against {
            None => published.ours(outcome),
            Some(other) => times(name, changes, seed, published, other, outcome)?,
        };
        describe(&mut text, published, ours);
    }
    Ok(text)
}

/// How many times our figure the other scenario's is.
fn times(
    name: &str,
    changes: &[String],
    seed: u64,
    published: &Published,
    other: &str,
    outcome: &Outcome,
) -> Result<Option<f64>, ScenarioError> {
    let scenario = if other.contains('=') {
        let changes: Vec<String> = changes.iter().cloned().chain([other.to_owned()]).collect();
        load(name, &changes)?
    } else {
        load(other, &[])?
    };
    let theirs = scenario.blueprint()?.run(seed, &TransferOptions::default(), Keep::default());
    let ours = outcome.measure(&published.measure).filter(|&ours| ours > 0.0);
    Ok(theirs.measure(&published.measure).zip(ours).map(|(theirs, ours)| theirs / ours))
}

/// Writing to a string cannot fail.
fn describe(text: &mut String, published: &Published, ours: Option<f64>) {
    let figure = &published.figure;
    let [low, high] = figure.range;
    let (ours, verdict) = match ours {
        None => ("nothing".to_owned(), "there was nothing to measure".to_owned()),
        Some(ours) => (short(ours), verdict(published, ours)),
    };
    let _ = writeln!(
        text,
        "{:<8} {ours} {unit} here; published: {} {unit} ({} to {}): {verdict}\n         {}\n         {}",
        published.id,
        short(figure.value),
        short(low),
        short(high),
        figure.source,
        published.word,
        unit = figure.unit,
    );
}

fn verdict(published: &Published, ours: f64) -> String {
    if published.admits(ours) {
        return "within what is published".to_owned();
    }
    let off = (ours / published.figure.value - 1.0) * 100.0;
    let direction = if off < 0.0 { "below" } else { "above" };
    format!("MISSED, {:.0} % {direction} it", off.abs())
}

fn short(value: f64) -> String {
    if value >= 100.0 { thousands(value) } else { format!("{}", (value * 100.0).round() / 100.0) }
}

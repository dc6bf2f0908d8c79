//! Compares the figures of a simulated run with published figures.

use crate::load::{ScenarioError, load};
use linerate_evidence::notation::thousands;
use linerate_sim::{Blueprint, Keep, Outcome, Published, TransferOptions};
use std::fmt::Write;

/// Returns a text that compares the figures of this run with the published figures of its scenario.
/// The text is empty if the scenario has no published figures.
///
/// A published figure may be the ratio between two scenarios. This function then runs the other
/// scenario with this run's seed.
///
/// # Errors
/// If the other scenario of a ratio cannot be loaded.
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

/// Runs `other`, the other scenario of a published ratio. Returns its figure divided by that of
/// `outcome`, the outcome of the present scenario. Returns `None` if either figure is missing, or
/// that of `outcome` is zero.
fn times(
    name: &str,
    changes: &[String],
    seed: u64,
    published: &Published,
    other: &str,
    outcome: &Outcome,
) -> Result<Option<f64>, ScenarioError> {
    let scenario = if other.contains('=') {
        let mut scenario = load(name, changes)?;
        scenario.set(other)?;
        scenario
    } else {
        load(other, &[])?
    };
    let theirs = scenario.blueprint()?.run(seed, &TransferOptions::default(), Keep::default());
    let ours = outcome.measure(&published.measure).filter(|&ours| ours > 0.0);
    Ok(theirs.measure(&published.measure).zip(ours).map(|(theirs, ours)| theirs / ours))
}

/// Appends the comparison with one published figure. Errors of `write!` are ignored, because
/// writing to a string cannot fail.
fn describe(text: &mut String, published: &Published, ours: Option<f64>) {
    let figure = &published.figure;
    let [low, high] = figure.range;
    let (ours, verdict) = match ours {
        None => ("nothing".to_owned(), "there was nothing to measure".to_owned()),
        Some(ours) => (short(ours), verdict(published, ours)),
    };
    let _ = writeln!(
        text,
        "{:<8} {ours} {unit} here; published: {} {unit} ({} to {}): {verdict}\n\
         {:9}{}\n{:9}{}",
        published.id,
        short(figure.value),
        short(low),
        short(high),
        "",
        figure.source,
        "",
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a scenario with these changes, and returns the comparison.
    fn said(name: &str, changes: &[&str]) -> String {
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let blueprint = load(name, &changes).unwrap().blueprint().unwrap();
        let outcome = blueprint.run(1, &TransferOptions::default(), Keep::default());
        beside_published(name, &changes, 1, &blueprint, &outcome).unwrap()
    }

    #[test]
    fn a_ratio_divides_the_other_scenario_by_this_one() {
        let text = said("82586-receiver", &["transfer.bytes=100000"]);
        assert!(text.starts_with("J10-27 ") && text.contains("within what is published"), "{text}");
    }

    #[test]
    fn the_other_scenario_of_a_ratio_can_be_a_change_of_this_one() {
        let itself = said("3c503-32k", &["transfer.bytes=300000", "transfer.receive_buffer=4096"]);
        let ours = "H-5      1 times here; published: 3 times (1.5 to 5): MISSED, 67 % below it\n";
        assert!(itself.contains(ours), "{itself}");
        let other = said("3c503-32k", &["transfer.bytes=300000"]);
        assert!(other.contains("H-5 ") && !other.contains(" 1 times here"), "{other}");
    }

    #[test]
    fn a_miss_states_its_direction_and_a_figure_without_a_measurement_is_no_miss() {
        let blueprint = load("82586-receiver", &[]).unwrap().blueprint().unwrap();
        let [published] = blueprint.published() else { panic!("one figure is published of it") };
        let said = |ours| {
            let mut text = String::new();
            describe(&mut text, published, ours);
            text.lines().next().unwrap().rsplit_once(": ").unwrap().1.to_owned()
        };
        assert_eq!(
            [None, Some(1.0), Some(2.0), Some(5_000.0)].map(said),
            [
                "there was nothing to measure",
                "MISSED, 75 % below it",
                "within what is published",
                "MISSED, 124900 % above it"
            ]
        );
    }

    #[test]
    fn small_figures_keep_two_decimals() {
        assert_eq!([0.127, 12.5, 99.994, 1_000.4].map(short), ["0.13", "12.5", "99.99", "1,000"]);
    }
}

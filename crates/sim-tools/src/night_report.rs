//! The report of a simulated night: its figures beside those of 1988, and all parameters.

use crate::night::{ColumnOutcome, Night};
use crate::published::{MOST, wire_by_formula};
use linerate_evidence::notation::{percent, thousands};
use linerate_sim::Setting;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns the report of a night that took `seconds` to simulate. Errors of `write!` are ignored,
/// because writing to a string cannot fail.
#[must_use]
pub fn night_text(night: &Night, seconds: f64) -> String {
    let mut text = String::new();
    for column in &night.columns {
        column_text(&mut text, column);
    }
    score_text(&mut text, night);
    speed_text(&mut text, night, seconds);
    parameters_text(&mut text, night);
    text
}

fn column_text(text: &mut String, column: &ColumnOutcome) {
    let _ = writeln!(text, "{}: {}", column.column.title, column.scenario.name());
    let _ = writeln!(
        text,
        "  both buffers   task KB/s   +/-     step        range   of {MOST:.0}   published    \
         error   wire Mb/s   true Mb/s   idle   idle   collisions\n{:8}packets{:76}by \
         formula             sender  rec.   per frame",
        "", ""
    );
    let mut before = None;
    for packets in 1..=17 {
        let Some(cell) = column.diagonal(packets) else { continue };
        let (published, error) = match column.column.published(packets) {
            Some(published) => (
                format!("{published:.0}"),
                format!("{:+.1} %", (cell.kilobytes / published - 1.0) * 100.0),
            ),
            None => ("held out".to_owned(), String::new()),
        };
        let step =
            before.replace(cell.kilobytes).map(|before| (cell.kilobytes / before - 1.0) * 100.0);
        let _ = writeln!(
            text,
            "  {packets:>12} {:>11} {:>5} {:>8} {:>12} {:>8} {published:>11} {error:>8} {:>11.2} \
             {:>11.2} {:>6} {:>6} {:>9.2}",
            thousands(cell.kilobytes),
            cell.standard_error.map(|error| format!("{error:.1}")).unwrap_or_default(),
            step.map(|step| format!("{step:+.1} %")).unwrap_or_default(),
            format!("{:.0}-{:.0}", cell.range.0, cell.range.1),
            percent(cell.kilobytes / MOST),
            wire_by_formula(cell.kilobytes) / 1e6,
            cell.wire_bits / 1e6,
            percent(cell.sender_idle),
            percent(cell.receiver_idle),
            cell.collisions_per_frame,
        );
    }
    text.push_str(
        "  +/-: the standard error of the mean of a cell's transfers; step: from the row above\n",
    );
    if let Some((&(send, receive), best)) =
        column.cells.iter().max_by(|(_, one), (_, other)| one.kilobytes.total_cmp(&other.kilobytes))
    {
        let _ = writeln!(
            text,
            "  best cell: {send} × {receive} packets, {} KB/s",
            thousands(best.kilobytes)
        );
    }
    text.push('\n');
}

fn score_text(text: &mut String, night: &Night) {
    let errors: Vec<f64> = night
        .columns
        .iter()
        .flat_map(ColumnOutcome::errors)
        .map(|(_, error)| error.abs())
        .collect();
    let mean =
        errors.iter().sum::<f64>() / f64::from(u32::try_from(errors.len()).unwrap_or(1).max(1));
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let _ = writeln!(
        text,
        "{} calibration cells: mean error {:.1} %, worst {:.1} %. If the mail's KB is 1,000 bytes, \
         every published figure is 2.4 % less in these units.",
        errors.len(),
        mean * 100.0,
        worst * 100.0
    );
}

fn speed_text(text: &mut String, night: &Night, seconds: f64) {
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let frames = night.frames() as f64;
    let _ = writeln!(
        text,
        "{} transfers, {} frames in {seconds:.1} s: {} frames a second\n",
        night.transfers(),
        thousands(frames),
        thousands(frames / seconds)
    );
}

/// Appends the parameters of both scenarios. A parameter from a file that both scenarios use, such
/// as a NIC file, is listed only once.
fn parameters_text(text: &mut String, night: &Night) {
    let mut rows = BTreeMap::new();
    for column in &night.columns {
        for (key, setting) in column.scenario.settings().iter() {
            if let Setting::Number(number) = setting {
                let path = column.scenario.settings().path_in_file(key, number);
                rows.entry(path).or_insert(number);
            }
        }
    }
    let tuned: Vec<&String> =
        rows.iter().filter(|(_, number)| number.tuned).map(|(key, _)| key).collect();
    let _ = writeln!(text, "{} parameters, {} of them tuned", rows.len(), tuned.len());
    for (key, number) in &rows {
        let [low, high] = number.range;
        let tuned = if number.tuned { "tuned" } else { "" };
        let value = format!("{} {}", number.value, number.unit);
        let range = format!("{low} to {high}");
        let _ = writeln!(text, "  {key:<36} {value:>16} {range:>16} {tuned:>6}  {}", number.source);
    }
}

/// Returns the results of all cells as JSON.
#[must_use]
pub fn night_json(night: &Night) -> Value {
    let column = |column: &ColumnOutcome| {
        let cells = column.cells.iter().map(|(&(send, receive), cell)| {
            json!({ "send_packets": send, "receive_packets": receive, "cell": cell })
        });
        let parameters = column.scenario.settings().iter();
        let parameters = parameters.map(|(key, setting)| (key.to_owned(), parameter(setting)));
        json!({
            "title": column.column.title,
            "scenario": column.scenario.name(),
            "cells": cells.collect::<Vec<_>>(),
            "parameters": parameters.collect::<serde_json::Map<_, _>>(),
        })
    };
    Value::Array(night.columns.iter().map(column).collect())
}

fn parameter(setting: &Setting) -> Value {
    match setting {
        Setting::Number(number) => json!({
            "value": number.value,
            "unit": number.unit,
            "range": number.range,
            "source": number.source,
            "tuned": number.tuned,
        }),
        Setting::Word(word) => json!(word),
    }
}

//! Tests that the published JSON schemas describe every field of the documents.

use crate::report::Report;
use crate::{ComparisonReport, Side};
use linerate_evidence::sample_data::{noise, records, square_design, start};
use linerate_evidence::{Design, FastPath, LineRate, Maximum, RunRecord};
use linerate_units::Duration;
use serde_json::{Value, json};

const SWEEP: &str = include_str!("../../../docs/schema/sweep.json");
const COMPARISON: &str = include_str!("../../../docs/schema/comparison.json");

/// Validates a value against a schema (JSON Schema 2020-12). Returns the first violation with its
/// path in the document, or `None` if the value is valid. Panics at keywords that the schemas of
/// this project do not use.
fn violation(root: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    let schema = schema.as_object().expect("a schema is an object");
    let wrong = |what: String| Some(format!("{place}: {what}"));
    for (keyword, rule) in schema {
        let found = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => None,
            "$ref" => {
                let pointer = rule.as_str().and_then(|name| name.strip_prefix('#')).unwrap();
                violation(root, root.pointer(pointer).unwrap(), value, place)
            }
            "anyOf" => {
                let fits = |rule| violation(root, rule, value, place).is_none();
                let any = rule.as_array().unwrap().iter().any(fits);
                if any { None } else { wrong(format!("{value} fits no alternative")) }
            }
            "type" => {
                let one = std::slice::from_ref(rule);
                let types = rule.as_array().map_or(one, Vec::as_slice);
                let fits = types.iter().any(|name| is_of_type(value, name.as_str().unwrap()));
                if fits { None } else { wrong(format!("{value} is no {rule}")) }
            }
            "enum" => {
                let fits = rule.as_array().unwrap().contains(value);
                if fits { None } else { wrong(format!("{value} is none of {rule}")) }
            }
            "minimum" => {
                let number = value.as_f64().unwrap_or(f64::MAX);
                let fits = number >= rule.as_f64().unwrap();
                if fits { None } else { wrong(format!("{value} is below {rule}")) }
            }
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .find_map(|(at, value)| violation(root, rule, value, &format!("{place}[{at}]"))),
            "required" => rule
                .as_array()
                .unwrap()
                .iter()
                .map(|name| name.as_str().unwrap())
                .find(|name| value.as_object().is_some_and(|fields| !fields.contains_key(*name)))
                .and_then(|name| wrong(format!("`{name}` is missing"))),
            "properties" => rule.as_object().unwrap().iter().find_map(|(name, rule)| {
                violation(root, rule, value.get(name)?, &format!("{place}.{name}"))
            }),
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(name, _)| !is_known(name))
                    .find_map(|(name, value)| match rule {
                        Value::Bool(true) => None,
                        Value::Bool(false) => wrong(format!("`{name}` is not described")),
                        rule => violation(root, rule, value, &format!("{place}.{name}")),
                    })
            }
            other => panic!("the keyword `{other}` is not known here"),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("there is no type `{other}`"),
    }
}

fn is_valid(schema: &str, document: &str) {
    let (schema, document) = (parsed(schema), parsed(document));
    assert_eq!(violation(&schema, &schema, &document, "$"), None);
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn plan() -> Value {
    json!({
        "on": "stack", "peer": null, "direction": null, "send_buffers": [{ "packets": 1 }],
        "receive_buffers": [{ "bytes": 16_384 }], "diagonal": false, "repeat": 4,
        "bytes": 8_388_608, "max_seconds": 10.0, "seed": 1_988, "write_size": 65_536,
        "read_size": 65_536, "mtu": 1_500, "congestion": null, "profile": null, "impair": null,
        "line_rate": null, "verify": false,
    })
}

fn runs() -> Vec<RunRecord> {
    let mut runs = records(&square_design(3), |cell, repeat| 1e6 * noise(cell, repeat, 0.1));
    runs[0].counters.sender.set("retransmitted_segments", 3);
    runs[0].counters.sender.fast_path =
        Some(FastPath { hits: 7, misses: [("state".to_owned(), 1)].into() });
    runs
}

#[test]
fn every_document_of_a_sweep_is_described() {
    let (design, runs) = (square_design(3), runs());
    for count in [0, 1, runs.len()] {
        let document = Report::new(&design, &start(), &runs[..count]).json(&plan());
        is_valid(SWEEP, &document);
    }
    let design = Design { budget: Some(Duration::from_secs(60)), ..square_design(6) };
    let some = records(&design, |cell, repeat| 1e6 * noise(cell, repeat, 0.1));
    let document = Report::new(&design, &start(), &some[..30]).json(&plan());
    assert!(document.contains("\"predictions\""));
    is_valid(SWEEP, &document);
    let design = square_design(3);
    let mut start = start();
    let rate = LineRate { bits_per_second: 10_000_000, source: "IEEE 802.3".to_owned() };
    start.maximum = Maximum::of_line_rate(rate.clone(), &start.facts.bench.framing, 1_448);
    start.facts.bench.line_rate = Some(rate);
    is_valid(SWEEP, &Report::new(&design, &start, &runs).json(&plan()));
    start.maximum = Maximum::Unknown { explanation: "none".to_owned() };
    is_valid(SWEEP, &Report::new(&design, &start, &runs).json(&plan()));
}

#[test]
fn a_document_that_is_not_as_described_is_found() {
    let (design, runs) = (square_design(3), runs());
    let document = parsed(&Report::new(&design, &start(), &runs).json(&plan()));
    let schema = parsed(SWEEP);
    let found = |pointer: &str, value: Value| {
        let mut document = document.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        violation(&schema, &schema, &document, "$").unwrap_or_default()
    };
    assert_eq!(found("/runs/1/bytes", json!(-1)), "$.runs[1].bytes: -1 is below 0");
    assert!(found("/runs/1/complete", json!(1)).contains("$.runs[1].complete: 1 is no"));
    assert!(found("/plan/on", json!("moon")).contains("is none of"));
    assert!(found("/facts/versions", json!({})).contains("`commit` is missing"));
    assert!(found("/fast_path/sender", json!(1)).contains("fits no alternative"));
    assert!(found("/cells/0", json!({ "new": 1 })).starts_with("$.cells[0]: `"));
}

#[test]
fn every_comparison_is_described() {
    let (design, start, plan) = (square_design(3), start(), plan());
    let (one, mut other) = (runs(), runs());
    other.truncate(9);
    let side = |name, runs| Side { name, design: &design, start: &start, runs, plan: &plan };
    let report = ComparisonReport::new(side("a", &one), side("b", &other)).unwrap();
    is_valid(COMPARISON, &report.json());
}

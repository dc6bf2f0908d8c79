//! Tests of `linerate compare` with folders and JSON files, and of its errors.

use super::folder::{fail, succeed};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Runs a small sweep whose results are saved in the folder `name`.
fn sweep(directory: &Path, name: &str, options: &[&str]) {
    let words = ["sweep", "--quiet", "--out", name, "--send-buffers", "2..3"];
    succeed(directory, &[&words, options].concat());
}

const SMALL: [&str; 6] = ["--receive-buffers", "2..3", "--repeat", "3", "--bytes", "64KiB"];

#[test]
fn folders_and_files_are_compared() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    sweep(path, "a", &SMALL);
    sweep(path, "b", &[&SMALL[..], &["--seed", "7"]].concat());
    succeed(path, &["report", "a", "--quiet", "--json", "a.json"]);
    let text = succeed(path, &["compare", "a", "b", "--json", "c.json"]);
    assert!(text.lines().next().unwrap().contains("over 4 paired cells"), "{text}");
    assert!(text.contains("seed: 1988 → 7"), "{text}");
    let json: Value = serde_json::from_slice(&fs::read(path.join("c.json")).unwrap()).unwrap();
    assert_eq!(json["cells"].as_array().unwrap().len(), 4);
    let same = succeed(path, &["compare", "a", "a.json"]);
    assert!(same.starts_with("no difference can be told: ±0.0 % from a to a.json"), "{same}");
    assert!(same.ends_with("Machine, program and plan are equal.\n"), "{same}");
}

#[test]
fn what_cannot_be_compared_is_one_line_and_exit_code_2() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    sweep(path, "a", &SMALL);
    let bytes = ["--receive-buffers", "2..3", "--repeat", "3", "--bytes", "32KiB"];
    sweep(path, "bytes", &bytes);
    let cells = ["--receive-buffers", "9", "--repeat", "3", "--bytes", "64KiB"];
    sweep(path, "cells", &cells);
    sweep(path, "mtu", &[&SMALL[..], &["--mtu", "600"]].concat());
    fs::create_dir(path.join("empty")).unwrap();
    fs::write(path.join("other.json"), "{\"plan\": 3}").unwrap();
    for (words, expected_text) in [
        (&["a", "bytes"][..], "a run of a has 64 KiB and one of bytes has 32 KiB"),
        (&["a", "cells"], "a and cells have no cell in common"),
        (&["a", "mtu"], "a packet of a has 1448 bytes of data and one of mtu has"),
        (&["a", "empty"], "empty has no complete run"),
        (&["nowhere", "a"], "nowhere contains no sweep"),
        (&["a", "other.json"], "other.json is no report of a sweep"),
        (&["a", "a/runs.jsonl"], "a/runs.jsonl is no report of a sweep"),
        (&["a", "a", "--json", "nowhere/c"], "nowhere/c cannot be written"),
    ] {
        let line = fail(path, &[&["compare"], words].concat(), 2);
        assert_eq!(line.lines().count(), 1, "{words:?}: {line}");
        assert!(line.starts_with("error: ") && line.contains(expected_text), "{words:?}: {line}");
    }
}

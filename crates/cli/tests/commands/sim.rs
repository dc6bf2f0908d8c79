//! Tests of `linerate sim`: output, files and errors.

use super::folder::{fail, succeed, within};
use rustix::fs::{FileType, Mode};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use tempfile::TempDir;

/// The arguments of a simulation of a short transfer with background traffic.
const SHORT: [&str; 5] = ["sim", "run", "sun-3-60-to-3-60", "--set", "transfer.bytes=200000"];

/// Runs the command `SHORT` with additional arguments in a folder. Returns its standard output.
fn short(folder: &TempDir, words: &[&str]) -> String {
    succeed(folder.path(), &[&SHORT[..], words].concat())
}

fn json(folder: &TempDir, name: &str) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(folder.path().join(name)).unwrap()).unwrap()
}

#[test]
fn a_run_prints_and_writes_the_counters_of_its_parts() {
    let folder = TempDir::new().unwrap();
    let text = short(&folder, &["--json", "run.json"]);
    for expected_text in [
        "200,000 bytes",
        "% idle",
        "in backoff",
        "frames by collisions",
        "backoffs by slots",
        "errs drop fifo",
        "colls",
    ] {
        assert!(text.contains(expected_text), "{expected_text}: {text}");
    }
    let record = json(&folder, "run.json");
    let wire = &record["wires"][0];
    let sum = |name: &str| {
        wire[name].as_array().unwrap().iter().filter_map(serde_json::Value::as_u64).sum::<u64>()
    };
    assert_eq!(sum("backoffs_by_slots"), wire["collisions"].as_u64().unwrap());
    assert_eq!(sum("frames_by_collisions"), wire["frames"].as_u64().unwrap());
    assert!(record["machines"][0]["idle_share"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_run_reports_each_processor_and_each_queue() {
    let folder = TempDir::new().unwrap();
    let words = [
        "sim",
        "run",
        "rss",
        "--set",
        "limit.time=0.001",
        "--json",
        "run.json",
        "--timeline",
        "lanes.svg",
    ];
    let text = succeed(folder.path(), &words);
    for expected_text in ["4 processors", "processor 3", "its queue: "] {
        assert!(text.contains(expected_text), "{expected_text}: {text}");
    }
    let record = json(&folder, "run.json");
    let machine = |name: &str| {
        let machines = record["machines"].as_array().unwrap();
        machines.iter().find(|machine| machine["name"] == name).unwrap().clone()
    };
    for (name, count) in [("receiver", 4), ("sender", 8)] {
        let (machine, packets) = (machine(name), "receive_packets");
        let processors = machine["processors"].as_array().unwrap();
        let received: u64 =
            processors.iter().map(|one| one["queue"][packets].as_u64().unwrap()).sum();
        assert_eq!((processors.len(), received), (count, machine[packets].as_u64().unwrap()));
        assert!(processors.iter().all(|one| one["idle_share"].as_f64().unwrap() <= 1.0));
    }
    let picture = fs::read_to_string(folder.path().join("lanes.svg")).unwrap();
    assert!(
        picture.contains("receiver: processor 3") && picture.contains("receiver: receive ring 3")
    );
}

#[test]
fn a_timeline_is_a_picture_or_spans_of_the_requested_window() {
    let folder = TempDir::new().unwrap();
    short(&folder, &["--timeline", "wire.svg"]);
    let picture = fs::read_to_string(folder.path().join("wire.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("sender: processor"), "{picture:.200}");
    short(
        &folder,
        &["--timeline", "part.json", "--timeline-from", "150ms", "--timeline-for", "50ms"],
    );
    let record = json(&folder, "part.json");
    assert_eq!(
        (record["from_seconds"].as_f64(), record["until_seconds"].as_f64()),
        (Some(0.15), Some(0.2))
    );
    assert_eq!(record["left_out"], 0);
    let lanes = record["lanes"].as_array().unwrap();
    let held = lanes.iter().flat_map(|lane| lane["held"].as_array().unwrap());
    let spans: Vec<(f64, f64)> = held
        .map(|held| {
            (held["from_seconds"].as_f64().unwrap(), held["until_seconds"].as_f64().unwrap())
        })
        .collect();
    assert!(spans.len() > 100 && spans.iter().all(|&(from, until)| 0.15 <= from && until <= 0.2));
}

#[test]
fn invalid_runs_are_one_line_and_exit_code_2() {
    let folder = TempDir::new().unwrap();
    let refused = |words: &[&str], expected_text: &str| {
        let line = fail(folder.path(), words, 2);
        assert!(line.lines().count() == 1 && line.contains(expected_text), "{words:?}: {line}");
    };
    refused(&["sim", "run", "sun-4"], "there is no scenario `sun-4`");
    fs::write(folder.path().join("mine"), "").unwrap();
    refused(&["sim", "run", "mine"], "ends in .toml");
    refused(&[&SHORT[..], &["--timeline", "wire.png"]].concat(), "end in .svg or .json");
    refused(&[&SHORT[..], &["--timeline-for", "1s"]].concat(), "--timeline");
    refused(&[&SHORT[..], &["--set", "sender.nic.transmit.start=1e9"]].concat(), "out of range");
    refused(
        &[&SHORT[..], &["--pcap", "x.pcapng", "--wire", "left"]].concat(),
        "choose one of wire",
    );
    let rss = |change| ["sim", "run", "rss", "--set", change];
    refused(&rss("receiver.nic.queues=0"), "it lies between 1 and 32 queues");
    refused(&rss("receiver.nic.queues=1.5"), "it must be a whole number from 1 to 32");
    refused(&rss("receiver.nic.queues=5"), "give it 5 processors, or 4 queues");
    // With a second bridge in parallel to the first one, frames could circulate forever. The
    // simulator must refuse such a loop.
    let text = include_str!("../../../sim/scenarios/two-cables-and-a-bridge.toml");
    let (before, bridge) = text.split_once("[bridges.bridge]").unwrap();
    let (bridge, after) = bridge.split_once("[programs.first]").unwrap();
    let both = [bridge, &bridge.replace("bridges.bridge", "bridges.other")].map(str::to_owned);
    let ring = format!(
        "{before}[bridges.bridge]{}[bridges.other]{}[programs.first]{after}",
        both[0], both[1]
    );
    fs::write(folder.path().join("ring.toml"), ring).unwrap();
    refused(&["sim", "run", "ring.toml"], "other, left, bridge, right are a loop");
}

#[test]
fn a_timeline_after_the_end_of_the_world_is_refused() {
    let folder = TempDir::new().unwrap();
    let words = [&SHORT[..], &["--timeline", "late.svg", "--timeline-from", "1000s"]].concat();
    let line = fail(folder.path(), &words, 2);
    assert!(line.contains("the world ended at") && line.contains("--timeline-from"), "{line}");
    let never =
        [&SHORT[..], &["--timeline", "late.svg", "--timeline-from", "18446744073s"]].concat();
    assert!(fail(folder.path(), &never, 2).contains("the world ended at"));
    assert!(!folder.path().join("late.svg").exists(), "no file was created");
}

#[test]
fn more_threads_than_worlds_are_not_started() {
    let folder = TempDir::new().unwrap();
    let words = ["sim", "night", "--diagonal", "--repeat", "1", "--bytes", "1000", "--threads"];
    let night = |threads| {
        let text = succeed(folder.path(), &[&words[..], &[threads]].concat());
        // The line that ends in `frames a second` depends on the elapsed real time. It may differ
        // between two runs, so it is not compared.
        text.lines()
            .filter(|line| !line.ends_with("frames a second"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(night("1"), night("1024"));
}

/// The capture file is a pipe. As soon as the test has read the first frames from it, the
/// simulation is known to run, and the test sends the signal.
#[test]
fn ctrl_c_ends_a_run_at_once() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("frames");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .unwrap();
    let words = ["sim", "run", "sun-3-50-gigabyte", "--pcap", "frames", "--json", "run.json"];
    let mut run = within(folder.path(), &words);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut frames = File::open(&pipe).unwrap();
    frames.read_exact(&mut [0; 1_000]).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    io::copy(&mut frames, &mut io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
    assert!(!folder.path().join("run.json").exists(), "no results were written");
}

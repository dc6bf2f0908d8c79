//! Tests of `linerate sweep`, from its options to its files.

use super::folder::{succeed, within};
use super::support::{finished, linerate};
use linerate_evidence::notation;
use linerate_link::namespace::{Isolation, probe, skip_test};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// Returns the arguments of a sweep with sixteen short runs on the engine `on`. The sweep compares
/// every byte and writes JSON and CSV files.
fn small(on: &str) -> Vec<&str> {
    let words = "--send-buffers 1..2 --receive-buffers 2,4 --repeat 4 --bytes 64KiB --verify \
                 --json r.json --csv r.csv";
    ["sweep", "--on", on, "--out", "night"].into_iter().chain(words.split(' ')).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Runs a sweep on the engine `on`, and checks its report and its files.
fn measures(on: &str) {
    let directory = TempDir::new().unwrap();
    let report = succeed(directory.path(), &small(on));
    for part in ["4 cells × 4 runs of 64 KiB", "Equal buffers", "All cells, in per cent"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    // Other tests may occupy the processors during the sweep. The sweep may then be contended, and
    // the report says only that.
    assert!(report.contains("The best cell is") || report.starts_with("Contended"), "{report}");
    assert!(report.contains("Every byte of every run was compared"), "{report}");
    let document = json(&directory.path().join("r.json"));
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 16);
    assert!(runs.iter().all(|run| run["bytes"] == 65_536 && run["verified"] == true));
    assert_eq!(document["cells"].as_array().unwrap().len(), 4);
    let csv = fs::read_to_string(directory.path().join("r.csv")).unwrap();
    assert_eq!(csv.lines().count(), 17);
}

#[test]
fn a_sweep_on_the_stack_writes_all_files() {
    measures("stack");
}

#[test]
fn a_sweep_on_the_kernel_writes_all_files() {
    measures("kernel");
}

#[test]
fn a_sweep_on_tap_works_in_both_directions() {
    sweep_on_tap(&[]);
}

#[test]
fn a_sweep_on_tap_works_in_both_directions_over_ipv6() {
    sweep_on_tap(&["--family", "ipv6"]);
}

#[test]
fn a_sweep_on_a_serial_line_says_how_long_it_takes() {
    let folder = TempDir::new().unwrap();
    let words = [
        "sweep",
        "--on",
        "serial:1000000",
        "--bytes",
        "8KiB",
        "--send-buffers",
        "1,4",
        "--receive-buffers",
        "4",
        "--repeat",
        "1",
        "--verify",
    ];
    let output = linerate(&words).current_dir(folder.path()).output().unwrap();
    let (code, stdout, stderr) = finished(&output);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.starts_with("2 runs of 8192 bytes take about 0.1 s each"), "{stderr}");
    assert!(stdout.contains("a serial line of 1000000 baud"), "{stdout}");
    assert!(stdout.contains("SLIP with header compression"), "{stdout}");
}

fn sweep_on_tap(family: &[&str]) {
    if let Err(forbidden) = probe(Isolation::UserAndNetwork) {
        return skip_test(&forbidden);
    }
    for direction in ["to-kernel", "from-kernel"] {
        let directory = TempDir::new().unwrap();
        let words =
            [&small("tap")[..], &["--direction", direction, "--pcap", "all.pcapng"], family]
                .concat();
        let (code, report, errors) = finished(&within(directory.path(), &words).output().unwrap());
        if errors.contains("/dev/net/tun") {
            return skip_test(&errors);
        }
        assert_eq!(code, 0, "{errors}");
        assert!(report.contains("Every byte of every run was compared"), "{report}");
        let dump = succeed(directory.path(), &["dump", "all.pcapng"]);
        assert!(dump.lines().count() > 16 * 46, "one line per frame: {dump}");
    }
}

#[test]
fn a_finished_sweep_is_reported_again_identically() {
    let directory = TempDir::new().unwrap();
    let report = succeed(directory.path(), &small("stack"));
    let again = succeed(directory.path(), &["sweep", "--resume", "night", "--json", "again.json"]);
    assert_eq!(again, report);
    assert_eq!(json(&directory.path().join("again.json")), json(&directory.path().join("r.json")));
}

#[test]
fn the_default_folder_is_named_by_time_and_seed() {
    let directory = TempDir::new().unwrap();
    let words = [
        "sweep",
        "--on",
        "kernel",
        "--send-buffers",
        "1",
        "--receive-buffers",
        "1",
        "--bytes",
        "1KiB",
        "--seed",
        "7",
    ];
    let (code, _, errors) = finished(&within(directory.path(), &words).output().unwrap());
    let folders: Vec<_> = fs::read_dir(directory.path().join("linerate-out")).unwrap().collect();
    let name = folders[0].as_ref().unwrap().file_name().into_string().unwrap();
    assert!(folders.len() == 1 && name.ends_with("Z-7"), "{name}");
    assert!(code == 0 && errors.contains(&format!("saved in linerate-out/{name}")), "{errors}");
}

#[test]
fn a_quiet_sweep_prints_only_its_report() {
    let directory = TempDir::new().unwrap();
    let mut words = small("stack");
    words.push("--quiet");
    let (code, _, errors) = finished(&within(directory.path(), &words).output().unwrap());
    assert_eq!((code, errors.as_str()), (0, ""));
}

/// Starts a sweep that takes longer than any test, and waits for its first runs.
fn begin_endless(directory: &Path, on: &str) -> (Child, BufReader<impl Read + use<>>) {
    let words = [
        "sweep",
        "--on",
        on,
        "--repeat",
        "1000",
        "--bytes",
        "256KiB",
        "--send-buffers",
        "4,8",
        "--receive-buffers",
        "4,8",
        "--out",
        "night",
    ];
    let mut child =
        within(directory, &words).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(" runs, ") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the sweep ended by itself");
    }
    (child, lines)
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, signal).unwrap();
}

/// Returns the number of runs saved in the folder of the sweep.
fn kept(directory: &Path) -> usize {
    fs::read_to_string(directory.join("night/runs.jsonl")).unwrap().lines().count()
}

#[test]
fn an_interrupted_sweep_can_be_resumed() {
    let directory = TempDir::new().unwrap();
    let (mut child, mut lines) = begin_endless(directory.path(), "stack");
    signal(&child, rustix::process::Signal::INT);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let last = rest.lines().last().unwrap();
    let before = kept(directory.path());
    assert!(before >= 200, "{before}");
    assert!(last.starts_with(&format!("interrupted: {before} of 4500 runs are saved")), "{last}");
    assert!(last.ends_with("continue with `linerate sweep --resume night`"), "{last}");
    let (mut child, line) = resume(directory.path());
    assert!(
        line.starts_with(&format!("{} runs to make", notation::count(4_500 - before as u64))),
        "{line}"
    );
    signal(&child, rustix::process::Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(kept(directory.path()) >= before);
}

/// Resumes the sweep in the folder `night`. Returns the process, and the first line of its standard
/// error.
fn resume(directory: &Path) -> (Child, String) {
    let mut command = within(directory, &["sweep", "--resume", "night"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

#[test]
fn a_killed_sweep_can_be_resumed() {
    let directory = TempDir::new().unwrap();
    let (mut child, _lines) = begin_endless(directory.path(), "stack");
    signal(&child, rustix::process::Signal::KILL);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let before = kept(directory.path());
    let (mut child, line) = resume(directory.path());
    assert!(line.contains(" runs to make, saved in night"), "{line}");
    signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    assert!(kept(directory.path()) + 1 >= before);
}

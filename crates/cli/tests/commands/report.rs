//! Tests of `linerate report` with finished, partial, killed and damaged sweeps.

use super::folder::{fail, succeed, within};
use super::support::finished;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// The options of a sweep with sixteen short runs.
const SMALL: &str = "--send-buffers 1..2 --receive-buffers 2,4 --repeat 4 --bytes 64KiB";

/// Runs a sweep in a temporary directory, with results in the folder `night`. Returns the directory
/// and the report.
fn night() -> (TempDir, String) {
    let directory = TempDir::new().unwrap();
    let words = ["sweep", "--quiet", "--out", "night"].into_iter().chain(SMALL.split(' '));
    let words: Vec<_> = words.collect();
    let report = succeed(directory.path(), &words);
    (directory, report)
}

fn file(directory: &TempDir, name: &str) -> String {
    fs::read_to_string(directory.path().join(name)).unwrap()
}

#[test]
fn a_finished_sweep_is_reported_as_it_was_and_in_all_formats() {
    let (directory, report) = night();
    let words = "report night --html r.html --json r.json --csv r.csv --svg r.svg";
    let again = succeed(directory.path(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!(again, report);
    let page = file(&directory, "r.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("Partial:"), "all runs are complete");
    assert_eq!(page.matches("<td class=\"r").count(), 4);
    assert!(file(&directory, "r.json").contains("\"granted_bytes\""));
    assert_eq!(file(&directory, "r.csv").lines().count(), 17);
    assert!(file(&directory, "r.svg").ends_with("</svg>\n"));
    let quiet = succeed(directory.path(), &["report", "night", "--quiet", "--html", "q.html"]);
    assert_eq!((quiet.as_str(), file(&directory, "q.html")), ("", page));
}

#[test]
fn damage_and_unwritable_files_are_one_line_and_exit_code_2() {
    let (directory, _) = night();
    let refused = |words: &[&str], expected_text: &str| {
        let line = fail(directory.path(), words, 2);
        assert_eq!(line.lines().count(), 1, "{words:?}: {line}");
        assert!(line.starts_with("error: ") && line.contains(expected_text), "{words:?}: {line}");
    };
    refused(&["report", "nowhere"], "nowhere contains no sweep");
    refused(&["report", "night", "--html", "nowhere/r.html"], "nowhere/r.html cannot be written");
    refused(&["report", "night", "--html", "night/runs.jsonl"], "would be overwritten");
    refused(&["report", "night", "--html", "r", "--svg", "r"], "would get two results");
    refused(&["sweep", "--html", "nowhere/r.html", "--out", "x"], "cannot be written");
    for (name, content) in [
        ("plan.json", "{"),
        ("facts.json", "[]"),
        ("runs.jsonl", "{}\n"),
        ("runs.jsonl", "\u{0}\u{0}\u{0}\n"),
    ] {
        let whole = file(&directory, &format!("night/{name}"));
        fs::write(directory.path().join("night").join(name), content).unwrap();
        refused(&["report", "night"], &format!("night/{name} is damaged ("));
        fs::write(directory.path().join("night").join(name), whole).unwrap();
    }
    fs::remove_file(directory.path().join("night/facts.json")).unwrap();
    refused(&["report", "night"], "facts.json is damaged (there are runs");
}

/// Starts a sweep that takes longer than any test does.
fn begin_endless(directory: &Path) -> Child {
    let words = "sweep --repeat 1000 --bytes 64KiB --send-buffers 1..4 --receive-buffers 1..4 \
                 --quiet --out night";
    let mut command = within(directory, &words.split_whitespace().collect::<Vec<_>>());
    command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

/// Kills sweeps at several moments: before the folder exists, when each of its files appears, and
/// after many runs. Whenever the folder exists, `linerate report` must be able to report the sweep.
#[test]
fn a_sweep_killed_at_any_moment_is_reported() {
    type Moment = fn(&Path) -> bool;
    let length =
        |folder: &Path| fs::metadata(folder.join("runs.jsonl")).map_or(0, |file| file.len());
    let moments: [(&str, Moment); 6] = [
        ("the folder", |folder| folder.exists()),
        ("the file of runs", |folder| folder.join("runs.jsonl").exists()),
        ("the plan", |folder| folder.join("plan.json").exists()),
        ("the facts being written", |folder| {
            folder.join("facts.json.new").exists() || folder.join("facts.json").exists()
        }),
        ("the facts", |folder| folder.join("facts.json").exists()),
        ("the first run", |folder| {
            fs::metadata(folder.join("runs.jsonl")).is_ok_and(|file| file.len() > 0)
        }),
    ];
    for (name, moment) in moments {
        let directory = TempDir::new().unwrap();
        let folder = directory.path().join("night");
        let mut sweep = begin_endless(directory.path());
        while !moment(&folder) {
            assert_eq!(sweep.try_wait().unwrap(), None, "{name}: the sweep has ended by itself");
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&sweep), Signal::KILL).unwrap();
        assert_eq!(sweep.wait().unwrap().signal(), Some(9));
        is_readable(directory.path(), name);
    }
    let directory = TempDir::new().unwrap();
    let folder = directory.path().join("night");
    let mut sweep = begin_endless(directory.path());
    while length(&folder) < 100_000 {
        // This report is made before the sweep is killed, while it is still running.
        is_readable_if_begun(directory.path());
    }
    kill_process(Pid::from_child(&sweep), Signal::KILL).unwrap();
    sweep.wait().unwrap();
    is_readable(directory.path(), "many runs");
}

/// If the running sweep has created its file of runs, asserts that `linerate report` can report the
/// sweep.
fn is_readable_if_begun(directory: &Path) {
    if directory.join("night/runs.jsonl").exists() {
        let words = ["report", "night"];
        let (code, _, errors) = finished(&within(directory, &words).output().unwrap());
        assert_eq!(code, 0, "{errors}");
    }
}

/// Asserts that the report of a killed sweep shows every saved run and changes no file.
fn is_readable(directory: &Path, moment: &str) {
    let folder = directory.join("night");
    let text = fs::read_to_string(folder.join("runs.jsonl")).unwrap_or_default();
    let runs = text.matches('\n').count();
    let before: Vec<_> = listing(&folder);
    let words = ["report", "night", "--html", "r.html"];
    let (code, report, errors) = finished(&within(directory, &words).output().unwrap());
    assert_eq!((code, errors.as_str()), (0, ""), "{moment}");
    assert_eq!(listing(&folder), before, "{moment}: the folder was changed");
    if !folder.join("plan.json").exists() {
        let line = "night holds no run: its sweep ended before its plan was saved\n";
        assert_eq!(report, line, "{moment}");
        return;
    }
    let shown = linerate_evidence::notation::count(runs as u64);
    let line = format!(
        "partial: {shown} of 18,000 runs are complete; continue with `linerate sweep --resume \
         night`\n"
    );
    assert!(report.starts_with(&line), "{moment}: {report}");
    if folder.join("facts.json").exists() {
        assert!(report.contains("What it means"), "{moment}: {report}");
        let page = fs::read_to_string(directory.join("r.html")).unwrap();
        assert!(page.contains(&format!("Partial: {shown} of 18,000 runs")), "{moment}");
    }
}

/// Returns the names and contents of all files in a folder.
fn listing(folder: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    let mut files: Vec<_> =
        entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files
}

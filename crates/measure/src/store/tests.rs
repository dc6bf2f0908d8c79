//! Tests of saving sweeps, restoring them, and detecting damage.

use super::*;
use crate::fake_bench::small_plan;
use linerate_evidence::sample_data::{record, small_design, start};

/// Creates a folder with `count` saved runs. Returns the guard that removes the folder when it is
/// dropped, and the path of the folder.
fn folder_with(count: usize) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("night");
    let mut store = Store::create(&folder, small_plan()).unwrap();
    store.begin(start()).unwrap();
    for run in &schedule(&small_design())[..count] {
        store.append(record(run, 1e6)).unwrap();
    }
    (directory, folder)
}

fn change(path: &Path, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    fs::write(path, change(fs::read(path).unwrap())).unwrap();
}

#[test]
fn saved_runs_are_restored() {
    let (_directory, folder) = folder_with(3);
    let store = Store::resume(&folder).unwrap();
    assert_eq!((store.plan(), store.start()), (&small_plan(), Some(&start())));
    let expected: Vec<_> =
        schedule(&small_design())[..3].iter().map(|run| record(run, 1e6)).collect();
    assert_eq!(store.runs(), expected);
    assert_eq!(store.remaining()[0].order, 3);
}

#[test]
fn a_line_torn_anywhere_is_removed_and_its_run_repeated() {
    let (_directory, folder) = folder_with(3);
    let whole = fs::read(folder.join(RUNS)).unwrap();
    let third = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    for end in third..whole.len() {
        fs::write(folder.join(RUNS), &whole[..end]).unwrap();
        let mut store = Store::resume(&folder).unwrap();
        assert_eq!(store.runs().len(), 2, "torn after {end} bytes");
        let again = record(&store.remaining()[0].clone(), 1e6);
        store.append(again).unwrap();
        assert_eq!(fs::read(folder.join(RUNS)).unwrap(), whole);
    }
}

#[test]
fn other_damage_is_reported_with_its_line() {
    let (_directory, folder) = folder_with(3);
    let whole = fs::read(folder.join(RUNS)).unwrap();
    let runs = folder.join(RUNS);
    let lines: Vec<_> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    for (damaged, expected_text) in [
        ([lines[0], b"{}\n", lines[2]].concat(), "line 2: missing field"),
        ([lines[1], lines[0], lines[2]].concat(), "line 1: this is not the run"),
        ([lines[0], b"\0\0\n"].concat(), "line 2: "),
        ([&whole[..], lines[0]].concat(), "line 4: this is not the run"),
    ] {
        fs::write(&runs, damaged).unwrap();
        let error = Store::resume(&folder).unwrap_err().to_string();
        assert!(error.contains(expected_text) && error.contains("start a new sweep"), "{error}");
    }
}

#[test]
fn excess_runs_are_damage() {
    let (_directory, folder) = folder_with(schedule(&small_design()).len());
    change(&folder.join(RUNS), |mut text| {
        let first = text.iter().position(|&byte| byte == b'\n').unwrap();
        text.extend_from_within(..=first);
        text
    });
    let error = Store::resume(&folder).unwrap_err().to_string();
    assert!(error.contains("the plan has no run in this place"), "{error}");
}

#[test]
fn a_modified_plan_is_damage() {
    let (_directory, folder) = folder_with(1);
    change(&folder.join(PLAN), |text| {
        String::from_utf8(text).unwrap().replace("\"repeat\": 2", "\"repeat\": 0").into_bytes()
    });
    assert!(matches!(Store::resume(&folder), Err(StoreError::Damaged { .. })));
    change(&folder.join(PLAN), |_| Vec::new());
    assert!(matches!(Store::resume(&folder), Err(StoreError::Damaged { .. })));
}

#[test]
fn runs_without_facts_are_damage() {
    let (_directory, folder) = folder_with(1);
    fs::remove_file(folder.join(START)).unwrap();
    assert!(matches!(Store::resume(&folder), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_plan_without_its_file_of_runs_is_damage() {
    let (_directory, folder) = folder_with(1);
    fs::remove_file(folder.join(RUNS)).unwrap();
    let error = Store::resume(&folder).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("runs.jsonl is damaged (it is not there)"), "{error}");
    assert!(!folder.join(RUNS).exists(), "the file is not created");
}

#[test]
fn a_folder_is_used_by_one_process_at_a_time() {
    let (_directory, folder) = folder_with(1);
    let first = Store::resume(&folder).unwrap();
    assert!(matches!(Store::resume(&folder), Err(StoreError::Busy(_))));
    drop(first);
    Store::resume(&folder).unwrap();
}

#[test]
fn a_reader_does_not_make_a_sweep_busy() {
    let (_directory, folder) = folder_with(1);
    let open_runs = || File::open(folder.join(RUNS)).unwrap();
    let reader = open_runs();
    reader.try_lock_shared().unwrap();
    let store = open_runs();
    let mut waits = 0;
    let result = lock(&store, || {
        waits += 1;
        if waits == 3 {
            reader.unlock().unwrap();
        }
    });
    assert!(matches!((result, waits), (Ok(()), 3)));
    assert!(matches!(reader.try_lock_shared(), Err(TryLockError::WouldBlock)));
    let mut waits = 0;
    let result = lock(&reader, || waits += 1);
    assert!(matches!((result, waits), (Err(TryLockError::WouldBlock), 0)));
    store.unlock().unwrap();
    store.try_lock_shared().unwrap();
    let result = lock(&reader, || waits += 1);
    assert!(matches!((result, waits), (Err(TryLockError::WouldBlock), MOST_LOCK_RETRIES)));
}

#[test]
fn a_new_sweep_needs_an_empty_folder() {
    let (_directory, folder) = folder_with(1);
    assert!(matches!(Store::create(&folder, small_plan()), Err(StoreError::NotEmpty(_))));
    for nowhere in [folder.join("nowhere"), folder.join(PLAN)] {
        assert!(matches!(Store::resume(&nowhere), Err(StoreError::NoSweep(_))));
    }
}

#[test]
fn a_full_disk_is_reported() {
    let mut full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let error = append_line(&mut full, &record(&schedule(&small_design())[0], 1e6)).unwrap_err();
    let error = StoreError::writing(Path::new("night"), error);
    assert!(matches!(error, StoreError::Full(_)));
    assert!(error.to_string().contains("make room"), "{error}");
}

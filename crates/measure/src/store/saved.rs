//! Reading of a saved sweep, which changes nothing in the sweep's folder.

use super::{PLAN, RUNS, START, StoreError, read_runs, read_whole, whole_lines};
use crate::plan::Plan;
use linerate_evidence::{RunRecord, Start, schedule};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

/// The content of a sweep's folder. The sweep may still be running, because reading requires no
/// lock.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedSweep {
    /// The plan of the sweep.
    pub plan: Plan,
    /// The facts that are recorded before the first run; `None` until they are recorded.
    pub start: Option<Start>,
    /// The completed runs, in the order in which they were made.
    pub runs: Vec<RunRecord>,
    /// Whether a process is executing the sweep at the moment of reading.
    pub is_running: bool,
}

impl SavedSweep {
    /// Reads the sweep in `folder`, even if the process that executed the sweep was killed. If the
    /// final line of the file of runs is incomplete, it is ignored. Returns `None` if the process
    /// ended before it had saved the plan.
    ///
    /// # Errors
    /// The folder contains no sweep, or a file is damaged or unreadable.
    pub fn read(folder: &Path) -> Result<Option<Self>, StoreError> {
        let path = folder.join(RUNS);
        let text = match fs::read(&path) {
            Err(error) if is_absent(&error) => None,
            text => Some(text.map_err(|error| StoreError::reading(&path, error))?),
        };
        // A sweep writes the plan before its first run. The file of runs was read first (`text`),
        // so a plan must exist by now if that file had any content.
        let plan: Option<Plan> = read_whole(folder, PLAN)?;
        let (plan, text) = match (plan, text) {
            (Some(plan), Some(text)) => (plan, text),
            // The file of runs did not exist when this function read it, but exists now: a sweep
            // has just begun. Both files are read again.
            (Some(_), None) if path.exists() => return Self::read(folder),
            (Some(_), None) => {
                return Err(StoreError::Damaged { path, what: "it is not there".to_owned() });
            }
            // A sweep creates the file of runs before the plan. If there is only an empty file of
            // runs, the process ended between these two steps.
            (None, Some(text)) if text.is_empty() => return Ok(None),
            (None, Some(_)) => {
                let what = "it is not there".to_owned();
                return Err(StoreError::Damaged { path: folder.join(PLAN), what });
            }
            (None, None) if is_empty(folder) => return Ok(None),
            (None, None) => return Err(StoreError::NoSweep(folder.to_owned())),
        };
        let start: Option<Start> = read_whole(folder, START)?;
        let runs = read_runs(&path, whole_lines(&text), &plan, &schedule(&plan.design()))?;
        if start.is_none() && !runs.is_empty() {
            return Err(StoreError::no_facts(folder));
        }
        Ok(Some(Self { plan, start, runs, is_running: is_locked(&path) }))
    }
}

/// Does the error mean that the file or its folder does not exist?
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Does `folder` exist without any entry?
fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Does another process execute the sweep whose file of runs is at `path`? Such a process has
/// locked the file exclusively. To find out, this function takes a shared lock for a moment.
/// [`Store::resume`](super::Store::resume) waits until that shared lock is released.
fn is_locked(path: &Path) -> bool {
    let locked = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    File::open(path).is_ok_and(locked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_bench::small_plan;
    use crate::store::Store;
    use linerate_evidence::sample_data::{record, small_design, start};
    use std::path::PathBuf;

    /// Creates a folder with three saved runs. Returns its temporary directory, its path, and the
    /// store, which holds the lock.
    fn three_runs() -> (tempfile::TempDir, PathBuf, Store) {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("night");
        let mut store = Store::create(&folder, small_plan()).unwrap();
        store.begin(start()).unwrap();
        for run in &schedule(&small_design())[..3] {
            store.append(record(run, 1e6)).unwrap();
        }
        (directory, folder, store)
    }

    #[test]
    fn a_sweep_is_read_while_it_runs_and_after_it() {
        let (_directory, folder, store) = three_runs();
        let running = SavedSweep::read(&folder).unwrap().unwrap();
        assert_eq!((running.runs.len(), running.is_running), (3, true));
        drop(store);
        let ended = SavedSweep::read(&folder).unwrap().unwrap();
        assert_eq!(ended, SavedSweep { is_running: false, ..running });
    }

    /// The folder must be readable wherever a killed process has stopped. The file of runs is
    /// therefore cut after every byte. Then the other files are removed one after the other, as if
    /// the process had not yet written them.
    #[test]
    fn a_sweep_that_ended_at_any_moment_is_readable() {
        let (_directory, folder, _store) = three_runs();
        let whole = fs::read(folder.join(RUNS)).unwrap();
        for end in 0..=whole.len() {
            fs::write(folder.join(RUNS), &whole[..end]).unwrap();
            let runs = SavedSweep::read(&folder).unwrap().unwrap().runs;
            let lines = whole[..end].iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(runs.len(), lines, "cut after {end} bytes");
            assert_eq!(fs::read(folder.join(RUNS)).unwrap().len(), end, "it was changed");
        }
        fs::write(folder.join(RUNS), "").unwrap();
        fs::rename(folder.join(START), folder.join("facts.json.new")).unwrap();
        let saved = SavedSweep::read(&folder).unwrap().unwrap();
        assert_eq!((saved.start, saved.runs), (None, vec![]));
        fs::rename(folder.join(PLAN), folder.join("plan.json.new")).unwrap();
        assert_eq!(SavedSweep::read(&folder).unwrap(), None);
        let empty = folder.with_file_name("empty");
        fs::create_dir(&empty).unwrap();
        assert_eq!(SavedSweep::read(&empty).unwrap(), None);
    }

    #[test]
    fn damage_is_reported() {
        let (_directory, folder, _store) = three_runs();
        let damaged = |change: &dyn Fn(), undo: &dyn Fn()| {
            change();
            let error = SavedSweep::read(&folder).unwrap_err().to_string();
            undo();
            error
        };
        for name in [PLAN, START, RUNS] {
            let (path, aside) = (folder.join(name), folder.join("aside"));
            let error = damaged(&|| fs::rename(&path, &aside).unwrap(), &|| {
                fs::rename(&aside, &path).unwrap();
            });
            assert!(error.contains(name) && error.contains("is damaged"), "{name}: {error}");
        }
        let runs = fs::read_to_string(folder.join(RUNS)).unwrap();
        let error = damaged(
            &|| fs::write(folder.join(RUNS), runs.replacen("order", "ordre", 2)).unwrap(),
            &|| fs::write(folder.join(RUNS), &runs).unwrap(),
        );
        assert!(error.contains("line 1: "), "{error}");
        let nothing = SavedSweep::read(&folder.join("nothing")).unwrap_err();
        assert!(matches!(nothing, StoreError::NoSweep(_)));
        let file = SavedSweep::read(&folder.join(PLAN)).unwrap_err();
        assert!(matches!(file, StoreError::NoSweep(_)));
    }
}

//! The folder of a sweep on disk. Completed runs are preserved even if the program crashes.
//!
//! The folder contains three files. `plan.json` is the plan. `facts.json` contains the facts about
//! the machine, and the maximum rate. `runs.jsonl` has one line for each run, written when the run
//! ends. After a crash or with a full disk, only the final line can be incomplete. When the sweep
//! is resumed, that line is removed and its run repeated. Any other deviation from the written
//! content is reported as damage.

mod error;
mod saved;

pub use error::StoreError;
pub use saved::SavedSweep;

use crate::plan::Plan;
use linerate_evidence::{Cell, PlannedRun, RunRecord, Start, next_run, schedule};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// File name of the plan.
const PLAN: &str = "plan.json";
/// File name of the facts that are recorded before the first run.
const START: &str = "facts.json";
/// File name of the completed runs.
const RUNS: &str = "runs.jsonl";

/// Maximum number of times that a process waits for readers to release their locks on the file of
/// runs.
const MOST_LOCK_RETRIES: u32 = 100;
/// Time between two attempts to lock the file of runs. A reader holds its lock for microseconds.
const RETRY_LOCK: Duration = Duration::from_millis(1);

/// The folder of a sweep that this process executes. The process holds a lock on the file of runs,
/// so that no other process can execute the sweep.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    plan: Plan,
    /// All planned runs, in the order of the schedule. If the plan has a time budget, the runs are
    /// made in another order.
    schedule: Vec<PlannedRun>,
    /// The facts recorded before the first run; `None` until they are recorded.
    start: Option<Start>,
    runs: Vec<RunRecord>,
    /// The file of runs, opened for appending.
    file: File,
}

impl Store {
    /// Creates a folder for the sweep of `plan`. If the folder exists, it must be empty.
    ///
    /// # Errors
    /// The folder is not empty, or cannot be written.
    pub fn create(folder: &Path, plan: Plan) -> Result<Self, StoreError> {
        let at = |error| StoreError::writing(folder, error);
        fs::create_dir_all(folder).map_err(at)?;
        if fs::read_dir(folder).map_err(at)?.next().is_some() {
            return Err(StoreError::NotEmpty(folder.to_owned()));
        }
        let file = open(&folder.join(RUNS), true)?;
        write_whole(folder, PLAN, &plan)?;
        let schedule = schedule(&plan.design());
        Ok(Self { folder: folder.to_owned(), plan, schedule, start: None, runs: Vec::new(), file })
    }

    /// Opens the sweep that an earlier process started in `folder`. If the final line of the file
    /// of runs is incomplete, it is removed.
    ///
    /// # Errors
    /// The folder contains no sweep, another process uses the sweep, or a file is damaged.
    pub fn resume(folder: &Path) -> Result<Self, StoreError> {
        let plan: Plan =
            read_whole(folder, PLAN)?.ok_or_else(|| StoreError::NoSweep(folder.to_owned()))?;
        let start = read_whole(folder, START)?;
        let path = folder.join(RUNS);
        let file = open(&path, false)?;
        let text = fs::read(&path).map_err(|error| StoreError::reading(&path, error))?;
        let whole = whole_lines(&text);
        if whole.len() < text.len() {
            file.set_len(whole.len() as u64).map_err(|error| StoreError::writing(&path, error))?;
        }
        let schedule = schedule(&plan.design());
        let runs = read_runs(&path, whole, &plan, &schedule)?;
        if start.is_none() && !runs.is_empty() {
            return Err(StoreError::no_facts(folder));
        }
        Ok(Self { folder: folder.to_owned(), plan, schedule, start, runs, file })
    }

    /// Returns the paths of the three files of a sweep in `folder`, which other output must not
    /// overwrite.
    #[must_use]
    pub fn files(folder: &Path) -> [PathBuf; 3] {
        [PLAN, START, RUNS].map(|name| folder.join(name))
    }

    /// Returns the folder of the sweep.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the plan of the sweep.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the facts that are recorded before the first run; `None` until they are recorded.
    #[must_use]
    pub const fn start(&self) -> Option<&Start> {
        self.start.as_ref()
    }

    /// Returns the completed runs, in the order in which they were made.
    #[must_use]
    pub fn runs(&self) -> &[RunRecord] {
        &self.runs
    }

    /// Returns the schedule without its first n runs, where n is the number of completed runs.
    /// Without a time budget, these are the remaining runs. With a time budget, runs are made in
    /// another order, so only the length of the result is meaningful.
    #[must_use]
    pub fn remaining(&self) -> &[PlannedRun] {
        &self.schedule[self.runs.len()..]
    }

    /// Returns the next run. Without a time budget, it is the first of the remaining runs. With a
    /// time budget, it is the most informative of them. Returns `None` if all runs are complete, or
    /// if the next run would exceed the budget.
    #[must_use]
    pub fn next_run(&self) -> Option<PlannedRun> {
        if self.plan.budget.is_none() {
            return self.remaining().first().copied();
        }
        let payload = self.start.as_ref().map_or(0, |start| start.facts.bench.segment_payload);
        next_run(&self.plan.design(), payload, &self.runs)
    }

    /// Saves the facts that are recorded before the first run.
    ///
    /// # Errors
    /// The facts cannot be written.
    pub fn begin(&mut self, start: Start) -> Result<(), StoreError> {
        write_whole(&self.folder, START, &start)?;
        self.start = Some(start);
        Ok(())
    }

    /// Saves a completed run, which must be the run that [`Store::next_run`] returned.
    ///
    /// # Errors
    /// The run cannot be written. The sweep can be resumed nevertheless.
    ///
    /// # Panics
    /// If `run` is not the next run.
    pub fn append(&mut self, run: RunRecord) -> Result<(), StoreError> {
        let is_next = match self.plan.budget {
            // With a time budget, the next run depends on the results so far, and choosing it again
            // is slow. Only the order number of `run` is therefore compared with the number of
            // saved runs.
            Some(_) => run.order as usize == self.runs.len(),
            None => self.remaining().first().is_some_and(|next| run.is_of(next)),
        };
        assert!(is_next, "runs are kept in their order");
        let path = self.folder.join(RUNS);
        append_line(&mut self.file, &run).map_err(|error| StoreError::writing(&path, error))?;
        self.runs.push(run);
        Ok(())
    }

    /// Flushes saved runs to the disk, so that they survive a power failure.
    ///
    /// # Errors
    /// The disk reports an error.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(|error| StoreError::writing(&self.folder.join(RUNS), error))
    }
}

/// Opens the file of runs, and locks it for this process. If `new`, the file is created and must
/// not exist.
fn open(path: &Path, new: bool) -> Result<File, StoreError> {
    let file = OpenOptions::new().append(true).create_new(new).open(path);
    let file = file.map_err(|error| match error.kind() {
        // A sweep creates the file of runs before the plan. A folder that has a plan but no file of
        // runs is therefore damaged.
        io::ErrorKind::NotFound if !new => {
            StoreError::Damaged { path: path.to_owned(), what: "it is not there".to_owned() }
        }
        _ => StoreError::writing(path, error),
    })?;
    match lock(&file, || thread::sleep(RETRY_LOCK)) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(StoreError::writing(path, error)),
    }
}

/// Locks the file of runs for this process.
///
/// A reader of the sweep holds a shared lock for a moment, to find out whether another process
/// executes the sweep. `wait` is called while only readers hold the lock, at most
/// [`MOST_LOCK_RETRIES`] times. If another process executes the sweep, it holds an exclusive lock.
/// In that case the function fails at once.
fn lock(file: &File, mut wait: impl FnMut()) -> Result<(), TryLockError> {
    for _ in 0..MOST_LOCK_RETRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            result => return result,
        }
        file.try_lock_shared()?;
        // The shared lock was only taken to find out whether an exclusive lock exists. If it were
        // held during the wait, two processes that resume the sweep could block each other.
        file.unlock().map_err(TryLockError::Error)?;
        wait();
    }
    file.try_lock()
}

/// Appends a run as one line, with a single write, so that a crash leaves at most the final line
/// incomplete.
fn append_line(file: &mut File, run: &RunRecord) -> io::Result<()> {
    let mut line = serde_json::to_vec(run)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Returns `text` up to its final line end, so without an incomplete line after it.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    &text[..end]
}

/// Parses `text`, the complete lines of the file of runs. Without a time budget, each run must be
/// the next run of the schedule. With a time budget, the order depends on results, so a run may be
/// of any cell of the plan.
fn read_runs(
    path: &Path,
    text: &[u8],
    plan: &Plan,
    schedule: &[PlannedRun],
) -> Result<Vec<RunRecord>, StoreError> {
    let mut planned = schedule.iter();
    let cells: BTreeSet<Cell> = plan.design().cells().into_iter().collect();
    let is_adaptive = plan.budget.is_some();
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    let runs = lines.zip(1..).map(|(line, number)| {
        let damaged = |what: String| StoreError::Damaged {
            path: path.to_owned(),
            what: format!("line {number}: {what}"),
        };
        let run: RunRecord =
            serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
        match planned.next() {
            Some(planned) if run.is_of(planned) => Ok(run),
            Some(_)
                if is_adaptive
                    && run.order as usize + 1 == number
                    && cells.contains(&run.cell()) =>
            {
                Ok(run)
            }
            Some(_) => {
                Err(damaged("this is not the run that the plan has in this place".to_owned()))
            }
            None => Err(damaged("the plan has no run in this place".to_owned())),
        }
    });
    runs.collect()
}

/// Writes the file `name` atomically: after a crash, it has either its previous content or the
/// whole new content.
fn write_whole(folder: &Path, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
    let path = folder.join(name);
    let unfinished = folder.join(format!("{name}.new"));
    let write = || {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        let mut file = File::create(&unfinished)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)
    };
    write().map_err(|error| StoreError::writing(&path, error))
}

/// Reads a file that [`write_whole`] wrote; returns `None` if it does not exist.
fn read_whole<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, StoreError> {
    let path = folder.join(name);
    let text = match fs::read(&path) {
        // `NotADirectory` means that `folder` is itself a file. As with `NotFound`, there is no
        // file to read then.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        text => text.map_err(|error| StoreError::reading(&path, error))?,
    };
    let damaged = |error: serde_json::Error| StoreError::Damaged {
        path: path.clone(),
        what: error.to_string(),
    };
    serde_json::from_slice(&text).map(Some).map_err(damaged)
}

#[cfg(test)]
mod tests;

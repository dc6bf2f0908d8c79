//! The folder of a sweep on disk. Completed runs survive however the program ends.
//!
//! A folder contains `plan.json`, the plan; `facts.json`, the machine and the maximum rate; and
//! `runs.jsonl`, with one line for each run, written when the run ends. A crash or a full disk can
//! tear only the last line, which is then removed, and its run repeated. Any other deviation is
//! reported as damage.

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

const PLAN: &str = "plan.json";
const START: &str = "facts.json";
const RUNS: &str = "runs.jsonl";

/// The folder of a sweep, which this process has locked.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    plan: Plan,
    schedule: Vec<PlannedRun>,
    start: Option<Start>,
    runs: Vec<RunRecord>,
    file: File,
}

impl Store {
    /// Creates a folder for the sweep of `plan`. An existing folder must be empty.
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

    /// Opens the sweep that an earlier process started in `folder`. A torn last line is removed.
    ///
    /// # Errors
    /// There is no sweep, another process uses it, or it is damaged.
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

    /// Returns the files of a sweep in `folder`, which results must not overwrite.
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

    /// Returns the facts recorded before the first run; `None` if no run has started.
    #[must_use]
    pub const fn start(&self) -> Option<&Start> {
        self.start.as_ref()
    }

    /// Returns the completed runs, in the order in which they were made.
    #[must_use]
    pub fn runs(&self) -> &[RunRecord] {
        &self.runs
    }

    /// Returns the remaining runs, in the order of the schedule.
    #[must_use]
    pub fn remaining(&self) -> &[PlannedRun] {
        &self.schedule[self.runs.len()..]
    }

    /// Returns the next run. Without a time budget it is the first of the remaining ones, else the
    /// most informative one. Returns `None` if all runs were made, or the budget is spent.
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
    /// They cannot be written.
    pub fn begin(&mut self, start: Start) -> Result<(), StoreError> {
        write_whole(&self.folder, START, &start)?;
        self.start = Some(start);
        Ok(())
    }

    /// Saves a completed run, which must be the run that [`Store::next_run`] returned.
    ///
    /// # Errors
    /// It cannot be written. The folder can be resumed in any case.
    ///
    /// # Panics
    /// If it is another run.
    pub fn append(&mut self, run: RunRecord) -> Result<(), StoreError> {
        let is_next = match self.plan.budget {
            // The number is compared only: choosing the run again would be slow, and the caller has
            // just done so.
            Some(_) => run.order as usize == self.runs.len(),
            None => self.remaining().first().is_some_and(|next| run.is_of(next)),
        };
        assert!(is_next, "runs are kept in their order");
        let path = self.folder.join(RUNS);
        append_line(&mut self.file, &run).map_err(|error| StoreError::writing(&path, error))?;
        self.runs.push(run);
        Ok(())
    }

    /// Flushes saved runs to the disk, so that they survive a failure of the machine.
    ///
    /// # Errors
    /// The disk reports an error.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(|error| StoreError::writing(&self.folder.join(RUNS), error))
    }
}

/// Opens the file `runs.jsonl`, and locks it for this process.
fn open(path: &Path, new: bool) -> Result<File, StoreError> {
    let file = OpenOptions::new().append(true).create_new(new).open(path);
    let file = file.map_err(|error| match error.kind() {
        // The plan is written after this file, so a folder with a plan must contain it.
        io::ErrorKind::NotFound if !new => {
            StoreError::Damaged { path: path.to_owned(), what: "it is not there".to_owned() }
        }
        _ => StoreError::writing(path, error),
    })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(StoreError::writing(path, error)),
    }
}

/// Appends a line with a single write, so that a crash can tear only the last line.
fn append_line(file: &mut File, run: &RunRecord) -> io::Result<()> {
    let mut line = serde_json::to_vec(run)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Returns the complete lines of `text`, without a torn last one.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    &text[..end]
}

/// Reads the runs of a file. Each run must be the next run of the schedule. If a time budget makes
/// the order depend on results, it may be a run of any cell of the plan.
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

/// Writes a file atomically, so that it has either the old or the new content.
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
        // `NotADirectory` means that the folder is a file.
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

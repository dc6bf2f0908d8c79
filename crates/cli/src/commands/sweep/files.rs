//! The files that a sweep writes besides its folder.

use super::args::SweepArgs;
use crate::output::Failure;
use linerate_lab::{Plan, Report, StoreError, Utc};
use linerate_link::capture_file::CaptureWriter;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

/// The files that were asked for, known to be writable.
#[derive(Debug)]
pub(super) struct Files<'a> {
    json: Option<&'a Path>,
    csv: Option<&'a Path>,
    svg: Option<&'a Path>,
}

impl<'a> Files<'a> {
    /// Finds out before the night, not after it, whether the files can be written.
    pub(super) fn open(args: &'a SweepArgs) -> Result<Self, Failure> {
        for path in [&args.json, &args.csv, &args.svg].into_iter().flatten() {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            opened.map_err(|error| StoreError::writing(path, error))?;
        }
        Ok(Self { json: args.json.as_deref(), csv: args.csv.as_deref(), svg: args.svg.as_deref() })
    }

    /// Writes them.
    pub(super) fn write(&self, report: &Report<'_>) -> Result<(), Failure> {
        write(self.json, || report.json())?;
        write(self.csv, || report.csv())?;
        write(self.svg, || report.picture())
    }
}

/// Writes what `make` makes, if there is a file for it.
fn write(path: Option<&Path>, make: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    Ok(fs::write(path, make()).map_err(|error| StoreError::writing(path, error))?)
}

/// The capture that was asked for.
pub(super) fn capture(args: &SweepArgs) -> Result<Option<CaptureWriter>, Failure> {
    let writer = args
        .pcap
        .as_ref()
        .map(|path| CaptureWriter::create(path).map_err(|error| StoreError::writing(path, error)));
    Ok(writer.transpose()?)
}

/// A folder that does not exist yet, named by the time and the plan's seed.
pub(super) fn new_folder(plan: &Plan) -> PathBuf {
    let name = format!("{}-{}", Utc::now().file_name(), plan.seed);
    let again = (2..).map(|attempt| format!("{name}-{attempt}"));
    let names = std::iter::once(name.clone()).chain(again);
    let mut paths = names.map(|name| Path::new("linerate-out").join(name));
    // The names never end, so one of them is free.
    paths.find(|path| !path.exists()).unwrap_or_default()
}

//! The files that a sweep writes in addition to its folder.

use super::args::SweepArgs;
use crate::output::{self, Failure, are_apart, can_be_written, write_file};
use linerate_link::capture_file::CaptureWriter;
use linerate_measure::{Plan, Store, StoreError, Utc};
use linerate_report::Report;
use std::io;
use std::path::{Path, PathBuf};

/// The requested files, which have been found writable.
#[derive(Debug)]
pub(super) struct Files<'a> {
    json: Option<&'a Path>,
    csv: Option<&'a Path>,
    svg: Option<&'a Path>,
}

impl<'a> Files<'a> {
    /// Checks, before the night and not after it, that the files are writable, and that they
    /// overwrite neither each other nor the scenario nor the content of `folder`.
    pub(super) fn open(args: &'a SweepArgs, plan: &Plan, folder: &Path) -> Result<Self, Failure> {
        let [json, csv, svg, pcap] =
            [&args.json, &args.csv, &args.svg, &args.pcap].map(Option::as_deref);
        let kept = Store::files(folder);
        let kept = kept.iter().map(PathBuf::as_path).chain(plan.scenario.as_deref().map(Path::new));
        are_apart([json, csv, svg, pcap].into_iter().flatten(), kept)?;
        can_be_written([json, csv, svg].into_iter().flatten(), output::cannot_write)?;
        Ok(Self { json, csv, svg })
    }

    /// Writes the files.
    pub(super) fn write(&self, report: &Report<'_>, plan: &Plan) -> Result<(), Failure> {
        write_file(self.json, || report.json(plan), cannot_write)?;
        write_file(self.csv, || report.csv(), cannot_write)?;
        write_file(self.svg, || report.picture(), cannot_write)
    }
}

/// Creates the requested capture file.
pub(super) fn capture(args: &SweepArgs) -> Result<Option<CaptureWriter>, Failure> {
    let create =
        |path| CaptureWriter::create(path).map_err(|error| output::cannot_write(path, error));
    args.pcap.as_deref().map(create).transpose()
}

/// Converts an error. The runs are saved, so the sweep can be resumed.
fn cannot_write(path: &Path, error: io::Error) -> Failure {
    StoreError::writing(path, error).into()
}

/// Returns a folder that does not exist yet, named by the time and the plan's seed.
pub(super) fn new_folder(plan: &Plan) -> PathBuf {
    let name = format!("{}-{}", Utc::now().file_name(), plan.seed);
    let again = (2..).map(|attempt| format!("{name}-{attempt}"));
    let names = std::iter::once(name.clone()).chain(again);
    let mut paths = names.map(|name| Path::new("linerate-out").join(name));
    // The sequence of names is endless, so one of them is free.
    paths.find(|path| !path.exists()).unwrap_or_default()
}

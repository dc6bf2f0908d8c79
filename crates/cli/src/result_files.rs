//! The result files of `linerate sweep` and `linerate report`.

use crate::output::{self, Failure, are_apart, can_be_written, write_file};
use clap::Args;
use linerate_measure::{Plan, Store, StoreError};
use linerate_report::Report;
use std::io;
use std::path::{Path, PathBuf};

/// The options that name result files.
#[derive(Debug, Args)]
pub(crate) struct ResultFiles {
    /// Write the report to this file, as a page that needs no network
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    html: Option<PathBuf>,

    /// Write all data of the sweep to this file
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    json: Option<PathBuf>,

    /// Write one row for each run to this file
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    csv: Option<PathBuf>,

    /// Draw the heat map to this file
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    svg: Option<PathBuf>,
}

impl ResultFiles {
    /// Checks that each requested result file can be written and would overwrite no needed file.
    /// Needed files are the other result files, the capture file `others`, the scenario file of
    /// `plan`, and the files of the sweep in `folder`. Commands call this method before long work.
    pub(crate) fn check(
        &self,
        others: Option<&Path>,
        plan: &Plan,
        folder: &Path,
    ) -> Result<(), Failure> {
        let kept = Store::files(folder);
        let kept = kept.iter().map(PathBuf::as_path).chain(plan.scenario.as_deref().map(Path::new));
        are_apart(self.paths().chain(others), kept)?;
        can_be_written(self.paths(), output::cannot_write)
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.html, &self.json, &self.csv, &self.svg].into_iter().filter_map(Option::as_deref)
    }

    /// Writes the requested result files from `report`.
    pub(crate) fn write(&self, report: &Report<'_>, plan: &Plan) -> Result<(), Failure> {
        write_file(self.html.as_deref(), || report.html(plan), cannot_write)?;
        write_file(self.json.as_deref(), || report.json(plan), cannot_write)?;
        write_file(self.csv.as_deref(), || report.csv(), cannot_write)?;
        write_file(self.svg.as_deref(), || report.picture(), cannot_write)
    }
}

/// Converts the error of writing a result file to a failure. No run is lost: the runs are saved in
/// the folder of the sweep, from which `linerate report` can write the file later.
fn cannot_write(path: &Path, error: io::Error) -> Failure {
    StoreError::writing(path, error).into()
}

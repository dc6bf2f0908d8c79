//! The files that a sweep writes in addition to its folder.

use super::args::SweepArgs;
use crate::output::{self, Failure};
use linerate_link::capture_file::CaptureWriter;
use linerate_measure::{Plan, Utc};
use std::path::{Path, PathBuf};

/// Creates the requested capture file.
pub(super) fn capture(args: &SweepArgs) -> Result<Option<CaptureWriter>, Failure> {
    let create =
        |path| CaptureWriter::create(path).map_err(|error| output::cannot_write(path, error));
    args.pcap.as_deref().map(create).transpose()
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

//! The capture file of a sweep, and the name of its folder.

use super::args::SweepArgs;
use crate::output::{self, Failure};
use linerate_link::capture_file::CaptureWriter;
use linerate_measure::{Plan, Utc};
use std::path::{Path, PathBuf};

/// Creates the capture file of `--pcap`. Returns `None` if the option is absent.
pub(super) fn capture(args: &SweepArgs) -> Result<Option<CaptureWriter>, Failure> {
    let create =
        |path| CaptureWriter::create(path).map_err(|error| output::cannot_write(path, error));
    args.pcap.as_deref().map(create).transpose()
}

/// Returns the path of a folder that does not exist yet, named after the present time and the seed
/// of the plan.
pub(super) fn new_folder(plan: &Plan) -> PathBuf {
    let name = format!("{}-{}", Utc::now().file_name(), plan.seed);
    let again = (2..).map(|attempt| format!("{name}-{attempt}"));
    let names = std::iter::once(name.clone()).chain(again);
    let mut paths = names.map(|name| Path::new("linerate-out").join(name));
    // The sequence of names is endless, so a free name is always found and the default is never
    // used.
    paths.find(|path| !path.exists()).unwrap_or_default()
}

//! The frames of a run, written down.

use crate::bench::BenchError;
use linerate_link::capture_file::CaptureWriter;
use std::io;

/// The capture with all frames so far in its file, to go on with the next run.
///
/// # Errors
/// [`BenchError::Capture`] if they are not all in it: a night is not worth its morning without them.
pub(in crate::bench) fn written(mut capture: CaptureWriter) -> Result<CaptureWriter, BenchError> {
    capture.flush();
    match capture.error() {
        None => Ok(capture),
        // The error stays with the capture; what is passed on says the same.
        Some(error) => {
            let source = io::Error::new(error.kind(), error.to_string());
            Err(BenchError::Capture { source })
        }
    }
}

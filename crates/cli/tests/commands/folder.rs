//! Runs the command in a temporary folder.

use super::support::{finished, linerate};
use std::path::Path;
use std::process::Command;

/// Returns the command, to be run in `directory`.
pub(crate) fn within(directory: &Path, words: &[&str]) -> Command {
    let mut command = linerate(words);
    command.current_dir(directory);
    command
}

/// Returns standard output, and asserts success.
pub(crate) fn succeed(directory: &Path, words: &[&str]) -> String {
    let (code, output, errors) = finished(&within(directory, words).output().unwrap());
    assert_eq!(code, 0, "{words:?}: {errors}");
    output
}

/// Returns standard error, and asserts the exit code.
pub(crate) fn fail(directory: &Path, words: &[&str], expected: i32) -> String {
    let (code, _, errors) = finished(&within(directory, words).output().unwrap());
    assert_eq!(code, expected, "{words:?}: {errors}");
    errors
}

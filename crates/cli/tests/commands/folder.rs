//! Runs `linerate` in a temporary folder.

use super::support::{finished, linerate};
use std::path::Path;
use std::process::Command;

/// Returns the command that runs `linerate` with these arguments in `directory`.
pub(crate) fn within(directory: &Path, words: &[&str]) -> Command {
    let mut command = linerate(words);
    command.current_dir(directory);
    command
}

/// Runs the command in `directory`, asserts that it succeeds, and returns standard output.
pub(crate) fn succeed(directory: &Path, words: &[&str]) -> String {
    let (code, output, errors) = finished(&within(directory, words).output().unwrap());
    assert_eq!(code, 0, "{words:?}: {errors}");
    output
}

/// Runs the command in `directory`, asserts its exit code, and returns standard error.
pub(crate) fn fail(directory: &Path, words: &[&str], expected: i32) -> String {
    let (code, _, errors) = finished(&within(directory, words).output().unwrap());
    assert_eq!(code, expected, "{words:?}: {errors}");
    errors
}

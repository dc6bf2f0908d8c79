//! The command in a folder of the test's own, where it may leave what it wants.

use super::support::{finished, linerate};
use std::path::Path;
use std::process::Command;

/// The command, to be run in `directory`.
pub(crate) fn within(directory: &Path, words: &[&str]) -> Command {
    let mut command = linerate(words);
    command.current_dir(directory);
    command
}

/// Its standard output, if it succeeds.
pub(crate) fn succeed(directory: &Path, words: &[&str]) -> String {
    let (code, output, errors) = finished(&within(directory, words).output().unwrap());
    assert_eq!(code, 0, "{words:?}: {errors}");
    output
}

/// Its standard error, if it ends with `expected`.
pub(crate) fn fail(directory: &Path, words: &[&str], expected: i32) -> String {
    let (code, _, errors) = finished(&within(directory, words).output().unwrap());
    assert_eq!(code, expected, "{words:?}: {errors}");
    errors
}

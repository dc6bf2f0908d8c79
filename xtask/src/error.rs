//! The errors of the tasks.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The reason why a task failed.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The arguments are wrong; the text is the usage.
    #[error("{0}")]
    Usage(String),
    /// A program cannot be started.
    #[error("`{command}` does not start: {source}; is the Rust toolchain complete?")]
    Start {
        /// The program.
        command: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A program failed, and has printed the reason.
    #[error("`{command}` failed")]
    Failed {
        /// The program.
        command: String,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The public items of a crate differ from their listing.
    #[error(
        "public items have changed:\n{changed}\nif that is intended, `cargo xtask api --accept` \
         updates docs/api/; tell users in CHANGELOG.md"
    )]
    Api {
        /// The added and removed lines.
        changed: String,
    },
    /// The output of `cargo metadata` lacks a field.
    #[error("`cargo metadata` prints no {0}: has its format changed?")]
    Metadata(&'static str),
    /// Standard output cannot be written.
    #[error("standard output cannot be written: {0}")]
    Output(io::Error),
    /// A table of requirements is malformed.
    #[error("{} is not a table of requirements: {source}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The error and its position.
        source: toml::de::Error,
    },
    /// The file of accepted counts is malformed.
    #[error(
        "{} is malformed: {source}; `cargo xtask instructions --accept` writes it anew",
        path.display()
    )]
    Counts {
        /// The file.
        path: PathBuf,
        /// The error and its position.
        source: toml::de::Error,
    },
    /// Valgrind cannot be started.
    #[error("`valgrind` does not start: {0}; install it (Debian: apt-get install valgrind)")]
    Valgrind(io::Error),
    /// No Chromium is installed.
    #[error("no chromium starts; install it (Debian: apt-get install chromium)")]
    Chromium,
    /// A page has problems, as printed.
    #[error("{count} problems of the page")]
    Page {
        /// The number of problems.
        count: usize,
    },
    /// A picture is too large for the repository.
    #[error("{} has {size} bytes: draw a smaller part", path.display())]
    Picture {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// Instruction counts have grown, as printed.
    #[error(
        "{count} instruction counts have grown by more than 3 %: reduce them, or explain their \
         benefit in the commit and accept them by `cargo xtask instructions --accept`"
    )]
    Instructions {
        /// The number of grown counts.
        count: usize,
    },
    /// The tables of requirements have faults, as printed.
    #[error("{count} faults in the tables of requirements")]
    Requirements {
        /// The number of faults.
        count: usize,
    },
    /// The workspace violates the architecture, as printed.
    #[error("{count} violations of the architecture")]
    Layers {
        /// The number of violations.
        count: usize,
    },
    /// The configuration of `cargo xtask words` is malformed.
    #[error("{} is malformed: {source}", path.display())]
    WordsConfig {
        /// The file.
        path: PathBuf,
        /// The error and its position.
        source: toml::de::Error,
    },
    /// Git cannot list the commits whose subjects are checked.
    #[error(
        "git cannot list the commits after {base} (`subjects_after` in xtask/words.toml): \
         {message}; in a shallow clone, `git fetch --unshallow` gets the history"
    )]
    Commits {
        /// The commit after which subjects are checked.
        base: String,
        /// The message of git.
        message: String,
    },
    /// Breaches of the language rules were found, as printed.
    #[error("breaches of the language rules: {count}; xtask/words.toml is their configuration")]
    Words {
        /// The number of breaches.
        count: usize,
    },
    /// Some steps of `check` failed, as printed.
    #[error("failed: {}", steps.join(", "))]
    Check {
        /// The names of the steps.
        steps: Vec<&'static str>,
    },
}

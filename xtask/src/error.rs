//! Errors of the development tasks.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The reason why a task failed.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The arguments are wrong. The text explains the usage.
    #[error("{0}")]
    Usage(String),
    /// A program cannot be started.
    #[error("`{command}` does not start: {source}; is the Rust toolchain complete?")]
    Start {
        /// The name of the program.
        command: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A program failed after it had printed the reason.
    #[error("`{command}` failed")]
    Failed {
        /// The name of the program.
        command: String,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The file that cannot be written.
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
        /// The added and removed lines of the listing.
        changed: String,
    },
    /// Public types have no example.
    #[error("these types have no example in their documentation: add one\n{missing}")]
    Examples {
        /// The types, one a line.
        missing: String,
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
        /// The path of the table.
        path: PathBuf,
        /// The error of the parser, with its position.
        source: toml::de::Error,
    },
    /// The file of accepted instruction counts is malformed.
    #[error(
        "{} is malformed: {source}; `cargo xtask instructions --accept` writes it anew",
        path.display()
    )]
    Counts {
        /// The path of the file.
        path: PathBuf,
        /// The error of the parser, with its position.
        source: toml::de::Error,
    },
    /// Valgrind cannot be started.
    #[error("`valgrind` does not start: {0}; install it (Debian: apt-get install valgrind)")]
    Valgrind(io::Error),
    /// No Chromium is installed.
    #[error("no chromium starts; install it (Debian: apt-get install chromium)")]
    Chromium,
    /// A page has problems, which have been printed.
    #[error("{count} problems of the page")]
    Page {
        /// The number of problems.
        count: usize,
    },
    /// A picture is too large for the repository.
    #[error("{} has {size} bytes: draw a smaller part", path.display())]
    Picture {
        /// The path of the picture.
        path: PathBuf,
        /// Size of the picture in bytes.
        size: u64,
    },
    /// Instruction counts have grown too much, as printed.
    #[error(
        "{count} instruction counts have grown by more than 3 %: reduce them, or explain their \
         benefit in the commit and accept them by `cargo xtask instructions --accept`"
    )]
    Instructions {
        /// The number of counts that have grown too much.
        count: usize,
    },
    /// The tables of requirements have faults, which have been printed.
    #[error("{count} faults in the tables of requirements")]
    Requirements {
        /// The number of faults.
        count: usize,
    },
    /// The workspace violates the architecture. The violations have been printed.
    #[error("{count} violations of the architecture")]
    Layers {
        /// The number of violations.
        count: usize,
    },
    /// The configuration of `cargo xtask words` is malformed.
    #[error("{} is malformed: {source}", path.display())]
    WordsConfig {
        /// The path of the configuration.
        path: PathBuf,
        /// The error of the parser, with its position.
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
        /// The error message of git.
        message: String,
    },
    /// The text or a commit violates the language rules. The violations have been printed.
    #[error("breaches of the language rules: {count}; xtask/words.toml is their configuration")]
    Words {
        /// The number of violations.
        count: usize,
    },
    /// Some steps of `check` failed, and have printed the reasons.
    #[error("failed: {}", steps.join(", "))]
    Check {
        /// The names of the failed steps.
        steps: Vec<&'static str>,
    },
}

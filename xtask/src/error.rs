//! Why a chore did not come to a good end.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// One variant per cause.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The words behind `cargo xtask` are none of ours.
    #[error("{0}")]
    Usage(String),
    /// A program that the chore needs does not start.
    #[error("`{command}` does not start: {source}; is the Rust toolchain whole?")]
    Start {
        /// What was to be started.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program ran and reported failure; it has said why.
    #[error("`{command}` failed")]
    Failed {
        /// What was run.
        command: String,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Keep {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What `cargo metadata` prints is not what this program knows.
    #[error("`cargo metadata` prints no {0}; has its format changed?")]
    Metadata(&'static str),
    /// Standard output takes no more.
    #[error("nothing can be written to standard output: {0}")]
    Write(io::Error),
    /// The table of requirements is not in its form.
    #[error("{} is no table of requirements: {source}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong where.
        source: toml::de::Error,
    },
    /// The accepted counts are not in their form.
    #[error("{} holds no counts: {source}; `cargo xtask instructions --accept` writes it anew", path.display())]
    Counts {
        /// The file.
        path: PathBuf,
        /// What is wrong where.
        source: toml::de::Error,
    },
    /// There is nothing to count with.
    #[error("`valgrind` does not start: {0}; install it (Debian: apt-get install valgrind)")]
    Valgrind(io::Error),
    /// Counts have grown, and were printed.
    #[error(
        "{count} counts of instructions have grown by more than 3 %: mend it, or say in docs/numbers.md what they \
         buy, and keep them with `cargo xtask instructions --accept`"
    )]
    Instructions {
        /// How many.
        count: usize,
    },
    /// Faults were found, and printed.
    #[error("{count} against the tables of requirements")]
    Requirements {
        /// How many.
        count: usize,
    },
    /// Faults were found, and printed.
    #[error("{count} against the architecture")]
    Layers {
        /// How many.
        count: usize,
    },
    /// Some steps of `check` failed, and said why.
    #[error("failed: {}", steps.join(", "))]
    Check {
        /// Their names.
        steps: Vec<&'static str>,
    },
}

//! The errors of the folder that holds a sweep.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The reason why a sweep cannot be saved or read. The user can resolve each error.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The folder for a new sweep is not empty.
    #[error(
        "{} is not empty: name a new folder, or continue the sweep in it with --resume",
        .0.display()
    )]
    NotEmpty(PathBuf),
    /// The folder contains no sweep.
    #[error("{} contains no sweep: name a folder that `linerate sweep` has created", .0.display())]
    NoSweep(PathBuf),
    /// Another process uses the sweep. The path is that of the locked file.
    #[error("{} is in use by another sweep: wait until it has ended", .0.display())]
    Busy(PathBuf),
    /// A file is missing, or does not have the content that was written to it.
    #[error("{} is damaged ({what}): start a new sweep, or restore the file", path.display())]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// A description of the damage.
        what: String,
    },
    /// The disk is full, a quota is exhausted, or the file would be too large for the file system.
    /// The path is that of the file or folder.
    #[error("the disk is full at {}: make room, then continue with --resume", .0.display())]
    Full(PathBuf),
    /// A file or folder cannot be written for another reason than space.
    #[error("{} cannot be written ({source}): name a writable folder", path.display())]
    Writing {
        /// The file or folder that was to be written.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("{} cannot be read ({source}): check its permissions", path.display())]
    Reading {
        /// The file that was to be read.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl StoreError {
    /// Converts an error that occurred while writing the file or folder `path` to a store error.
    #[must_use]
    pub fn writing(path: &Path, source: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full(path.to_owned()),
            _ => Self::Writing { path: path.to_owned(), source },
        }
    }

    /// Returns the error of a folder that contains runs but no facts about them.
    pub(super) fn no_facts(folder: &Path) -> Self {
        let what = "there are runs, but not the facts about them".to_owned();
        Self::Damaged { path: folder.join(super::START), what }
    }

    /// Converts an error that occurred while reading the file `path` to a store error.
    pub(super) fn reading(path: &Path, source: io::Error) -> Self {
        Self::Reading { path: path.to_owned(), source }
    }
}

//! Why a sweep cannot be kept or found again.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a sweep cannot be kept or found again. All of it can be mended by whoever runs the command.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The folder for a new sweep holds something.
    #[error("{} is not empty: name a new folder, or go on with the sweep in it by --resume", .0.display())]
    NotEmpty(PathBuf),
    /// The folder to be resumed holds no sweep.
    #[error("{} holds no sweep: name a folder that `linerate sweep` has made", .0.display())]
    NoSweep(PathBuf),
    /// Another process writes into it.
    #[error("{} is being written by another sweep: wait until it has ended", .0.display())]
    Busy(PathBuf),
    /// What is there is not what was written.
    #[error("{} is damaged ({what}): begin a new sweep, or put the file back as it was", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The disk is full.
    #[error("the disk is full at {}: make room, then go on with --resume", .0.display())]
    Full(PathBuf),
    /// The system does not let us write.
    #[error("{} cannot be written ({source}): name a folder that can", path.display())]
    Writing {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system does not let us read.
    #[error("{} cannot be read ({source}): see its permissions", path.display())]
    Reading {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl StoreError {
    /// What a failed write of `path` means.
    #[must_use]
    pub fn writing(path: &Path, source: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full(path.to_owned()),
            _ => Self::Writing { path: path.to_owned(), source },
        }
    }

    pub(super) fn reading(path: &Path, source: io::Error) -> Self {
        Self::Reading { path: path.to_owned(), source }
    }
}

//! Reads scripts from files and folders.

use crate::report::Verdict;
use crate::syntax::{Script, SyntaxError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum length of a script, in bytes.
const LONGEST: u64 = 4 << 20;

/// A script, with the file it was read from.
#[derive(Clone, Debug)]
pub struct ScriptFile {
    /// Path of the file, as messages show it.
    pub name: String,
    /// The script.
    pub script: Script,
}

/// The scripts in files and folders, and the files that could not be read.
#[derive(Debug, Default)]
pub struct ScriptFiles {
    /// The scripts, ordered by name.
    pub scripts: Vec<ScriptFile>,
    /// The files that could not be read.
    pub unreadable: Vec<FileError>,
}

/// The reason why a script could not be read.
#[derive(Debug, Error)]
pub enum FileError {
    /// A file or folder that cannot be read.
    #[error("{0}: {1}")]
    Unreadable(String, #[source] io::Error),
    /// A file that exceeds the maximum length, with its length in bytes.
    #[error("{0}: the file has {1} bytes, and a script has at most {LONGEST}")]
    TooLong(String, u64),
    /// A file that is not a valid script.
    #[error("{0}:{1}")]
    Syntax(String, #[source] SyntaxError),
    /// A folder that contains no script.
    #[error("{0}: the folder contains no script (*.pkt)")]
    Empty(String),
}

impl FileError {
    /// Returns the path of the file or folder.
    #[must_use]
    pub fn name(&self) -> &str {
        let (Self::Unreadable(name, _)
        | Self::TooLong(name, _)
        | Self::Syntax(name, _)
        | Self::Empty(name)) = self;
        name
    }

    /// Returns the verdict on a file that cannot be run, which is always [`Verdict::Refused`].
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let (line, what) = match self {
            Self::Syntax(_, error) => (error.line, error.what.clone()),
            Self::Unreadable(_, error) => (1, format!("the file cannot be read ({error})")),
            Self::TooLong(..) => (1, "the file is too long".to_owned()),
            Self::Empty(_) => (1, "the folder contains no script".to_owned()),
        };
        Verdict::Refused { line, what }
    }
}

impl ScriptFile {
    /// Reads a script. Each of `options`, such as `--ignore_push`, takes precedence over the
    /// options at the head of the script.
    ///
    /// # Errors
    /// [`FileError`]: the file cannot be read, or is not a valid script.
    pub fn read(path: &Path, options: &[String]) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let unreadable = |error| FileError::Unreadable(name.clone(), error);
        let length = path.metadata().map_err(unreadable)?.len();
        if length > LONGEST {
            return Err(FileError::TooLong(name, length));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        match Script::parse_with(&text, path.parent(), options) {
            Ok(script) => Ok(Self { name, script }),
            Err(error) => Err(FileError::Syntax(name, error)),
        }
    }
}

impl ScriptFiles {
    /// Reads the scripts of `paths`, ordered by name. A path is that of a file or a folder. In a
    /// folder, all `*.pkt` files are read, also those in its subfolders. If a file cannot be read,
    /// the others are read nevertheless.
    ///
    /// # Errors
    /// [`FileError`]: one of `paths` does not exist, or a folder contains no script.
    pub fn read(paths: &[PathBuf], options: &[String]) -> Result<Self, FileError> {
        let mut files = Vec::new();
        for path in paths {
            let name = || path.display().to_string();
            let metadata = path.metadata().map_err(|error| FileError::Unreadable(name(), error))?;
            if metadata.is_dir() {
                let before = files.len();
                collect(path, &mut files)?;
                if files.len() == before {
                    return Err(FileError::Empty(name()));
                }
            } else {
                files.push(path.clone());
            }
        }
        let mut found = Self::default();
        for path in files {
            match ScriptFile::read(&path, options) {
                Ok(script) => found.scripts.push(script),
                Err(error) => found.unreadable.push(error),
            }
        }
        Ok(found)
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let unreadable = |error| FileError::Unreadable(folder.display().to_string(), error);
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder).map_err(unreadable)?.collect();
    let mut paths: Vec<_> =
        entries.map_err(unreadable)?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        // Symbolic links are not followed: they could form a cycle.
        if path.is_dir() && !path.is_symlink() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            files.push(path);
        }
    }
    Ok(())
}

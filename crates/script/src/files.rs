//! Scripts in files and folders.

use crate::report::Verdict;
use crate::syntax::{Script, SyntaxError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The longest script that is read, bytes.
const LONGEST: u64 = 4 << 20;

/// A script, and the file that it was read from.
#[derive(Clone, Debug)]
pub struct ScriptFile {
    /// The file, as messages call it.
    pub name: String,
    /// The script.
    pub script: Script,
}

/// The scripts that were found, and the files that hold none.
#[derive(Debug, Default)]
pub struct ScriptFiles {
    /// The scripts, in the order of their names.
    pub scripts: Vec<ScriptFile>,
    /// The files that cannot be run.
    pub unreadable: Vec<FileError>,
}

/// The reason why there is no script.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file or folder cannot be read.
    #[error("{0}: {1}")]
    Unreadable(String, #[source] io::Error),
    /// The file is far longer than what people write.
    #[error("{0}: {1} bytes are no script: the most is {LONGEST}")]
    TooLong(String, u64),
    /// What is in the file is not in the language.
    #[error("{0}:{1}")]
    Syntax(String, #[source] SyntaxError),
    /// The folder holds no script.
    #[error("{0}: there is no script (*.pkt) in it")]
    Empty(String),
}

impl FileError {
    /// The file or folder that the error is about.
    #[must_use]
    pub fn name(&self) -> &str {
        let (Self::Unreadable(name, _)
        | Self::TooLong(name, _)
        | Self::Syntax(name, _)
        | Self::Empty(name)) = self;
        name
    }

    /// The verdict on a file that cannot be run: it is refused.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let (line, what) = match self {
            Self::Syntax(_, error) => (error.line, error.what.clone()),
            Self::Unreadable(_, error) => (1, format!("the file cannot be read ({error})")),
            Self::TooLong(..) => (1, "the file is too long".to_owned()),
            Self::Empty(_) => (1, "the folder holds no script".to_owned()),
        };
        Verdict::Refused { line, what }
    }
}

impl ScriptFile {
    /// Reads one file, as if `options` such as `--ignore_push` followed those at its head.
    ///
    /// # Errors
    /// [`FileError`]: it cannot be read, or is not in the language.
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
    /// Reads the scripts that are meant by `paths`: files, and every `*.pkt` of folders and of the
    /// folders in them, in the order of their names. A file that is no script does not keep others
    /// from being read.
    ///
    /// # Errors
    /// [`FileError`]: the first of `paths` that does not exist, or a folder without any script.
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
        // A link is not followed: it could lead back up.
        if path.is_dir() && !path.is_symlink() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            files.push(path);
        }
    }
    Ok(())
}

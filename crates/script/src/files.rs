//! Scripts in files and folders.

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

/// Why there is no script.
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

impl ScriptFile {
    /// Reads one file.
    ///
    /// # Errors
    /// [`FileError`]: it cannot be read, or is not in the language.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let unreadable = |error| FileError::Unreadable(name.clone(), error);
        let length = path.metadata().map_err(unreadable)?.len();
        if length > LONGEST {
            return Err(FileError::TooLong(name, length));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        match Script::parse(&text, path.parent()) {
            Ok(script) => Ok(Self { name, script }),
            Err(error) => Err(FileError::Syntax(name, error)),
        }
    }

    /// Reads the scripts that are meant by `paths`: files, and every `*.pkt` of folders and of the folders
    /// in them, in the order of their names.
    ///
    /// # Errors
    /// [`FileError`]: the first that cannot be read, or a folder without any.
    pub fn read_all(paths: &[PathBuf]) -> Result<Vec<Self>, FileError> {
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() {
                let before = files.len();
                collect(path, &mut files)?;
                if files.len() == before {
                    return Err(FileError::Empty(path.display().to_string()));
                }
            } else {
                files.push(path.clone());
            }
        }
        files.iter().map(|path| Self::read(path)).collect()
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

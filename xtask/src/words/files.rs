//! Finds the files whose language is checked.

use crate::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The format of a file, by the suffix of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    Toml,
    Markdown,
}

impl Language {
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "rs" => Some(Self::Rust),
            "toml" => Some(Self::Toml),
            "md" => Some(Self::Markdown),
            _ => None,
        }
    }
}

/// Returns the files at and below `path`, sorted by name. `path` is relative to `root`. Hidden
/// folders and build output are skipped.
pub(super) fn list(root: &Path, path: &Path) -> Result<Vec<(PathBuf, Language)>, Error> {
    let mut files = Vec::new();
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let full = root.join(&path);
        let fail = |source| Error::Read { path: full.clone(), source };
        if fs::metadata(&full).map_err(fail)?.is_dir() {
            for entry in fs::read_dir(&full).map_err(fail)? {
                let entry = entry.map_err(fail)?;
                let name = entry.file_name();
                let is_link = entry.file_type().map_err(fail)?.is_symlink();
                if !is_link && name != "target" && !name.to_string_lossy().starts_with('.') {
                    pending.push(path.join(name));
                }
            }
        } else if let Some(language) = Language::of(&path) {
            files.push((path, language));
        }
    }
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(files)
}

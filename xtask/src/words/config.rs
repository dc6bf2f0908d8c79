//! The configuration of `cargo xtask words`: `xtask/words.toml`.

use crate::error::Error;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The file, seen from the folder of the project.
pub(super) const FILE: &str = "xtask/words.toml";

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Folders and files that obey the rules already. Others join as they are rewritten.
    pub(super) clean: Vec<PathBuf>,
    /// The last commit whose subject was not checked.
    pub(super) subjects_after: String,
    /// Words that no comment opens with.
    pub(super) openings: Vec<String>,
    /// Standard terms that contain a retired word.
    pub(super) allowed: Vec<String>,
    /// Terms that are no longer used.
    pub(super) retired: Vec<Retired>,
}

/// Terms that are no longer used, and what replaces them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Retired {
    /// Lowercase, in the singular, with a space where identifiers have a `_` or a hump.
    pub(super) words: Vec<String>,
    /// The terms to use instead.
    pub(super) instead: String,
    /// Is the term retired in identifiers only, because it is a plain English word in prose?
    #[serde(default)]
    pub(super) names_only: bool,
    /// The folders in which the term is retired, if it is right in others.
    #[serde(default)]
    pub(super) only_in: Vec<PathBuf>,
}

impl Config {
    /// Reads the configuration of the project in `root`.
    pub(super) fn read(root: &Path) -> Result<Self, Error> {
        let path = root.join(FILE);
        match fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|source| Error::WordsConfig { path, source }),
            Err(source) => Err(Error::Read { path, source }),
        }
    }
}

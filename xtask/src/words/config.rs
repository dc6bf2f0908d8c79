//! Reads `xtask/words.toml`, the configuration of `cargo xtask words`.

use crate::error::Error;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The path of the configuration, relative to the root folder.
pub(super) const FILE: &str = "xtask/words.toml";

/// The content of the configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Folders and files that are always checked.
    pub(super) clean: Vec<PathBuf>,
    /// The newest commit whose subject is not checked. Only the subjects of later commits are
    /// checked.
    pub(super) subjects_after: String,
    /// Words with which no comment may begin.
    pub(super) openings: Vec<String>,
    /// Standard terms that are allowed, although one of their words is retired when it stands
    /// alone.
    pub(super) allowed: Vec<String>,
    /// Terms that must not be used.
    pub(super) retired: Vec<Retired>,
}

/// Terms that must not be used, with the terms that replace them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Retired {
    /// The terms in lowercase and singular. If a term has several words, an identifier may separate
    /// them by `_` or by a capital; here they are separated by a space.
    pub(super) words: Vec<String>,
    /// The standard terms that replace the retired terms.
    pub(super) instead: String,
    /// Are the terms retired only in identifiers? In prose, they are then allowed as plain English
    /// words.
    #[serde(default)]
    pub(super) names_only: bool,
    /// The folders in which the terms are retired; empty for all folders.
    #[serde(default)]
    pub(super) only_in: Vec<PathBuf>,
}

impl Config {
    /// Reads the configuration in the root folder `root`.
    pub(super) fn read(root: &Path) -> Result<Self, Error> {
        let path = root.join(FILE);
        match fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|source| Error::WordsConfig { path, source }),
            Err(source) => Err(Error::Read { path, source }),
        }
    }
}

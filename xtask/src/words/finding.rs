//! Violations of the language rules, as `cargo xtask words` prints them.

use std::path::PathBuf;
use thiserror::Error;

/// Maximum number of columns in a line.
pub(super) const WIDTH: usize = 100;
/// Maximum number of characters in the subject of a commit.
pub(super) const SUBJECT_LENGTH: usize = 72;

/// A violation of a rule, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {breach}")]
pub(super) struct Finding {
    pub(super) place: Place,
    pub(super) breach: Breach,
}

/// The place of a violation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Place {
    /// A line of a file, counted from 1.
    #[error("{}:{line}", file.display())]
    Line { file: PathBuf, line: usize },
    /// The path of a file itself.
    #[error("{}", _0.display())]
    Path(PathBuf),
    /// A commit, by its abbreviated hash.
    #[error("commit {hash} `{subject}`")]
    Commit { hash: String, subject: String },
}

/// The rule that is violated. The message names the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Breach {
    /// The text contains a retired term. The fields are the term as the text spells it, and the
    /// terms that replace it.
    #[error("`{spelling}` is retired: write {instead}")]
    Retired { spelling: String, instead: String },
    /// A comment begins with this forbidden word.
    #[error("the comment opens with `{0}`: make a thing its subject, or say what the item does")]
    Opening(String),
    /// A line has this number of columns, which is too many.
    #[error("{0} columns: break the line at {WIDTH}, or say it in fewer words")]
    Width(usize),
    /// A line is a marker that git writes at a merge conflict.
    #[error("a marker of a merge conflict: resolve the conflict")]
    Conflict,
    /// The subject of a commit has this number of characters, which is too many.
    #[error(
        "{0} characters: shorten the subject to {SUBJECT_LENGTH}, and move the rest to the body"
    )]
    SubjectLength(usize),
    /// The subject of a commit ends with a full stop.
    #[error("remove the full stop at the end of the subject")]
    SubjectStop,
    /// The subject of a commit does not begin with the part of the project that it changes.
    #[error("write the subject as `area: imperative subject`")]
    SubjectArea,
}

//! The findings that `cargo xtask words` prints.

use std::path::PathBuf;
use thiserror::Error;

/// Columns of a line.
pub(super) const WIDTH: usize = 100;
/// Characters of a commit's subject.
pub(super) const SUBJECT_LENGTH: usize = 72;

/// A breach of a rule, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {breach}")]
pub(super) struct Finding {
    pub(super) place: Place,
    pub(super) breach: Breach,
}

/// The text that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Place {
    /// A line, counted from 1.
    #[error("{}:{line}", file.display())]
    Line { file: PathBuf, line: usize },
    /// The path of a file.
    #[error("{}", _0.display())]
    Path(PathBuf),
    /// A commit, by its abbreviated hash.
    #[error("commit {hash} `{subject}`")]
    Commit { hash: String, subject: String },
}

/// The rule that is broken, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Breach {
    /// A retired term, as the text spells it, and the terms to use instead.
    #[error("`{spelling}` is retired: write {instead}")]
    Retired { spelling: String, instead: String },
    /// A comment whose subject is a clause.
    #[error("the comment opens with `{0}`: make a thing its subject, or say what the item does")]
    Opening(String),
    /// A line that is too long.
    #[error("{0} columns: break the line at {WIDTH}, or say it in fewer words")]
    Width(usize),
    /// A line that git leaves where a merge has a conflict.
    #[error("a marker of a merge conflict: resolve the conflict")]
    Conflict,
    /// A commit subject that is too long.
    #[error(
        "{0} characters: shorten the subject to {SUBJECT_LENGTH}, and move the rest to the body"
    )]
    SubjectLength(usize),
    /// A commit subject that ends like a sentence.
    #[error("remove the full stop at the end of the subject")]
    SubjectStop,
    /// A commit subject that does not say what part of the project it changes.
    #[error("write the subject as `area: imperative subject`")]
    SubjectArea,
}

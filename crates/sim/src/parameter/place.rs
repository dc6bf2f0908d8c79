//! Positions of entries in files, for error messages.

use std::fmt;
use std::sync::Arc;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the file.
    pub file: Arc<str>,
    /// Number of the line, counted from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of {}", self.line, self.file)
    }
}

/// The positions of a file's line breaks, which convert byte offsets to line numbers.
#[derive(Debug)]
pub(super) struct Lines {
    file: Arc<str>,
    /// Byte offsets of the line breaks, ascending.
    breaks: Vec<usize>,
}

impl Lines {
    pub(super) fn new(file: &str, text: &str) -> Self {
        Self { file: file.into(), breaks: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    /// Returns the name of the file.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Returns the line that contains a byte offset.
    pub(super) fn place(&self, offset: usize) -> Place {
        Place {
            file: Arc::clone(&self.file),
            line: 1 + self.breaks.partition_point(|&at| at < offset),
        }
    }
}

//! What a fuzzer drives: bytes in, a story out, every invariant judged after each of its steps. The
//! fuzz targets call these functions, and so do ordinary tests with the corpus that was kept.

mod choices;
mod frames;
mod segments;

pub use frames::frames_into_a_host;
pub use segments::segments_into_a_connection;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// Tells every story of a corpus; how many there were.
///
/// # Panics
/// If the directory cannot be read, or an invariant is broken.
pub fn replay(corpus: &Path, target: impl Fn(&[u8])) -> usize {
    let entries =
        fs::read_dir(corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    for file in &files {
        let told = catch_unwind(AssertUnwindSafe(|| target(&fs::read(file).expect("a story"))));
        if let Err(cause) = told {
            eprintln!("the story was {}", file.display());
            resume_unwind(cause);
        }
    }
    files.len()
}

//! Replays the stored inputs of a fuzz target. The target delivers segments to a connection.

use linerate_testkit::fuzz::{replay, segments_into_a_connection};
use std::path::Path;

#[test]
fn no_fuzz_input_of_the_corpus_breaks_a_connection() {
    let corpus =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/segments_into_a_connection");
    let inputs = replay(&corpus, segments_into_a_connection);
    assert!(inputs >= 500, "only {inputs} inputs are left");
}

//! The stories that a fuzzer has found worth keeping, told once more.

use linerate_testkit::fuzz::{replay, segments_into_a_connection};
use std::path::Path;

#[test]
fn no_story_of_the_corpus_breaks_a_connection() {
    let corpus =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/segments_into_a_connection");
    let stories = replay(&corpus, segments_into_a_connection);
    assert!(stories >= 500, "only {stories} stories are left");
}

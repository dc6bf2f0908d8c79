//! The stories that a fuzzer has found worth keeping, told once more.

use linerate_testkit::fuzz::{frames_into_a_host, replay};
use std::path::Path;

#[test]
fn no_story_of_the_corpus_breaks_a_host() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/frames_into_a_host");
    let stories = replay(&corpus, frames_into_a_host);
    assert!(stories >= 500, "only {stories} stories are left");
}

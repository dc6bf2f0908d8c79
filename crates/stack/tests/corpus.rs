//! Replays the corpora of the fuzz targets `frames_into_a_host`, `fragments_into_a_host`,
//! `neighbor_discovery_into_a_host` and `dhcp_into_a_client`.

use linerate_testkit::fuzz::{
    dhcp_into_a_client, fragments_into_a_host, frames_into_a_host, neighbor_discovery_into_a_host,
    replay,
};
use std::path::{Path, PathBuf};

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

#[test]
fn no_input_of_the_corpus_breaks_an_invariant() {
    let inputs = replay(&corpus("frames_into_a_host"), frames_into_a_host);
    assert!(inputs >= 500, "only {inputs} inputs are left");
}

#[test]
fn no_message_of_neighbour_discovery_in_the_corpus_breaks_an_invariant() {
    let inputs = replay(&corpus("neighbor_discovery_into_a_host"), neighbor_discovery_into_a_host);
    assert!(inputs >= 40, "only {inputs} inputs are left");
}

#[test]
fn no_fragments_of_the_corpus_break_an_invariant() {
    let inputs = replay(&corpus("fragments_into_a_host"), fragments_into_a_host);
    assert!(inputs >= 6, "only {inputs} inputs are left");
}

#[test]
fn no_messages_of_dhcp_servers_in_the_corpus_break_an_invariant() {
    let inputs = replay(&corpus("dhcp_into_a_client"), dhcp_into_a_client);
    assert!(inputs >= 19, "only {inputs} inputs are left");
}

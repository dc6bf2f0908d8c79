//! Fuzz targets: functions that run the test case which some bytes encode, and check all invariants
//! after each of its steps. The fuzzer calls them with bytes of its own. Ordinary tests call them
//! with the test cases that are stored in the repository (the corpus).

mod choices;
mod dhcp;
mod discovery;
mod fragments;
mod frames;
mod segments;
mod serial;

pub use dhcp::dhcp_into_a_client;
pub use discovery::neighbor_discovery_into_a_host;
pub use fragments::fragments_into_a_host;
pub use frames::frames_into_a_host;
pub use segments::segments_into_a_connection;
pub use serial::bytes_into_a_serial_line;

use crate::test_link::TestLink;
use linerate_stack::Host;
use linerate_units::Instant;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// Runs a host until it has nothing more to do at `now`, checks its invariants, and discards its
/// events. Returns the frames that it has sent.
fn finish_turns(host: &mut Host<TestLink>, now: Instant) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for count in 0.. {
        assert!(count < 5_000, "never done");
        let turn = host.turn(now).expect("the link is up");
        host.stack().check();
        let before = frames.len();
        frames.extend(std::iter::from_fn(|| host.link_mut().fetch()));
        let has_sent = frames.len() > before;
        if !(turn.more || turn.blocked && has_sent || host.link().has_arrived()) {
            break;
        }
    }
    while host.stack_mut().poll_event().is_some() {}
    host.stack().check();
    frames
}

/// Runs every test case in the directory `corpus`. Returns their number.
///
/// # Panics
/// If the directory cannot be read, or a test case fails.
pub fn replay(corpus: &Path, target: impl Fn(&[u8])) -> usize {
    let entries =
        fs::read_dir(corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    for file in &files {
        let outcome =
            catch_unwind(AssertUnwindSafe(|| target(&fs::read(file).expect("a test case"))));
        if let Err(cause) = outcome {
            eprintln!("the test case was {}", file.display());
            resume_unwind(cause);
        }
    }
    files.len()
}

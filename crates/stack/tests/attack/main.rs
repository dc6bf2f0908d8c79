//! Tests of a host under attack. Whatever a hostile peer does, the host's memory stays below the
//! limit of its configuration, and legitimate connections keep nine tenths of their goodput.
//!
//! Goodput is counted in bytes over virtual time. The host has a turn each millisecond, in which it
//! receives and sends up to 64 frames. An attack sends 32 frames in each turn. Memory means all
//! memory that the process has allocated, including that of the test itself. Because all tests of
//! this program share the process, they run one at a time.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]
#![allow(clippy::print_stdout, reason = "helpers of tests print as tests do")]

mod acknowledgements;
mod data;
mod floods;
mod off_path;
mod windows;

use linerate_stack::StackConfig;
use linerate_testkit::attack::{AttackTest, Captured, FRAMES_A_TURN, Intruder, Peer, TURN};
use linerate_units::Duration;
use linerate_wire::SackBlocks;
use peak_alloc::PeakAlloc;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

static ALONE: Mutex<()> = Mutex::new(());

/// Waits until no other test of this program runs, and prevents others from running while the
/// result exists. The allocator counts the memory of all tests together.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Duration of an attack.
const ATTACK_TIME: Duration = Duration::from_secs(2);

/// Bytes that the send buffer and the receive buffer of one connection hold together when both are
/// full.
const BUFFERS: usize = 2 * (64 << 10);

/// Bytes that the test itself needs for the frames of one turn. The allocator cannot distinguish
/// them from the host's memory, so the limit of the memory includes them.
const FRAMES: usize = FRAMES_A_TURN * 3 * 2_048;

/// A host to attack, and the goodput and memory that were measured for it without an attack.
struct Baseline {
    test: AttackTest,
    /// Bytes that the legitimate transfers move in [`ATTACK_TIME`] without an attack.
    moved: usize,
    /// Bytes allocated when the measurement without an attack begins (`held`), and the largest
    /// increase during this measurement (`variation`).
    held: usize,
    variation: usize,
}

impl Baseline {
    fn new(seed: u64) -> Self {
        Self::with(seed, |_| {})
    }

    /// Creates a host whose configuration `configure` changes, and measures this host without an
    /// attack.
    fn with(seed: u64, configure: impl Fn(&mut StackConfig)) -> Self {
        let mut test = AttackTest::new(seed, configure);
        let held = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let moved = test.run(ATTACK_TIME, |_, _| {});
        let variation = MEMORY.peak_usage().saturating_sub(held);
        Self { test, moved, held, variation }
    }

    /// Attacks for [`ATTACK_TIME`]. In this time, the legitimate transfers must move at least nine
    /// tenths of the bytes that they moved without an attack. The memory may grow by `limit` bytes
    /// more than without an attack. This includes the memory of connections that the attacker has
    /// opened before this call.
    #[track_caller]
    fn attack(&mut self, limit: usize, attack: impl FnMut(&mut Intruder, &[Captured])) {
        MEMORY.reset_peak_usage();
        let moved = self.test.run(ATTACK_TIME, attack);
        let grown = MEMORY.peak_usage().saturating_sub(self.held);
        let baseline = self.moved;
        println!(
            "{} % of the rate; {grown} bytes of memory, {} in the baseline",
            moved * 100 / baseline,
            self.variation
        );
        assert!(
            moved * 10 >= baseline * 9,
            "honest peers moved {moved} bytes instead of {baseline}"
        );
        let most = self.variation + limit + FRAMES;
        assert!(grown <= most, "{grown} bytes of memory, of {most} that are allowed");
    }
}

/// Makes the hostile peer behave correctly from now on: it opens its window and acknowledges all
/// data. The host must then send further data to it.
fn becomes_honest(test: &mut AttackTest, peer: &mut Peer) {
    let before = peer.expected;
    test.run(TURN * 5_000, |intruder, captured| {
        peer.note_all(captured);
        peer.acknowledge(intruder, peer.expected, u16::MAX, SackBlocks::default());
    });
    assert!(peer.expected - before > 100_000, "the host has forgotten its guest: {peer:?}");
}

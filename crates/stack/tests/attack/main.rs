//! A host under attack: whatever a hostile peer does, the host's memory stays below the limit that
//! its configuration sets, and honest connections keep nine tenths of their goodput.
//!
//! Goodput is counted in bytes over virtual time. The host has a turn each millisecond, and
//! receives and sends up to 64 frames in a turn; an attack sends it 32. Memory is what the process
//! has allocated: the host, and those parts of the test that cannot be separated from it. The tests
//! of this program therefore run one at a time.

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

/// Waits until no other test of this program runs, because their memory is counted together.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Duration of an attack.
const ATTACK_TIME: Duration = Duration::from_secs(2);

/// Bytes of a connection's two buffers when they are full.
const BUFFERS: usize = 2 * (64 << 10);

/// Bytes that the frames of a turn occupy in the test itself, which are counted with the host's.
const FRAMES: usize = FRAMES_A_TURN * 3 * 2_048;

/// A host, with its goodput and its memory without an attack.
struct Baseline {
    test: AttackTest,
    /// Bytes that the honest transfers move in [`ATTACK_TIME`].
    moved: usize,
    /// Bytes allocated at the beginning of that time, and the largest increase within it.
    held: usize,
    variation: usize,
}

impl Baseline {
    fn new(seed: u64) -> Self {
        Self::with(seed, |_| {})
    }

    /// Measures a host whose configuration `configure` has changed.
    fn with(seed: u64, configure: impl Fn(&mut StackConfig)) -> Self {
        let mut test = AttackTest::new(seed, configure);
        let held = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let moved = test.run(ATTACK_TIME, |_, _| {});
        let variation = MEMORY.peak_usage().saturating_sub(held);
        Self { test, moved, held, variation }
    }

    /// Attacks for [`ATTACK_TIME`]. The honest transfers must move nine tenths of the baseline. The
    /// host must not allocate more than `limit` bytes beyond the baseline; connections that the
    /// intruder opened before count against this limit.
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

/// Opens the window and acknowledges everything: the host must go on sending.
fn becomes_honest(test: &mut AttackTest, peer: &mut Peer) {
    let before = peer.expected;
    test.run(TURN * 5_000, |intruder, captured| {
        peer.note_all(captured);
        peer.acknowledge(intruder, peer.expected, u16::MAX, SackBlocks::default());
    });
    assert!(peer.expected - before > 100_000, "the host has forgotten its guest: {peer:?}");
}

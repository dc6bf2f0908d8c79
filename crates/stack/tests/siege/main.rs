//! A host under siege: whatever a hostile peer does, the memory that the host takes stays under the
//! limit that its configuration sets, and honest connections keep nine tenths of their rate.
//!
//! The rate is counted in bytes over virtual time, in which the host has a turn a millisecond and
//! takes in and sends at most 64 frames in a turn; an attack brings 32 of them. The memory is what the
//! allocator has given to this process: the host, and as much of the test as cannot be told apart from
//! it, so the tests of this program take turns.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]
#![allow(clippy::print_stdout, reason = "helpers of tests print as tests do")]

mod acknowledgements;
mod data;
mod floods;
mod strangers;
mod windows;

use linerate_stack::StackConfig;
use linerate_testkit::siege::{FRAMES_A_TURN, Heard, Intruder, Peer, Siege, TURN};
use linerate_units::Duration;
use linerate_wire::SackBlocks;
use peak_alloc::PeakAlloc;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

static ALONE: Mutex<()> = Mutex::new(());

/// Waits until no other test of this program runs: their memory is counted together.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a siege lasts.
const SIEGE: Duration = Duration::from_secs(2);

/// The buffers of a connection, filled.
const BUFFERS: usize = 2 * (64 << 10);

/// What the frames of a turn take on their way through the test, which is counted with the host.
const FRAMES: usize = FRAMES_A_TURN * 3 * 2_048;

/// A host, and what goes on there while nobody attacks it.
struct Peace {
    siege: Siege,
    /// What the honest transfers move in the time that a siege lasts.
    moved: usize,
    /// What is taken at the beginning of it, and how much more in between.
    held: usize,
    breath: usize,
}

impl Peace {
    fn new(seed: u64) -> Self {
        Self::with(seed, |_| {})
    }

    /// The same with a host that `configure` has changed.
    fn with(seed: u64, configure: impl Fn(&mut StackConfig)) -> Self {
        let mut siege = Siege::new(seed, configure);
        let held = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let moved = siege.run(SIEGE, |_, _| {});
        let breath = MEMORY.peak_usage().saturating_sub(held);
        Self { siege, moved, held, breath }
    }

    /// Attacks for a while. Meanwhile the honest transfers must move nine tenths of what they move in
    /// peace, and the host, with whatever it gave the intruder before, must not take more than `limit`
    /// bytes beyond what it takes in peace.
    #[track_caller]
    fn withstand(&mut self, limit: usize, attack: impl FnMut(&mut Intruder, &[Heard])) {
        MEMORY.reset_peak_usage();
        let moved = self.siege.run(SIEGE, attack);
        let grown = MEMORY.peak_usage().saturating_sub(self.held);
        let peace = self.moved;
        println!(
            "{} % of the rate; {grown} bytes of memory, {} in peace",
            moved * 100 / peace,
            self.breath
        );
        assert!(moved * 10 >= peace * 9, "honest peers moved {moved} bytes instead of {peace}");
        let most = self.breath + limit + FRAMES;
        assert!(grown <= most, "{grown} bytes of memory, of {most} that are allowed");
    }
}

/// Opens the window wide and takes everything: the host must send what it owes.
fn becomes_honest(siege: &mut Siege, peer: &mut Peer) {
    let before = peer.expected;
    siege.run(TURN * 5_000, |intruder, heard| {
        peer.listen(heard);
        peer.acknowledge(intruder, peer.expected, u16::MAX, SackBlocks::default());
    });
    assert!(peer.expected - before > 100_000, "the host has forgotten its guest: {peer:?}");
}

//! Decides when an allocator should return freed memory to the operating system.
//!
//! Allocators keep freed memory for later allocations. glibc returns little of it to the operating
//! system, because the buffers of different connections lie between each other in memory. In a
//! measurement, 2,000 connections with full buffers ended, and a minute later glibc still held 200
//! MB. The program therefore makes the allocator return memory once [`WORTHWHILE`] bytes have
//! stayed free for [`DELAY`].

use linerate_units::{Duration, Instant};

/// Minimum number of freed bytes that are returned to the operating system. For fewer bytes, it is
/// not worthwhile to search the allocator's free lists.
const WORTHWHILE: usize = 16 << 20;

/// Time for which bytes must stay free before they are returned to the operating system. A
/// connection that opens within this time reuses them, which saves a page fault for each 4 KiB.
const DELAY: Duration = Duration::from_secs(1);

/// A count of the bytes that a host's buffers have freed. It determines when a program should call
/// [`crate::return_free_memory`].
#[derive(Debug)]
pub struct FreedMemory {
    /// The largest number of bytes that the buffers have held since memory was last returned.
    peak: usize,
    /// The number of freed bytes: `peak` minus the number of bytes that the buffers hold now.
    freed: usize,
    /// Time at which the freed bytes should be returned; [`Instant::NEVER`] if there are fewer than
    /// [`WORTHWHILE`] of them.
    deadline: Instant,
}

impl FreedMemory {
    /// Creates the count for a host that has no buffers yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { peak: 0, freed: 0, deadline: Instant::NEVER }
    }

    /// Records that the buffers of the host hold `held` bytes now.
    pub fn note(&mut self, now: Instant, held: usize) {
        self.peak = self.peak.max(held);
        self.freed = self.peak - held;
        if self.freed < WORTHWHILE {
            self.deadline = Instant::NEVER;
        } else if self.deadline == Instant::NEVER {
            self.deadline = now + DELAY;
        }
    }

    /// Returns the time from which [`take_due`](Self::take_due) returns a number of bytes;
    /// [`Instant::NEVER`] if too few bytes are free.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the number of freed bytes if the caller should now return them to the operating
    /// system. The bytes then no longer count as freed. Returns `None` if it is too early, or there
    /// are too few.
    pub fn take_due(&mut self, now: Instant) -> Option<usize> {
        (now >= self.deadline).then(|| {
            self.deadline = Instant::NEVER;
            self.peak -= self.freed;
            core::mem::take(&mut self.freed)
        })
    }
}

impl Default for FreedMemory {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn memory_is_returned_once_when_it_has_stayed_free_for_a_second() {
        let mut memory = FreedMemory::new();
        memory.note(at(0), 3 * WORTHWHILE);
        memory.note(at(10), 2 * WORTHWHILE + 1);
        assert_eq!(memory.deadline(), Instant::NEVER, "too little is free");
        memory.note(at(20), 2 * WORTHWHILE);
        memory.note(at(500), 0);
        assert_eq!((memory.deadline(), memory.take_due(at(1_019))), (at(1_020), None));
        assert_eq!(memory.take_due(at(1_020)), Some(3 * WORTHWHILE));
        assert_eq!((memory.deadline(), memory.take_due(at(9_000))), (Instant::NEVER, None));
        memory.note(at(9_000), WORTHWHILE);
        memory.note(at(9_001), 0);
        assert_eq!(memory.deadline(), at(10_001), "it is counted anew");
    }

    #[test]
    fn memory_that_buffers_take_again_is_not_returned() {
        let mut memory = FreedMemory::new();
        memory.note(at(0), WORTHWHILE);
        memory.note(at(0), 0);
        memory.note(at(999), 1);
        assert_eq!((memory.deadline(), memory.take_due(at(1_000))), (Instant::NEVER, None));
    }
}

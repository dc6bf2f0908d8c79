//! The protocol by which one end of a ring sleeps and the other end wakes it.

use std::sync::atomic::{AtomicBool, Ordering};

/// The waking side's part of the sleep protocol, after it has stored its index. Returns whether the
/// other side sleeps and must be woken.
///
/// Each side writes one variable and then reads the other's. The waking side writes its index and
/// reads the flag. The sleeping side writes the flag and reads the index. If a read could pass the
/// write before it, both could read old values, and a side would sleep although there is a frame.
/// These four accesses are therefore sequentially consistent: all threads see them in one order,
/// and the read after the second write finds the first write. Two fences would suffice as well, but
/// cost twice as much on CPUs where a sequentially consistent store is one exchange.
pub(super) fn wake_sleeper(asleep: &AtomicBool) -> bool {
    // Several publications can precede the wake-up. Only the first one must wake the other side.
    asleep.load(Ordering::SeqCst) && asleep.swap(false, Ordering::Relaxed)
}

/// The sleeping side's part of the sleep protocol, see [`wake_sleeper`]. Returns whether this side
/// may sleep. `is_ready` must read the index with sequential consistency.
pub(super) fn announce_sleep(asleep: &AtomicBool, is_ready: impl Fn() -> bool) -> bool {
    asleep.store(true, Ordering::SeqCst);
    let sleeps = !is_ready();
    if !sleeps {
        asleep.store(false, Ordering::Relaxed);
    }
    sleeps
}

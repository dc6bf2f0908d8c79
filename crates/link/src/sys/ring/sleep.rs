//! The protocol by which one endpoint of a ring sleeps and the other endpoint wakes it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Executes the waking endpoint's part of the sleep protocol, after this endpoint has stored its
/// index. Returns whether the other endpoint sleeps and must be woken.
///
/// Each endpoint writes one variable, and then reads the variable that the other endpoint writes.
/// The waking endpoint writes its index and reads the flag. The sleeping endpoint writes the flag
/// and reads the index. If a read could be executed before the write that precedes it, both
/// endpoints could read old values. An endpoint would then sleep although there is a frame. These
/// four accesses are therefore sequentially consistent: all threads observe them in one order. In
/// this order, one of the writes is the second, and the read that follows it returns the value of
/// the first write. Two fences would suffice as well. They cost twice as much on CPUs where a
/// sequentially consistent store is a single exchange.
pub(super) fn wake_sleeper(asleep: &AtomicBool) -> bool {
    // Several frames can be published before the sleeping endpoint wakes. Only the first of these
    // calls returns true, because it clears the flag.
    asleep.load(Ordering::SeqCst) && asleep.swap(false, Ordering::Relaxed)
}

/// Executes the sleeping endpoint's part of the protocol of [`wake_sleeper`]. Returns false if
/// `is_ready` returns true: the endpoint must then not sleep. `is_ready` must read the other
/// endpoint's index with sequential consistency.
pub(super) fn announce_sleep(asleep: &AtomicBool, is_ready: impl Fn() -> bool) -> bool {
    asleep.store(true, Ordering::SeqCst);
    let sleeps = !is_ready();
    if !sleeps {
        asleep.store(false, Ordering::Relaxed);
    }
    sleeps
}

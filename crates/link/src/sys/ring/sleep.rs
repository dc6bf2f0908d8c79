//! The protocol by which one endpoint of a ring sleeps and the other endpoint wakes it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Performs the sleep protocol for the waking endpoint, which has just stored its index. Returns
/// whether the other endpoint sleeps and must be woken.
///
/// Each endpoint writes one variable and then reads the variable of the other endpoint. The waking
/// endpoint writes its index and reads the flag. The sleeping endpoint writes the flag and reads
/// the index. If a read could be executed before the preceding write, both could read old values,
/// and an endpoint would sleep although there is a frame. These four accesses are therefore
/// sequentially consistent: all threads observe them in one order, and the read after the second
/// write returns the value of the first write. Two fences would suffice as well, but cost twice as
/// much on CPUs where a sequentially consistent store is one exchange.
pub(super) fn wake_sleeper(asleep: &AtomicBool) -> bool {
    // Several publications can precede the wake-up. Only the first must wake the other endpoint.
    asleep.load(Ordering::SeqCst) && asleep.swap(false, Ordering::Relaxed)
}

/// Performs the sleep protocol for the endpoint that is about to sleep, see [`wake_sleeper`].
/// Returns whether it may sleep. `is_ready` must read the index with sequential consistency.
pub(super) fn announce_sleep(asleep: &AtomicBool, is_ready: impl Fn() -> bool) -> bool {
    asleep.store(true, Ordering::SeqCst);
    let sleeps = !is_ready();
    if !sleeps {
        asleep.store(false, Ordering::Relaxed);
    }
    sleeps
}

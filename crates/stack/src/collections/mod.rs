//! Data structures that are independent of protocols: tables, lists, queues, timers.

pub(crate) mod address_table;
pub(crate) mod list;
pub(crate) mod packet_queue;
pub(crate) mod slab;
pub(crate) mod timer_wheel;
pub(crate) mod token_bucket;

use alloc::vec::Vec;

/// Unused capacity, in elements, that a vector or table may keep even if it is nearly empty,
/// because so little memory is not worth freeing.
pub(crate) const KEPT: usize = 64;

/// Shrinks a vector to twice its length if less than a quarter of its capacity is used. Shrinking
/// copies the remaining elements. Since the capacity last changed, at least as many elements were
/// removed as remain, so the amortised cost of a removal is constant.
pub(crate) fn give_back<T>(elements: &mut Vec<T>) {
    if elements.capacity() > 4 * elements.len() + KEPT {
        elements.shrink_to(2 * elements.len());
    }
}

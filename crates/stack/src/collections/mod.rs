//! Data structures that are independent of protocols: tables, lists, queues, timers.

pub(crate) mod address_table;
pub(crate) mod list;
pub(crate) mod packet_queue;
pub(crate) mod slab;
pub(crate) mod timer_wheel;
pub(crate) mod token_bucket;

use alloc::vec::Vec;

/// Number of elements for which a table keeps its memory, however few it has.
pub(crate) const KEPT: usize = 64;

/// Gives back memory of a vector of which less than a quarter is used. The cost is in proportion to
/// the elements that were removed before, so it is constant for each removal.
pub(crate) fn give_back<T>(elements: &mut Vec<T>) {
    if elements.capacity() > 4 * elements.len() + KEPT {
        elements.shrink_to(2 * elements.len());
    }
}

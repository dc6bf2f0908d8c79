//! Data structures that are independent of protocols: tables, lists, queues, timers.

pub(crate) mod address_table;
pub(crate) mod list;
pub(crate) mod packet_queue;
pub(crate) mod slab;
pub(crate) mod timer_wheel;
pub(crate) mod token_bucket;

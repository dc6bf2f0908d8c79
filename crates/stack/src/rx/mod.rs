//! The state of the receive path: flow cache, coalescing, and segments without a connection that
//! wait.

pub(crate) mod coalesce;
pub(crate) mod flow_cache;
pub(crate) mod unconnected;

//! The state of the receive path: the flow cache, coalescing, and segments that wait.

pub(crate) mod coalesce;
pub(crate) mod flow_cache;
pub(crate) mod unconnected;

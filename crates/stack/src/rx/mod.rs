//! The state of the receive path: the flow cache, coalescing, and the queue of segments that belong
//! to no connection.

pub(crate) mod coalesce;
pub(crate) mod flow_cache;
pub(crate) mod unconnected;

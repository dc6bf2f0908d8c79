//! The state of the receive path: the flow cache and coalescing.

pub(crate) mod coalesce;
pub(crate) mod flow_cache;

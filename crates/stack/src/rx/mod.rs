//! State of the receive path: the flow cache, the pending GRO run, and the lookup prefetch.

pub(crate) mod coalesce;
pub(crate) mod flow_cache;
